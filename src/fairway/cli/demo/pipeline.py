"""The main job on Spark: produce, process under two strategies, collect, compare, audit, report.

Guards: what is called equal was compared row for row; what is called 0 was counted by the audit.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from platform import machine, python_version
from time import monotonic, strftime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

import fairway
from fairway.cli.demo import concluding, dataset
from fairway.cli.demo.following import bars, following, stage
from fairway.cli.demo.racing import clear
from fairway.cli.sparkling import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fairway.spark.auditing.judging import Audit

CHUNKS = 480
QUICK_CHUNKS = 96
FILES = {"OldestFirst": "oldest-first.db", "Fair": "fair.db"}
_BATCH_CHUNKS = 32  # two chunks for every tenant, and with Spark's own part about a second
_CHUNKS_PER_TASK = 8
_WINDOWS = 14  # a window sees some micro-batches


@dataclass(frozen=True)
class Run:
    """A queue that was worked off under one strategy, and what its producer was told."""

    strategy: str
    path: Path
    manifest: list[tuple[int, str, int]]


@dataclass(frozen=True)
class Served:
    """What one strategy did."""

    strategy: str
    path: Path
    audit: Audit
    rows: int  # that came back
    differing: int  # rows that plain Spark has and the queue has not, or the other way round


def pipeline(chunks: int, dir: Path, seed: int, console: Console) -> dict[str, Any]:
    """Tell the story with queues in `dir`; gives what was measured, and what was not as promised."""
    tenants = dataset.sizes(chunks, seed)
    dir.mkdir(parents=True, exist_ok=True)
    console.print(concluding.opening(tenants, dir))
    began = monotonic()
    with (
        ThreadPoolExecutor(2, "fairway-demo") as pool,  # it waits for its threads, which end with the session
        spark_session("fairway demo", log=dir / "spark.log") as spark,
        bars(console) as progress,
    ):
        job = _Job(spark, progress, tenants, dir, seed)
        # Side by side is what nobody times: a query is planned by one thread, and the other core would idle.
        reference = pool.submit(job.reference)
        job.warm_up()
        expected = reference.result()
        runs = [job.serve(strategy) for strategy in FILES]
        served = list(pool.map(lambda run: job.judge(run, expected), runs))
        with stage(progress, "report"):
            shown = concluding.summaries(served)
            report = concluding.report(served, shown, dir / "report.html", _note(chunks))
    console.print(concluding.table(shown))
    console.print(concluding.verdict(served, shown, monotonic() - began))
    console.print(f"[green]The report:[/] {escape(str(report))}  (open it in a browser)\n", soft_wrap=True)
    console.print("Play on:")
    for command in concluding.play_on(dir):
        console.print(f"  $ {command}", soft_wrap=True, markup=False, highlight=False)
    return {
        "chunks": chunks,
        "rows": sum(one.rows for one in served),
        "folder": str(dir),
        "report": str(report),
        "strategies": [one.plain() for one in shown],
        "problems": concluding.problems(served, shown),
    }


def _note(chunks: int) -> str:
    return (
        f"{chunks:,} chunks of {dataset.CHUNK_ROWS} rows through a queue on SQLite, processed by Spark in batches of"
        f" {_BATCH_CHUNKS}; {os.cpu_count()} cores ({machine()}), Python {python_version()}, {strftime('%d %B %Y')}."
        " A run of fairway demo."
    )


class _Job:
    """The stages of the pipeline, each a call that any program can make."""

    def __init__(
        self, spark: SparkSession, progress: Progress, tenants: list[tuple[str, int]], dir: Path, seed: int
    ) -> None:
        self._spark, self._progress = spark, progress
        self._tenants, self._dir, self._seed = tenants, dir, seed

    def warm_up(self) -> None:
        """Some batches of small chunks, so that the first strategy does not pay for Spark's first steps."""
        path = self._fresh("warm-up.db")
        with stage(self._progress, "warm up"), fairway.open(path):
            self._produce(path, [("nobody", 2)], "warm-up", chunk_rows=dataset.CHUNK_ROWS // _BATCH_CHUNKS)
            self._process(path, "Fair")

    def reference(self) -> DataFrame:
        """What must come out, by plain Spark."""
        with stage(self._progress, "plain Spark, without a queue"):
            rows = dataset.orders(self._spark, self._tenants, self._seed).repartition(2)
            return dataset.in_plain_spark(rows).localCheckpoint()

    def serve(self, strategy: str) -> Run:
        """Produce and process under one strategy."""
        path = self._fresh(FILES[strategy])
        total = sum(chunks for _, chunks in self._tenants)
        with fairway.open(path) as queue:
            with stage(self._progress, f"{strategy}: produce"):
                # The whale comes first, and is not alone for long.
                manifest = self._produce(path, self._tenants[:1], "whale")
                manifest += self._produce(path, self._tenants[1:], "small")
            with following(self._progress, f"{strategy}: process", queue, total):
                self._process(path, strategy)
        return Run(strategy, path, manifest)

    def judge(self, run: Run, expected: DataFrame) -> Served:
        """Collect, compare and audit what a run left."""
        from fairway.spark import audit

        promised = self._spark.createDataFrame(run.manifest, "submission long, tenant string, chunks long")
        with fairway.open(run.path):
            with stage(self._progress, f"{run.strategy}: collect and compare"):
                rows, differing = self._compare(run.path, expected)
            with stage(self._progress, f"{run.strategy}: audit"):
                judged = audit(self._spark, run.path, manifest=promised, windows=_WINDOWS, progress=False)
        return Served(run.strategy, run.path, judged, rows, differing)

    def _fresh(self, name: str) -> Path:
        path = self._dir / name
        clear(path)
        for left in (f"{path}-objects", f"{path}-spark"):
            shutil.rmtree(left, ignore_errors=True)
        return path

    def _produce(
        self, path: Path, tenants: list[tuple[str, int]], token: str, chunk_rows: int = dataset.CHUNK_ROWS
    ) -> list[tuple[int, str, int]]:
        from fairway.spark import produce

        rows = dataset.orders(self._spark, tenants, self._seed)
        told = {"tenant_column": "tenant", "chunk_rows": chunk_rows, "token": token}
        made = produce(rows, str(path), **told, progress=False)
        return [(one.id, one.tenant, one.total) for one in made]

    def _process(self, path: Path, strategy: str) -> None:
        from fairway.spark import process

        process(
            self._spark,
            str(path),
            fn=dataset.pseudonymise,
            schema=dataset.RESULT,
            strategy=strategy,
            max_chunks=_BATCH_CHUNKS,
            chunks_per_task=_CHUNKS_PER_TASK,
            progress=False,
        )

    def _compare(self, path: Path, expected: DataFrame) -> tuple[int, int]:
        from fairway.spark import collect

        got = collect(self._spark, str(path), schema=dataset.RESULT).localCheckpoint()
        missing, surplus = expected.exceptAll(got).count(), got.exceptAll(expected).count()
        return got.count(), missing + surplus
