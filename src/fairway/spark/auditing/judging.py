"""An audit of frames: the event log in, tables and exact counts out.

Guards: the log is read once; every figure of an audit comes from that one reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from fairway.errors import BadArgument
from fairway.limits import AUDIT_WINDOWS_MAX
from fairway.spark.auditing import fairness, faults, tables
from fairway.spark.auditing.history import history
from fairway.spark.auditing.runs import runs

WINDOWS = 40  # as many as a picture shows well
STEPS = ("put in order", "look for faults", "measure fairness", "sum up")


@dataclass(frozen=True)
class Counts:
    """What an audit counted, each chunk exactly; `lost`, `duplicate`, `stale` and `disorder` should be 0."""

    submissions: int
    unlogged: int  # submissions that are older than the log; nothing is concluded from their rest
    chunks: int
    completed: int
    dead: int
    skipped: int
    unfinished: int
    handed: int
    retries: int
    lost: int
    duplicate: int
    stale: int
    disorder: int

    @property
    def faults(self) -> int:
        return self.lost + self.duplicate + self.stale + self.disorder


@dataclass(frozen=True)
class Audit:
    """What the log of a queue shows. The frames are as large as tenants, windows and faults, not as the log."""

    counts: Counts
    tenants: DataFrame
    windows: DataFrame
    faults: DataFrame
    begin: float
    end: float
    window_seconds: float


def judge(
    events: DataFrame,
    *,
    listing: DataFrame | None = None,
    manifest: DataFrame | None = None,
    results: DataFrame | None = None,
    weights: Mapping[str, float] | None = None,
    window_seconds: float | None = None,
    windows: int = WINDOWS,
    step: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit an event log.

    listing: the queue's submissions (id, tenant, state, total, done). manifest: what producers were told is accepted
    (submission, tenant, chunks). results: the results that can be read (submission, index), one for every completed
    chunk that is listed. weights: those that are not 1. window_seconds: the width of a window; without it there are
    as many as `windows` says. step: is told each of STEPS when it begins.
    """
    spark = events.sparkSession
    order, look, measure, add_up = STEPS
    step(order)
    span = events.agg(F.min("time"), F.max("time")).first()
    if span is None or span[0] is None:
        raise BadArgument("the event log is empty: submit something first, or look at `event_seconds`")
    begin, end = float(span[0]), float(span[1])
    seconds = _width(begin, end, window_seconds, windows)
    known = runs(events, listing).localCheckpoint()
    told = history(events).drop("tenant")  # only a submit tells it
    told = told.join(
        known.select("submission", "tenant", "all_done", "logged"), "submission"
    ).localCheckpoint()
    step(look)
    pieces = faults.finals(told).localCheckpoint()
    found = faults.in_the_log(told, pieces)
    if manifest is not None:
        found = found.unionByName(faults.against_manifest(manifest, known))
    if listing is not None:
        found = found.unionByName(faults.against_listing(listing, pieces, known))
    if results is not None:
        found = found.unionByName(faults.against_results(results, pieces, listing))
    found = found.localCheckpoint()
    step(measure)
    line = fairness.timeline(told, _weights(spark, weights or {}), begin, seconds)
    shares = fairness.by_tenant_and_window(line).localCheckpoint()
    step(add_up)
    by_tenant = tables.tenants(told, pieces, shares).localCheckpoint()
    by_window = tables.windows(told, shares, begin, end, seconds).localCheckpoint()
    counts = _counts(known, by_tenant, found)
    return Audit(counts, by_tenant, by_window, found, begin, end, seconds)


def _width(begin: float, end: float, asked: float | None, windows: int) -> float:
    if asked is None:
        if not 1 <= windows <= AUDIT_WINDOWS_MAX:
            raise BadArgument(f"windows must be from 1 to {AUDIT_WINDOWS_MAX}, not {windows}")
        return max((end - begin) / windows, 0.001)
    if not asked > 0 or (end - begin) / asked > AUDIT_WINDOWS_MAX:
        raise BadArgument(
            f"window_seconds must be above 0 and give at most {AUDIT_WINDOWS_MAX} windows over the"
            f" {end - begin:.1f} s of the log, not {asked:g}"
        )
    return float(asked)


def _weights(spark: SparkSession, weights: Mapping[str, float]) -> DataFrame:
    fields = StructType([StructField("tenant", StringType()), StructField("weight", DoubleType())])
    return spark.createDataFrame([(name, float(weight)) for name, weight in weights.items()], fields)


def _counts(known: DataFrame, by_tenant: DataFrame, found: DataFrame) -> Counts:
    names = ("chunks", "completed", "dead", "skipped", "unfinished", "handed", "retries")
    sums = by_tenant.agg(*(F.sum(name).alias(name) for name in names)).first()
    of_kind = {
        row["kind"]: row["chunks"]
        for row in found.groupBy("kind").agg(F.sum("count").alias("chunks")).collect()
    }
    submissions = known.agg(
        F.count(F.lit(1)).alias("all"), F.sum((~F.col("logged")).cast("int")).alias("un")
    ).first()
    assert sums is not None and submissions is not None
    return Counts(
        submissions=submissions["all"],
        unlogged=submissions["un"] or 0,
        **{name: sums[name] or 0 for name in names},
        **{kind: of_kind.get(kind, 0) for kind in faults.KINDS},
    )
