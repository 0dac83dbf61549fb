"""What a queue costs a Spark job, beside the same job without it, in one run.

    python bench/pipeline.py [--per-batch 16] [--batches 12] [--rounds 2] [--work 0.25] [--sleep] [--quick]

1. The queue's own part of a micro-batch of 1,000 chunks, as Spark calls it: latestOffset and partitions in a process
   that lives as long as its query, and the commit in the one that called `process`. Beside it the commit of
   writeStream.format("fairway"), by hand: Spark makes a new process for it, which imports Fairway and attaches to the
   host.
2. End to end: the same function over the same payloads with the same result objects, one for each chunk, in turns:
   one plain Spark job over all of them; plain micro-batches of the same size, of Spark's own `rate-micro-batch` source,
   which tell what micro-batches cost by themselves; and `process`, which is the queue.
   A chunk is `--work` seconds of CPU, so what the queue computes is taken from the work, as it would be.
   With `--sleep` it waits instead: for machines that others use, and kinder to the queue.
   Runs of one batch tell what starting and stopping take, once, however long it goes on.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from figures import Figures, parser, times
from figures.versions import of_spark

import fairway
import fairway.spark
from fairway.spark.codec import encode

QUEUE_CHUNKS = 1000
OWN_BATCHES = 12
OWN = ("latestOffset", "partitions", "commit of process")
BY_HAND = ("commit of a sink by hand: load Fairway", "commit of a sink by hand: attach and commit")
TENANTS = 8
TASKS = 8  # of a batch
CORES = 2
_BLOCK = bytes(4096)
Work = Callable[[pa.Table], pa.Table]


def submit(url: str, chunks: int) -> None:
    """Chunks of a few rows, of some tenants."""
    blob = encode(pa.table({"x": range(100)}), "arrow")
    with fairway.open(url) as q:
        for tenant in range(TENANTS):
            part = chunks // TENANTS
            q.submit([blob] * part, objects=f"file://{url}-objects/t{tenant}", tenant=f"t{tenant}")


class Peer:
    """A process that answers each line with a line."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> tuple[float, float]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise SystemExit("a process of the queue's own part failed")
        first, second = json.loads(said)
        return first, second

    def end(self) -> None:
        self._process.communicate()


class Collected:
    """A batch that tasks have done, as Spark gives it to the function of foreachBatch."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def toArrow(self) -> pa.Table:
        from fairway.spark.references import DONE_ARROW

        return pa.Table.from_pylist(self._rows, DONE_ARROW)


def serve_source(url: str) -> None:
    """The process that Spark keeps for a source: a batch for each line, its rows in the file that the line names."""
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from fairway.spark.columns import spark_of
    from fairway.spark.datasource import FairwaySource
    from fairway.spark.references import REFERENCE_ARROW

    source = FairwaySource({"path": url, "consumer": "bench", "maxChunksPerTrigger": str(QUEUE_CHUNKS)})
    stream: Any = source.streamReader(spark_of(REFERENCE_ARROW))
    start = stream.initialOffset()
    for line in sys.stdin:
        stream.commit(start)
        began = time.perf_counter()
        end = stream.latestOffset(start, ReadMaxRows(QUEUE_CHUNKS))
        reserved = time.perf_counter()
        parts = stream.partitions(start, end)
        planned = time.perf_counter()
        Path(line.strip()).write_bytes(pickle.dumps([part.rows for part in parts]))
        print(json.dumps([1000 * (reserved - began), 1000 * (planned - reserved)]), flush=True)
        start = end


def own_part(url: str, folder: str) -> dict[str, float]:
    """Milliseconds of one micro-batch in the calls that Spark makes, without Spark."""
    from fairway.spark.columns import spark_of
    from fairway.spark.datasource import FairwaySource
    from fairway.spark.finishing import Done, Finish
    from fairway.spark.references import DONE_ARROW
    from fairway.spark.settings import SINK, Settings

    file, given, schema = f"{folder}/batch", {"path": url, "consumer": "bench"}, spark_of(DONE_ARROW)
    found: dict[str, list[float]] = {name: [] for name in (*OWN, *BY_HAND)}
    with fairway.open(url) as q:
        finish = Finish(Settings(given, SINK), schema, queue=q)
        source, sink = (
            Peer(__file__, "--source", url),
            Peer(str(Path(__file__).parent / "peers/spark_sink.py")),
        )
        for batch in range(OWN_BATCHES):
            reserving, planning = source.ask(file)
            tasks = [
                [
                    {**row, "writer": n, "object": f"{row['result']}.{n:x}", "data": None, "error": None}
                    for row in rows
                ]
                for n, rows in enumerate(pickle.loads(Path(file).read_bytes()), 1)
            ]
            assert sum(map(len, tasks)) == QUEUE_CHUNKS
            for name, value in zip(OWN, (reserving, planning), strict=False):
                found[name].append(value)
            if batch % 2:
                with open(file, "wb") as out:
                    for part in (schema, FairwaySource(given), [Done.of(rows) for rows in tasks], batch):
                        pickle.dump(part, out)
                for name, value in zip(BY_HAND, sink.ask(file), strict=True):
                    found[name].append(value)
            else:
                done: Any = Collected([row for rows in tasks for row in rows])
                began = time.perf_counter()
                finish(done, batch)
                found[OWN[2]].append(1000 * (time.perf_counter() - began))
        source.end()
        sink.end()
        # The last batch was committed, and so were all before it.
        assert q.stats().chunks_waiting == 0 and {one.state for one in q.submissions()} == {"completed"}
    return {name: statistics.median(values) for name, values in found.items()}


def sleeping(seconds: float) -> Work:
    def work(table: pa.Table) -> pa.Table:
        time.sleep(seconds)
        return table

    return work


def computing(rounds: int) -> Work:
    """The same number of hashes for everybody."""

    def work(table: pa.Table) -> pa.Table:
        digest = b""
        for _ in range(rounds):
            digest = sha256(_BLOCK + digest).digest()
        return table

    return work


def rounds_of(seconds: float) -> int:
    """How many hashes take so many seconds of CPU here; the fastest of some trials, for others disturb."""
    many = 2000
    trials: list[float] = []
    for _ in range(5):
        began = time.process_time()
        computing(many)(pa.table({}))
        trials.append(time.process_time() - began)
    return max(1, round(seconds * many / min(trials)))


def references(numbers: Any, url: str, column: str) -> Any:
    """Chunk references made of their numbers alone, with the names that `submit` gave the payloads."""
    place = f"concat('file://{url}-objects/t', {column} % {TENANTS}, '/', {column} div {TENANTS})"
    return numbers.selectExpr(
        "1L submission",
        f"cast({column} div {TENANTS} as int) index",
        f"concat('t', {column} % {TENANTS}) tenant",
        "1 attempt",
        "cast(map() as map<string,string>) metadata",
        f"{place} object",
        "cast(null as binary) payload",
        "'1.1.1.1.1' receipt",
        f"concat({place}, '.out.1.1') result",
        "1L epoch",
    )


class Ways:
    """The same work in three ways; each gives the seconds it took."""

    def __init__(self, folder: str, fn: Work, per_batch: int) -> None:
        self.spark = fairway.spark.session(f"local[{CORES}]")
        self._folder, self._fn, self._per_batch = folder, fn, per_batch
        self._number = 0
        self.restarts = 0

    def _made(self, batches: int) -> str:
        self._number += 1
        url = f"{self._folder}/{self._number}.db"
        submit(url, self._per_batch * batches)
        return url

    def _check(self, url: str, batches: int) -> None:
        """Every chunk has one result object, whoever wrote it."""
        found = len(list(Path(f"{url}-objects").glob("*/*.out.*")))
        assert found == self._per_batch * batches, f"{found} results of {self._per_batch * batches} chunks"

    def job(self, batches: int) -> float:
        """One plain job over all chunks: no batches, no shuffle, no queue."""
        url = self._made(batches)
        began = time.perf_counter()
        numbers = self.spark.range(0, self._per_batch * batches, 1, TASKS * batches)
        mapped = references(numbers, url, "id").transform(fairway.spark.map_chunks(self._fn))
        mapped.write.format("noop").mode("overwrite").save()
        spent = time.perf_counter() - began
        self._check(url, batches)
        return spent

    def micro(self, batches: int) -> float:
        """Plain micro-batches without a queue; those after the last find no payload, and are not waited for."""
        url = self._made(batches)
        began = time.perf_counter()
        options = {"rowsPerBatch": self._per_batch, "numPartitions": TASKS}
        numbers = self.spark.readStream.format("rate-micro-batch").options(**options).load()
        mapped = references(numbers, url, "value").transform(fairway.spark.map_chunks(self._fn))
        writer = mapped.writeStream.format("noop").option("checkpointLocation", f"{url}-plain")
        query = writer.start()
        try:
            while (last := query.lastProgress) is None or last["batchId"] < batches - 1:
                if query.awaitTermination(0.05):  # pyright: ignore[reportArgumentType]
                    raise SystemExit("the plain query ended by itself")
            spent = time.perf_counter() - began
        finally:
            query.stop()
        self._check(url, batches)
        return spent

    def queue(self, batches: int) -> float:
        """One query over all that is in a queue, so many chunks a batch."""
        url = self._made(batches)
        began = time.perf_counter()
        done = fairway.spark.process(
            self.spark,
            url,
            fn=self._fn,
            max_chunks=self._per_batch,
            chunks_per_task=self._per_batch // TASKS,
            progress=False,
        )
        spent = time.perf_counter() - began
        self.restarts += done.restarts
        self._check(url, batches)
        return spent


def in_turns(ways: Ways, rounds: int, batches: int) -> dict[str, float]:
    """Medians of each way over all batches, and over one: as many rounds of each."""
    for way in (ways.job, ways.micro, ways.queue):  # the JVM and its workers warm up
        way(2)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, way in (("job", ways.job), ("queue", ways.queue), ("micro", ways.micro)):
            found.setdefault(name, []).append(way(batches))
            found.setdefault(f"one {name}", []).append(way(1))
    ways.spark.stop()
    return {name: statistics.median(values) for name, values in found.items()}


def options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--per-batch", type=int, default=16, help="chunks of a batch, a multiple of 8")
    made.add_argument("--batches", type=int, default=12)
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument("--work", type=float, default=0.25, help="seconds of a chunk")
    made.add_argument("--sleep", action="store_true", help="a chunk waits and does not compute")
    made.add_argument("--source", help=argparse.SUPPRESS)
    given = made.parse_args()
    if given.quick:
        given.per_batch, given.batches, given.rounds, given.work = 8, 2, 1, 0.01
    if given.per_batch < TASKS or given.per_batch % TASKS or given.batches < 2:
        made.error("--per-batch must be a multiple of 8, and --batches at least 2")
    return given


def main() -> None:
    given = options()
    if given.source:
        serve_source(given.source)
        return
    figures = Figures("pipeline", given)
    with tempfile.TemporaryDirectory() as name:
        url = f"{name}/own.db"
        submit(url, OWN_BATCHES * QUEUE_CHUNKS)
        own = own_part(url, name)
        table = figures.table(
            f"The queue's own part of a micro-batch of {QUEUE_CHUNKS:,} chunks", "call of Spark", "ms"
        )
        for part in OWN:
            table.add(part, own[part])
        table.add("together", sum(own[part] for part in OWN))
        for part in BY_HAND:
            table.add(part, own[part])
        fn = sleeping(given.work) if given.sleep else computing(rounds_of(given.work))
        ways = Ways(name, fn, given.per_batch)
        figures.versions |= of_spark(ways.spark)
        found = in_turns(ways, given.rounds, given.batches)
    tell(figures, given, found)
    if ways.restarts:
        figures.note(f"A query was started again {ways.restarts} times: the machine was too busy to measure.")
    figures.end()


def tell(figures: Figures, given: argparse.Namespace, found: dict[str, float]) -> None:
    what = "of sleep" if given.sleep else "of CPU"
    alone = given.per_batch * given.work / CORES
    more = {
        way: (found[way] - found[f"one {way}"]) / (given.batches - 1) for way in ("job", "micro", "queue")
    }
    table = figures.table(
        f"{given.batches} batches of {given.per_batch} chunks of {given.work:g} s {what} on {CORES} cores,"
        f" {alone:g} s of the clock each, medians of {given.rounds} rounds",
        *("job", "seconds", "beside the plain job", "beside plain micro-batches"),
    )
    for name, figure in (("end to end", found), ("a batch more", more)):
        job, micro, queue = (figure[way] for way in ("job", "micro", "queue"))
        table.add(f"{name}: with the queue", queue, times(queue, job), times(queue, micro))
        table.add(f"{name}: plain micro-batches, no queue", micro, times(micro, job), None)
        table.add(f"{name}: a plain job over all of it", job, None, None)
    table.add("the work alone, evenly spread", alone * given.batches, None, None)
    for way, name in (("queue", "the query"), ("micro", "plain micro-batches"), ("job", "the plain job")):
        table.add(f"to start and stop {name}, once", found[f"one {way}"] - more[way], None, None)


if __name__ == "__main__":
    main()
