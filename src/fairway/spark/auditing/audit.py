"""`fairway.spark.audit`: read a queue's log, listing and registered results, and judge them.

Guards: the audit changes nothing in the queue; what it read is kept by Spark, so the queue may be closed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairway.runtime.urls import Place
from fairway.spark.auditing.judging import STEPS, WINDOWS, Audit, judge
from fairway.spark.auditing.report import write_report
from fairway.spark.auditing.summary import summary
from fairway.spark.progress import Steps
from fairway.spark.queues import hosting
from fairway.spark.settings import located
from fairway.spark.sources import register
from fairway.spark.telling import unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_READINGS = 3  # frames that are read


def audit(
    spark: SparkSession,
    url: Place,
    *,
    queue: str = "default",
    manifest: DataFrame | None = None,
    weights: Mapping[str, float] | None = None,
    window_seconds: float | None = None,
    windows: int = WINDOWS,
    report: str | Path | None = None,
    name: str | None = None,
    progress: bool = True,
) -> Audit:
    """Audit a queue: exact faults, fairness over time, waiting and running per tenant; `report` writes an HTML file.

    manifest: what a producer was told is accepted (submission, tenant, chunks); by default what the queue lists.
    weights: as they were, where they are not what they are now. name: what the report calls the queue.
    progress: show the steps on a terminal.
    """
    url = located(url)
    with (
        hosting(url, queue, create=False) as opened,
        Steps("audit", _READINGS + len(STEPS), progress) as step,
        unwrapped(),
    ):
        frames = _read(spark, url, queue, step)
        if weights is None:
            weights = {view.name: view.weight for view in opened.tenants()}
        judged = judge(
            frames["events"],
            listing=frames["submissions"],
            results=frames["chunks"],
            manifest=manifest,
            weights=weights,
            window_seconds=window_seconds,
            windows=windows,
            step=step,
        )
    if report is not None:
        write_report(report, [summary(name or queue, judged)])
    return judged


def _read(spark: SparkSession, url: str, queue: str, step: Callable[[str], None]) -> dict[str, DataFrame]:
    """The log first: what is listed or registered later than it proves nothing against it. The listing last: whoever
    is in it was not forgotten when its results were read."""
    register(spark)

    def kind(name: str) -> DataFrame:
        step(f"read {name}")
        reader = spark.read.format("fairway").option("kind", name).option("queue", queue)
        return reader.load(url)

    return {
        "events": kind("events").localCheckpoint(),
        "chunks": kind("chunks").where("state = 'done'").select("submission", "index").localCheckpoint(),
        "submissions": kind("submissions").localCheckpoint(),
    }
