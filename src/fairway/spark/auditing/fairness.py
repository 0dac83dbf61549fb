"""Fairness over time: per window Jain's index and how far anybody is behind the fluid fair share.

The fluid share divides every chunk handed out among the tenants that wait at that moment, by weight. A reservation is
one step: the log does not tell the order inside it. `pace` is what a tenant of weight 1 has been due so far. So a
tenant's share over a stretch is its weight times a difference of two paces; nothing is added up per tenant and step.
Guards: sums over the whole log are made window by window, then over the windows; no single task sees every event.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec


def timeline(history: DataFrame, weights: DataFrame, begin: float, seconds: float) -> DataFrame:
    """One row per tenant and step: how its waiting changed and what it was handed."""
    change = F.col("waits").cast("int") - F.col("waited").cast("int")
    handed = F.when(F.col("what") == "reserved", F.col("chunks")).otherwise(0)
    steps = history.groupBy("tenant", "step", "time").agg(
        F.sum(change * F.col("chunks")).alias("change"), F.sum(handed).alias("handed")
    )
    steps = steps.where("change != 0 or handed != 0").join(weights, "tenant", "left")
    known = {"window": window_of(F.col("time"), begin, seconds), "weight": F.coalesce("weight", F.lit(1.0))}
    return steps.withColumns(known).localCheckpoint()


def window_of(time: Column, begin: float, seconds: float) -> Column:
    """The number of the window in which a time lies."""
    return F.floor((time - F.lit(begin)) / F.lit(seconds)).cast("long")


def by_tenant_and_window(timeline: DataFrame) -> DataFrame:
    """Per tenant and window: handed, whether it waited all through, and its worst lag in chunks."""
    rows = timeline.unionByName(_ticks(timeline), allowMissingColumns=True)
    own = Window.partitionBy("tenant").orderBy("step", "tick").rowsBetween(Window.unboundedPreceding, 0)
    rows = (
        rows.fillna(0, ["tick", "change", "handed"])
        .withColumns({"waiting": F.sum("change").over(own), "got": F.sum("handed").over(own)})
        .withColumns(
            {
                "waiting_before": F.col("waiting") - F.col("change"),
                "got_before": F.col("got") - F.col("handed"),
            }
        )
        .localCheckpoint()  # it is used twice below, and a plan that is planned twice costs more than this
    )
    paced = rows.join(_pace(rows), ["window", "step"])
    return _lags(paced, own)


def _ticks(timeline: DataFrame) -> DataFrame:
    """A row for every tenant at the end of every window that it lives through, so that silence shows too."""
    ends = timeline.groupBy("window").agg(F.max("step").alias("step"), F.max("time").alias("time"))
    # Those that still wait when the log ends have no last event: they live to its end.
    gone = F.when(F.sum("change") > 0, F.lit(2**62)).otherwise(F.max("window"))
    lives = timeline.groupBy("tenant", "weight").agg(F.min("window").alias("born"), gone.alias("gone"))
    met = ends.join(lives, (F.col("window") >= F.col("born")) & (F.col("window") <= F.col("gone")))
    return met.select("tenant", "weight", "window", "step", "time").withColumn("tick", F.lit(1))


def _pace(rows: DataFrame) -> DataFrame:
    """Per step: what a tenant of weight 1 was due before and after it."""
    began = F.when((F.col("waiting_before") <= 0) & (F.col("waiting") > 0), F.col("weight"))
    ended = F.when((F.col("waiting_before") > 0) & (F.col("waiting") <= 0), -F.col("weight"))
    steps = (
        rows.where("tick = 0")
        .groupBy("window", "step")
        .agg(F.sum("handed").alias("handed"), F.sum(F.coalesce(began, ended, F.lit(0.0))).alias("came"))
    )
    steps = running(steps.localCheckpoint(), "came", "sharing")
    before = F.col("sharing") - F.col("came")
    due = F.when(before > 1e-9, F.col("handed") / before).otherwise(0.0)
    steps = running(steps.withColumn("due", due).localCheckpoint(), "due", "pace")
    return steps.select("window", "step", "pace", (F.col("pace") - F.col("due")).alias("pace_before"))


def running(steps: DataFrame, value: str, name: str) -> DataFrame:
    """A running sum over the whole log: inside each window, and over the sums of the windows before it."""
    inside = Window.partitionBy("window").orderBy("step").rowsBetween(Window.unboundedPreceding, 0)
    # There are as many rows here as windows, so one task may sort them.
    earlier = Window.partitionBy(F.lit(0)).orderBy("window").rowsBetween(Window.unboundedPreceding, -1)
    sums = steps.groupBy("window").agg(F.sum(value).alias("all"))
    sums = sums.select("window", F.coalesce(F.sum("all").over(earlier), F.lit(0)).alias("earlier"))
    return (
        steps.withColumn("inside", F.sum(value).over(inside))
        .join(sums, "window")
        .withColumn(name, F.col("inside") + F.col("earlier"))
        .drop("inside", "earlier")
    )


def _lags(paced: DataFrame, own: WindowSpec) -> DataFrame:
    """A tenant's lag counts from when it began to wait; it is never more than what waits, and none if nothing does."""
    credit = F.col("weight") * F.col("pace") - F.col("got")
    credit_before = F.col("weight") * F.col("pace_before") - F.col("got_before")
    begins = (F.col("waiting_before") <= 0) & (F.col("waiting") > 0)
    since = F.last(F.when(begins, credit), ignorenulls=True).over(own)
    rows = paced.withColumn("since", since)
    after = F.when(F.col("waiting") > 0, F.least(credit - F.col("since"), F.col("waiting")))
    before = F.when(
        (F.col("waiting_before") > 0) & ~begins,
        F.least(credit_before - F.col("since"), F.col("waiting_before")),
    )
    rows = rows.withColumn(
        "lag", F.greatest(F.coalesce(after, F.lit(0.0)), F.coalesce(before, F.lit(0.0)), F.lit(0.0))
    )
    least = F.least(F.min("waiting"), F.min("waiting_before"))
    return rows.groupBy("tenant", "weight", "window").agg(
        F.sum("handed").alias("handed"),
        (least > 0).alias("waited_through"),
        F.max("lag").alias("lag"),
        F.max_by("waiting", F.struct("step", "tick")).alias("waiting"),
    )


def by_window(shares: DataFrame) -> DataFrame:
    """Per window: Jain's index over the tenants that waited all through it, and the worst lag with its tenant."""
    x = F.when(F.col("waited_through"), F.col("handed") / F.col("weight"))
    sums = shares.groupBy("window").agg(
        F.sum("handed").alias("handed"),
        F.sum(x).alias("x"),
        F.sum(x * x).alias("xx"),
        F.count(x).alias("contending"),
        F.max("lag").alias("lag"),
        F.max_by("tenant", "lag").alias("lag_tenant"),
    )
    jain = F.when(
        (F.col("contending") > 1) & (F.col("xx") > 0),
        F.col("x") * F.col("x") / (F.col("contending") * F.col("xx")),
    )
    behind = F.when(F.col("lag") > 0, F.col("lag_tenant"))
    return sums.select(
        "window", "handed", "contending", jain.alias("jain"), "lag", behind.alias("lag_tenant")
    )
