"""Spark's part without Spark: the calls it makes of a source and a sink, in its order, with deaths at every step.

The player keeps Spark's two logs and a versioned state, as a checkpoint does. Hundreds of stories take seconds.
"""

from __future__ import annotations

import pickle
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadMaxRows

from fairway.spark.columns import spark_of
from fairway.spark.finishing import Finish
from fairway.spark.mapping import _over
from fairway.spark.references import DONE_ARROW, REFERENCE_ARROW
from fairway.spark.settings import SINK, SOURCE, Settings
from fairway.spark.source import ChunkStream

CHUNKS = 17
ROWS = pa.schema([("x", pa.int64())])
CHUNKED = pa.schema([("x", pa.int64()), ("_chunk", pa.string())])
COUNTS = pa.schema([("k", pa.int64()), ("count", pa.int64())])


class Killed(Exception):
    """The driver died here."""


class Frame:
    """A micro-batch as foreachBatch gives it: the batches of each task, and what happens when all are through."""

    def __init__(self, tasks: list[list[pa.RecordBatch]], through: Callable[[], None]) -> None:
        self.tasks, self.through = tasks, through

    @property
    def columns(self) -> list[str]:
        return next((batch.schema.names for task in self.tasks for batch in task), [])

    def toDF(self, *names: str) -> Frame:
        tasks = [[batch.rename_columns(names) for batch in task] for task in self.tasks]
        return Frame(tasks, self.through)

    def mapInArrow(
        self, fn: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
    ) -> Frame:
        sent = pickle.loads(cloudpickle.dumps(fn))
        return Frame([list(sent(iter(task))) for task in self.tasks], self.through)

    def toArrow(self) -> pa.Table:
        self.through()
        return pa.Table.from_batches([batch for task in self.tasks for batch in task], DONE_ARROW)


class Player:
    """A checkpoint, and one start of a query after the other over it.

    Its mode is references, which gives a result per chunk; rows, which counts over all batches; echo, which gives
    the rows of each batch as they are; or chunked, which gives those of each chunk.
    """

    def __init__(self, url: str, mode: str, dice: Callable[[str], bool], objects: str | None = None) -> None:
        self.url, self.mode, self.dies = url, mode, dice
        self.objects = {"objects": objects} if objects else {}
        self.offsets: list[dict[str, int]] = []  # the offset log: the end of each batch
        self.commits = 0  # the commit log: batches that are through
        self.states: dict[int, Counter[int]] = {0: Counter()}  # of a groupBy().count(), by version
        self.places: Counter[str] = Counter()
        self.format = "arrow"  # of results
        self.complete = False  # the output mode: what Spark tells a sink as "overwrite"

    def here(self, place: str) -> None:
        if self.dies(place):
            self.places[place] += 1
            raise Killed(place)

    def made(self) -> tuple[ChunkStream, Finish]:
        """The source and the sink of a new start."""
        run = secrets.token_hex(4)
        given = {"path": self.url, "consumer": "c", "run": run, **self.objects}
        emit = "references" if self.mode == "references" else "rows"
        schema = {"references": REFERENCE_ARROW, "chunked": CHUNKED}.get(self.mode, ROWS)
        reader = ChunkStream(
            Settings(given | {"emit": emit, "maxChunksPerTrigger": "4"}, SOURCE), spark_of(schema)
        )
        sink_schema = {"rows": COUNTS, "echo": ROWS, "chunked": CHUNKED}.get(self.mode, DONE_ARROW)
        per_chunk = str(self.mode == "chunked").lower()
        sink = Settings(given | {"resultFormat": self.format, "perChunk": per_chunk}, SINK)
        return reader, Finish(sink, spark_of(sink_schema), self.complete)

    def start(self) -> None:
        """One run of the query: to its end, or to its death."""
        reader, writer = self.made()
        if not self.offsets:
            assert reader.initialOffset() == {"seq": 0}
        reader.prepareForTriggerAvailableNow()
        while True:
            if len(self.offsets) == self.commits:  # no batch waits to be replayed
                start = self.offsets[-1] if self.offsets else {"seq": 0}
                end = reader.latestOffset(start, ReadMaxRows(4))
                self.here("reserved")
                if end == start:
                    return
                self.offsets.append(end)
                self.here("noted")
                if self.commits:
                    reader.commit(start)
                self.here("trimmed")
            self.batch(reader, writer)

    def batch(self, reader: ChunkStream, writer: Finish) -> None:
        number = self.commits
        start = self.offsets[number - 1] if number else {"seq": 0}
        parts = reader.partitions(start, self.offsets[number])
        self.here("planned")
        if self.mode == "rows":
            state = Counter(self.states[number])
            for part in parts:
                for batch in reader.read(part):
                    state.update(x % 7 for x in batch["x"].to_pylist())
            self.states[number + 1] = state  # the state store commits in tasks, before the sink does
            table = pa.table({"k": list(state), "count": list(state.values())}, schema=COUNTS)
            tasks = [table.to_batches()]
        elif self.mode in ("echo", "chunked"):
            tasks = [list(reader.read(part)) for part in parts]
        else:
            tasks = [list(_over(reader.read(part), lambda t: t, None, self.format)) for part in parts]
        if number % 2:  # by turns as `process` has it, and as a sink by hand
            done: Any = Frame(tasks, lambda: self.here("worked"))
            writer(done, number)
        else:
            messages = [writer.write(iter(task)) for task in tasks]
            self.here("worked")
            writer.commit(messages, number)
        self.here("committed")
        self.commits += 1
        self.here("logged")


def play(player: Player, starts: int = 500) -> None:
    for _ in range(starts):
        try:
            return player.start()
        except Killed:
            continue
    raise AssertionError("it never came to its end")
