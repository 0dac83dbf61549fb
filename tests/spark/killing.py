"""A driver that is killed at a place it names: a program, and a data source that logs what Spark asks of it.

One driver runs every query, each on a queue of its own, and the kill falls when all stand at the place.
Guards: the line of a place is in the log before the kill, so the log says between which two lines it fell.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from fairway.spark.datasource import FairwaySource
from fairway.spark.finishing import Finish
from fairway.spark.settings import SINK, SOURCE, Settings
from fairway.spark.source import ChunkStream
from tests.spark.pipeline import patiently

MODES = ("references", "rows")
QUERIES = (*MODES, "sink")  # of `process` in each mode; and by hand, with writeStream.format("fairway")
_MEET_SECONDS = 240  # a query that came to its end never comes: then the log of another shows where it was


def here(url: str, place: str) -> None:
    """Log the place; if the kill file names it, wait there for the other queries, and end the driver."""
    folder = Path(url).parent
    with open(folder / "log", "a") as log:
        log.write(place + "\n")
    try:
        kill = json.loads((folder / "kill").read_text())
    except FileNotFoundError:
        return
    if kill["place"] != place.split()[0]:
        return
    if kill["left"]:
        order(folder, kill | {"left": kill["left"] - 1})
        return
    (folder / "kill").unlink(missing_ok=True)
    (folder / "there").touch()
    until = time.monotonic() + _MEET_SECONDS
    while not all(Path(other, "there").exists() for other in kill["folders"]) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in kill["pids"]:
        with suppress(ProcessLookupError):  # the one who waited for us was quicker
            os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    os._exit(1)  # a worker that outlives its driver would keep its output open


def order(folder: Path, kill: dict[str, Any]) -> None:
    """Write the kill file whole: several tasks may look at it."""
    half = folder / f"kill.{os.getpid()}"
    half.write_text(json.dumps(kill))
    half.replace(folder / "kill")


class WatchedStream(ChunkStream):
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        end = super().latestOffset(start, limit)
        if end != start:
            here(self.settings.url, f"reserved {end['seq']}")
        return end

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        here(self.settings.url, f"planning {end['seq']}")
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from super().read(partition)
        here(self.settings.url, "working")


class WatchedFinish(Finish):
    def commit(self, messages: list[Any], batchId: int) -> None:
        here(self.settings.url, f"committing {batchId}")
        super().commit(messages, batchId)
        here(self.settings.url, f"committed {batchId}")


class Watched(FairwaySource):
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return WatchedStream(Settings(self.given, SOURCE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return WatchedFinish(Settings(self.given, SINK), schema, overwrite)


def same(table: pa.Table) -> pa.Table:
    return table


def work(mode: str) -> dict[str, Any]:
    """What `process` is to do: a function of chunks, or a stateful query over their rows."""
    if mode == "references":
        return {"fn": same}
    return {
        "rows": lambda df: df.selectExpr("x % 7 k").groupBy("k").count(),
        "schema": "x long",
        "output_mode": "complete",
    }


def by_hand(spark: SparkSession, url: str) -> None:
    """The query that `process` makes of a function, with a sink whose commits are processes of Spark."""
    import fairway.spark

    given = {"consumer": "hand", "maxChunksPerTrigger": "6", "chunksPerTask": "2"}

    def once() -> None:
        df = spark.readStream.format("fairway").options(**given).load(url)
        writer = df.transform(fairway.spark.map_chunks(same)).writeStream.format("fairway")
        writer = writer.options(consumer="hand", checkpointLocation=f"{url}-spark").trigger(availableNow=True)
        writer.start(url).awaitTermination()

    with fairway.spark.hosting(url):
        spark.createDataFrame([], "nothing int")  # makes it this thread's session, where Spark looks
        patiently(once)


def main(top: str, place: str, left: int, queries: Sequence[str]) -> None:
    """Process the queue in the folder of each query, all at once, and be killed at a place, or come to the end."""
    import fairway.spark
    from fairway.spark import processing

    # A task that waits at its place holds a core.
    spark = fairway.spark.session("local[3,2]", conf={"spark.sql.shuffle.partitions": "1"})
    from pyspark import SparkContext

    assert SparkContext._gateway is not None
    pids = [SparkContext._gateway.proc.pid, os.getpid()]
    folders = [str(Path(top, query)) for query in queries]
    if place != "none":
        kill = {"place": place, "left": left, "pids": pids, "folders": folders}
        for folder in folders:
            Path(folder, "there").unlink(missing_ok=True)
            order(Path(folder), kill)
    spark.dataSource.register(Watched)
    processing.register = lambda spark: None
    processing.Finish = WatchedFinish

    def run(query: str) -> None:
        url = f"{top}/{query}/q.db"
        if query == "sink":
            by_hand(spark, url)
            return
        fairway.spark.process(
            spark,
            url,
            max_chunks=6,
            chunks_per_task=2,
            progress=False,
            checkpoint=f"{url}-spark",
            **work(query),
        )

    with ThreadPoolExecutor(len(queries)) as pool:
        for done in [pool.submit(run, query) for query in queries]:
            done.result()
    spark.stop()


if __name__ == "__main__":
    # By its name, so that the workers find the classes there.
    from tests.spark.killing import main as run

    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
