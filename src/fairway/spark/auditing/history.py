"""The history of every chunk, kept as pieces: neighbouring chunks to which the same things happened.

Events are intervals, and a piece is as long as they allow: a submission that was reserved and completed in batches
of 100 has pieces of 100. A page bounds what is compared with what, so the work is spread and never quadratic.
Guards: the pieces of a submission are exactly the chunks that its events name, each once; their rows are in log order.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fairway.limits import AUDIT_PAGE_CHUNKS

ENDS: Final = ("ended_completed", "ended_failed", "ended_cancelled")
_CAME_BACK: Final = ("failed", "expired", "released")
_PLACES: Final = 1 << 20  # places in a group; more strokes than that do not fit into one
PIECE: Final = ("submission", "page", "first")


def in_order(events: DataFrame) -> DataFrame:
    """The events that move chunks, each with `step`, its place in the whole log."""
    moves = events.where((F.col("what") != "renewed") & (F.col("count") > 0))
    return moves.withColumn("what", F.col("what").cast("string")).withColumn(
        "step", F.col("number") * _PLACES + F.col("place")
    )


def history(events: DataFrame) -> DataFrame:
    """One row per piece and event, with what was so just before it; `chunks` is the length of the piece."""
    rows = _cut_by_page(in_order(events))
    pieces = _pieces(rows)
    met = rows.join(pieces, ["submission", "page"]).where(
        (F.col("first") >= F.col("from_")) & (F.col("first") < F.col("to"))
    )
    told = _remember(met.withColumn("chunks", F.col("end") - F.col("first")))
    return _judge(told).drop("from_", "to", "start", "count", "detail", "attempt", "place")


def _cut_by_page(events: DataFrame) -> DataFrame:
    size = F.lit(AUDIT_PAGE_CHUNKS).cast("long")
    last = F.col("start") + F.col("count") - 1
    pages = F.sequence((F.col("start") / size).cast("long"), (last / size).cast("long"))
    paged = events.withColumn("page", F.explode(pages))
    return paged.withColumn("from_", F.greatest("start", F.col("page") * size)).withColumn(
        "to", F.least(last + 1, (F.col("page") + 1) * size)
    )


def _pieces(rows: DataFrame) -> DataFrame:
    edges = rows.select("submission", "page", F.explode(F.array("from_", "to")).alias("first")).distinct()
    along = Window.partitionBy("submission", "page").orderBy("first")
    return edges.withColumn("end", F.lead("first").over(along)).where(F.col("end").isNotNull())


def _remember(met: DataFrame) -> DataFrame:
    """What happened to the piece before each of its rows."""
    what, alone = F.col("what"), Window.partitionBy(*PIECE).orderBy("step")
    before = alone.rowsBetween(Window.unboundedPreceding, -1)

    def latest(condition: Column, value: Column) -> Column:
        return F.last(F.when(condition, value), ignorenulls=True).over(before)

    hold = F.struct("epoch", "reservation", "time")
    return met.withColumns(
        {
            "previous": F.lag("what").over(alone),
            "completed_before": _many(what == "completed").over(before),
            "handed_before": _many(what == "reserved").over(before),
            "submitted_at": latest(what == "submitted", F.col("time")),
            "hold": latest(what == "reserved", hold),
            "hold_end": latest(what.isin("reserved", "failed", "released", "dead"), what),
            "life": latest(what.isin("submitted", "redriven", *ENDS), what),
            "out": F.coalesce(latest(what != "redriven", what == "reserved"), F.lit(False)),
        }
    ).fillna(0, ["completed_before", "handed_before"])


def _many(condition: Column) -> Column:
    return F.sum(F.when(condition, 1).otherwise(0))


def _judge(told: DataFrame) -> DataFrame:
    """Whether the piece waited before and after the row; and the three things that must never be."""
    what, previous = F.col("what"), F.col("previous")
    fresh = (F.col("completed_before") == 0) & ~F.col("out")
    waited = F.coalesce(
        previous.isin("submitted", *_CAME_BACK) | ((previous == "redriven") & fresh), F.lit(False)
    )
    waits = what.isin("submitted", *_CAME_BACK) | ((what == "redriven") & fresh)
    ours = (F.col("hold.epoch") == F.col("epoch")) & (F.col("hold.reservation") == F.col("reservation"))
    good = ours & (F.col("hold_end") == "reserved") & F.col("life").isin("submitted", "redriven")
    return told.withColumns(
        {
            "waited": waited,
            "waits": waits,
            "duplicate": (what == "completed") & (F.col("completed_before") > 0),
            "stale": (what == "completed") & ~F.coalesce(good, F.lit(False)),
            "disorder": (what == "reserved") & ~waited,
        }
    )
