"""The submissions of a log, one row each: tenant, size, and how they ended.

Guards: a submission whose beginning the log no longer has is marked, so that nothing is concluded from half a history.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fairway.spark.auditing.history import ENDS, in_order


def runs(events: DataFrame, listing: DataFrame | None) -> DataFrame:
    """Every submission that the log or the listing names; `ended` is its latest end, null while it is active."""
    what, step = F.col("what"), F.col("step")
    submitted, turned = what == "submitted", what.isin("redriven", *ENDS)
    told = (
        in_order(events)
        .groupBy("submission")
        .agg(
            F.max(F.when(submitted, F.col("tenant"))).alias("told_tenant"),
            F.max(F.when(submitted, F.col("count"))).alias("told_total"),
            F.max(submitted).alias("logged"),
            F.max_by(F.struct("what", "detail"), F.when(turned, step)).alias("turn"),
        )
    )
    ended = F.when(F.col("turn.what") != "redriven", F.col("turn.what"))
    all_done = (ended == "ended_completed") | (
        (ended == "ended_failed") & F.col("turn.detail").startswith("last chunk done")
    )
    judged = told.withColumn("ended", ended).withColumn("all_done", F.coalesce(all_done, F.lit(False)))
    return _with_listing(judged.drop("turn"), listing)


def _with_listing(told: DataFrame, listing: DataFrame | None) -> DataFrame:
    if listing is None:
        whole = told.withColumn("tenant", F.col("told_tenant")).withColumn("total", F.col("told_total"))
    else:
        listed = listing.select(
            F.col("id").alias("submission"),
            F.col("tenant").alias("listed_tenant"),
            F.col("total").alias("listed_total"),
        )
        whole = (
            told.join(listed, "submission", "full")
            .withColumn("tenant", F.coalesce("told_tenant", "listed_tenant"))
            .withColumn("total", F.coalesce("told_total", "listed_total"))
        )
    return whole.select(
        "submission",
        F.coalesce("tenant", F.lit("?")).alias("tenant"),
        F.coalesce("total", F.lit(0)).cast("long").alias("total"),
        F.coalesce("logged", F.lit(False)).alias("logged"),
        "ended",
        F.coalesce("all_done", F.lit(False)).alias("all_done"),
    )
