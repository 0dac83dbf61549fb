"""The faults: every chunk that was lost, finished twice, finished by a stale attempt or handed out out of turn.

Guards: counts are exact, never estimated; a fault names an interval of chunks that anybody can look up in the log.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fairway.spark.auditing.history import ENDS, PIECE

KINDS: Final = ("lost", "duplicate", "stale", "disorder")
_COLUMNS: Final = ("kind", "tenant", "submission", "first", "count", "number", "time", "why")


def finals(history: DataFrame) -> DataFrame:
    """One row per piece: how it ended, as far as the log tells."""
    what, step = F.col("what"), F.col("step")
    given_up = what.isin("dead", "redriven")
    pieces = history.groupBy(*PIECE, "end", "tenant", "all_done", "logged").agg(
        F.max_by(F.struct("what", "number", "time"), "step").alias("last"),
        F.max(what == "completed").alias("completed"),
        F.max(what == "submitted").alias("submitted"),
        F.max_by(F.when(given_up, what), F.when(given_up, step)).alias("fate"),
    )
    ended = F.when(F.col("last.what").isin(*ENDS), F.when(F.col("all_done"), "lost").otherwise("skipped"))
    state = F.when(F.col("completed"), "completed").when(F.col("fate") == "dead", "dead").otherwise(ended)
    return pieces.withColumn("state", F.coalesce(state, F.lit("unfinished"))).withColumn(
        "count", F.col("end") - F.col("first")
    )


def in_the_log(history: DataFrame, pieces: DataFrame) -> DataFrame:
    """The faults that the log alone proves."""
    logged = history.where("logged")
    why = {
        "duplicate": "a second result was registered",
        "stale": "the result is not from the latest reservation that was still held",
        "disorder": "it was handed out while it was not waiting",
    }
    found = [
        logged.where(kind).select(F.lit(kind).alias("kind"), *_place(), F.lit(text).alias("why"))
        for kind, text in why.items()
    ]
    lost = pieces.where((F.col("state") == "lost") & F.col("logged") & F.col("submitted"))
    found.append(
        lost.select(
            F.lit("lost").alias("kind"),
            "tenant",
            "submission",
            "first",
            "count",
            F.col("last.number").alias("number"),
            F.col("last.time").alias("time"),
            F.lit("its submission ended as done without it").alias("why"),
        )
    )
    return _union(found)


def _place() -> list[Column]:
    names = ("tenant", "submission", "first", "chunks", "number", "time")
    return [F.col(name).alias("count" if name == "chunks" else name) for name in names]


def against_manifest(manifest: DataFrame, runs: DataFrame) -> DataFrame:
    """What a producer was told is accepted and the queue does not know."""
    known = runs.select("submission", F.col("total").alias("known"))
    short = manifest.join(known, "submission", "left").fillna(0, ["known"]).where("known < chunks")
    return _nowhere(
        short, F.col("known"), F.col("chunks") - F.col("known"), "in the manifest, unknown to the queue"
    )


def against_listing(listing: DataFrame, pieces: DataFrame, runs: DataFrame) -> DataFrame:
    """Submissions whose listing has less than the log: gone without an end, or with fewer results."""
    done = pieces.where("state = 'completed'").groupBy("submission").agg(F.sum("count").alias("completed"))
    listed = listing.select(F.col("id").alias("submission"), "state", "done")
    seen = runs.where("logged").join(listed, "submission", "left").join(done, "submission", "left")
    gone = seen.where(F.col("state").isNull() & F.col("ended").isNull() & (F.col("total") > 0))
    fewer = seen.where(F.col("done") < F.col("completed"))
    return _nowhere(
        gone, F.lit(0), F.col("total"), "its submission is not listed and never ended"
    ).unionByName(
        _nowhere(
            fewer,
            F.lit(None),
            F.col("completed") - F.col("done"),
            "the listing counts fewer done than the log",
        )
    )


def against_results(results: DataFrame, pieces: DataFrame, listing: DataFrame | None) -> DataFrame:
    """Completed chunks without a registered result, and results that are there twice; one row per such chunk."""
    if listing is not None:  # the results of a submission go with it when its retention is over
        pieces = pieces.join(listing.select(F.col("id").alias("submission")), "submission", "left_semi")
    index = F.explode(F.sequence(F.col("first"), F.col("end") - 1)).alias("index")
    completed = pieces.where("state = 'completed'").select("tenant", "submission", index)
    there = results.groupBy("submission", F.col("index").cast("long").alias("index")).agg(
        F.count(F.lit(1)).alias("times")
    )
    both = completed.join(there, ["submission", "index"], "left")
    missing = both.where("times is null")
    twice = both.where("times > 1")
    found = _nowhere(missing, F.col("index"), F.lit(1), "completed, but its result is not there")
    return found.unionByName(
        _nowhere(twice, F.col("index"), F.col("times") - 1, "its result is there more than once", "duplicate")
    )


def _nowhere(rows: DataFrame, first: Column, count: Column, why: str, kind: str = "lost") -> DataFrame:
    """Faults that no event tells of."""
    return rows.select(
        F.lit(kind).alias("kind"),
        "tenant",
        "submission",
        first.cast("long").alias("first"),
        count.cast("long").alias("count"),
        F.lit(None).cast("long").alias("number"),
        F.lit(None).cast("double").alias("time"),
        F.lit(why).alias("why"),
    )


def _union(found: list[DataFrame]) -> DataFrame:
    whole = found[0].select(*_COLUMNS)
    for more in found[1:]:
        whole = whole.unionByName(more.select(*_COLUMNS))
    return whole
