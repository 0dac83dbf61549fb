"""The two tables of an audit: what each tenant met, and what each window of time saw.

Guards: percentiles are over chunks, not over events: an interval of n chunks weighs n.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fairway.spark.auditing.fairness import by_window, window_of

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
# Percentiles are exact to this; it bounds how many different values one of them has to hold.
_DIGITS: Final = 3
_WINDOW: Final = "window begin handed completed per_second retries contending jain lag lag_tenant"


def tenants(history: DataFrame, pieces: DataFrame, shares: DataFrame) -> DataFrame:
    """One row per tenant: its chunks by their end, retries, percentiles of waiting and running, its worst lag."""
    states = ("completed", "dead", "skipped", "unfinished", "lost")
    count, state = F.col("count"), F.col("state")
    ends = pieces.groupBy("tenant").agg(
        F.sum(count).alias("chunks"),
        *(F.sum(F.when(state == name, count).otherwise(0)).alias(name) for name in states),
    )
    what, chunks = F.col("what"), F.col("chunks")
    first = (what == "reserved") & (F.col("handed_before") == 0)
    again = (what == "reserved") & (F.col("handed_before") > 0)
    wait = F.when(first, F.round(F.col("time") - F.col("submitted_at"), _DIGITS))
    run = F.when(what == "completed", F.round(F.col("time") - F.col("hold.time"), _DIGITS))
    met = history.groupBy("tenant").agg(
        F.sum(F.when(what == "reserved", chunks).otherwise(0)).alias("handed"),
        F.sum(F.when(again, chunks).otherwise(0)).alias("retries"),
        *_percentiles("wait", wait, chunks),
        *_percentiles("run", run, chunks),
        (F.sum(wait * chunks) / F.sum(F.when(wait.isNotNull(), chunks))).alias("wait_mean"),
    )
    lags = shares.groupBy("tenant").agg(F.max("weight").alias("weight"), F.max("lag").alias("lag"))
    return ends.join(met, "tenant", "left").join(lags, "tenant", "left").orderBy(F.desc("chunks"), "tenant")


def _percentiles(name: str, value: Column, times: Column) -> list[Column]:
    found = F.percentile(value, list(PERCENTILES.values()), times)
    return [found[i].alias(f"{name}_{label}") for i, label in enumerate(PERCENTILES)]


def windows(history: DataFrame, shares: DataFrame, begin: float, end: float, seconds: float) -> DataFrame:
    """One row per window, the silent ones too: handed out, completed, retries, Jain's index, the worst lag."""
    what, chunks = F.col("what"), F.col("chunks")
    again = (what == "reserved") & (F.col("handed_before") > 0)
    seen = (
        history.withColumn("window", window_of(F.col("time"), begin, seconds))
        .groupBy("window")
        .agg(
            F.sum(F.when(what == "completed", chunks).otherwise(0)).alias("completed"),
            F.sum(F.when(again, chunks).otherwise(0)).alias("retries"),
        )
    )
    last = int((end - begin) / seconds)
    every = history.sparkSession.range(last + 1).withColumnRenamed("id", "window")
    whole = every.join(seen, "window", "left").join(by_window(shares), "window", "left")
    return (
        whole.fillna(0, ["completed", "retries", "handed", "contending", "lag"])
        .withColumn("begin", F.lit(begin) + F.col("window") * F.lit(seconds))
        .withColumn("per_second", F.col("completed") / F.lit(seconds))
        .select(*_WINDOW.split())
        .orderBy("window")
    )
