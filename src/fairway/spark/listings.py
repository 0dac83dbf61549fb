"""Listings as DataFrames: submissions, chunks, events and dead chunks.

Guards: reading changes nothing in the queue, however often Spark plans or runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from fairway.errors import BadArgument, NotFound
from fairway.face.arrow import SCHEMA as EVENTS_ARROW
from fairway.spark.queues import attached
from fairway.spark.settings import Settings

if TYPE_CHECKING:
    from fairway.face.queue import Queue

_BATCH_ROWS = 10_000

SUBMISSIONS = pa.schema(
    [
        ("id", pa.int64()),
        ("state", pa.string()),
        ("tenant", pa.string()),
        ("total", pa.int64()),
        ("done", pa.int64()),
        ("failed", pa.int64()),
        ("leased", pa.int64()),
        ("created", pa.float64()),
        ("ended", pa.float64()),
        ("life", pa.int32()),
        ("paused", pa.bool_()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("priority", pa.int64()),
        ("policy", pa.string()),
        ("key", pa.string()),
        ("error", pa.string()),
        ("error_index", pa.int64()),
    ]
)
CHUNKS = pa.schema(
    [
        ("submission", pa.int64()),
        ("index", pa.int32()),
        ("tenant", pa.string()),
        ("state", pa.string()),  # done, dead or open
        ("epoch", pa.int64()),  # which attempt completed it, and which writer of it
        ("reservation", pa.int64()),
        ("writer", pa.int64()),
        ("attempts", pa.int32()),  # of a dead one
        ("error", pa.string()),
    ]
)
DEAD = pa.schema(
    [
        ("submission", pa.int64()),
        ("index", pa.int32()),
        ("tenant", pa.string()),
        ("attempts", pa.int32()),
        ("error", pa.string()),
        ("at", pa.float64()),
    ]
)
EVENTS = pa.schema([(f.name, pa.string() if f.name == "what" else f.type) for f in EVENTS_ARROW])
SCHEMAS = {"submissions": SUBMISSIONS, "chunks": CHUNKS, "events": EVENTS, "dead": DEAD}


@dataclass
class Some(InputPartition):
    """Rows that were read on the driver, or a span that a task reads: of the event log, or of a submission."""

    rows: list[dict[str, Any]] | None = None
    first: int = 0
    last: int = 0
    submission: int = 0
    tenant: str = ""
    dead: dict[int, tuple[int, str]] | None = None


class Listing(DataSourceReader):
    """spark.read.format("fairway") of these kinds. `partitions` runs for explain() too, and `read` in tasks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kind = settings["kind"]
        if self.kind == "events" and settings["tenant"] is not None:
            raise BadArgument(
                "option tenant: an event has its tenant only where it was submitted; read the submissions of the"
                " tenant, and join the events with them",
                argument="tenant",
            )

    def partitions(self) -> Sequence[InputPartition]:
        queue = attached(self.settings.url, self.settings.queue)
        per_task = self.settings["rowsPerTask"]
        if self.kind == "events":
            return event_spans(queue, per_task)
        if self.kind == "chunks":
            return chunk_spans(queue, self.settings, per_task)
        rows = iter(_ROWS[self.kind](queue, self.settings))
        found: list[InputPartition] = []
        while some := list(islice(rows, per_task)):
            found.append(Some(some))
        return found or [Some([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert isinstance(partition, Some)
        schema = SCHEMAS[self.kind]
        rows = iter(partition.rows or ())
        if partition.rows is None:
            rows = self._events(partition) if self.kind == "events" else self._chunks(partition)
        while some := list(islice(rows, _BATCH_ROWS)):
            yield pa.RecordBatch.from_pylist(some, schema)

    def _events(self, span: Some) -> Iterator[dict[str, Any]]:
        for event in attached(self.settings.url, self.settings.queue).events(span.first):
            if event.number > span.last:
                return
            if self.settings["submission"] not in (0, event.submission):
                continue
            yield {name: getattr(event, name) for name in EVENTS.names}

    def _chunks(self, span: Some) -> Iterator[dict[str, Any]]:
        queue = attached(self.settings.url, self.settings.queue)
        try:
            wins = list(queue.winners(span.submission, span.first, span.last - span.first))
        except NotFound:
            return  # it was forgotten since it was listed
        state: dict[int, dict[str, Any]] = {
            index: {"state": "done", "epoch": win.epoch, "reservation": win.reservation, "writer": win.writer}
            for win in wins
            for index in range(win.start, win.start + win.count)
        }
        for index, (attempts, error) in (span.dead or {}).items():
            state[index] = {"state": "dead", "attempts": attempts, "error": error}
        for index in range(span.first, span.last):
            told = {"submission": span.submission, "index": index, "tenant": span.tenant}
            yield told | state.get(index, {"state": "open"})


def chunk_spans(queue: Queue, settings: Settings, per_task: int) -> list[InputPartition]:
    """Every submission in spans of chunks, with what is dead in them."""
    dead: dict[int, dict[int, tuple[int, str]]] = {}
    for one in _dead(queue, settings):
        dead.setdefault(one["submission"], {})[one["index"]] = (one["attempts"], one["error"])
    found: list[InputPartition] = []
    for one in _chosen(queue, settings):
        mine = dead.get(one.id, {})
        for first in range(0, one.total, per_task):
            last = min(first + per_task, one.total)
            marks = {index: mark for index, mark in mine.items() if first <= index < last}
            found.append(Some(None, first, last, one.id, one.tenant, marks))
    return found or [Some([])]


def event_spans(queue: Queue, per_task: int) -> list[InputPartition]:
    """The event log in spans of group numbers, found by halving: (first, last] of each."""
    first = next(iter(queue.events()), None)
    if first is None:
        return [Some([])]
    low, high = first.number, first.number + 1
    while next(iter(queue.events(high)), None) is not None:
        low, high = high, high * 2
    while low < high:  # the last number that has events
        middle = (low + high) // 2
        if next(iter(queue.events(middle)), None) is None:
            high = middle
        else:
            low = middle + 1
    step = max(1, per_task // 16)  # a group has about this many events
    starts = range(first.number - 1, low, step)
    return [Some(None, start, min(start + step, low)) for start in starts]


def _submissions(queue: Queue, settings: Settings) -> Iterator[dict[str, Any]]:
    for one in _chosen(queue, settings):
        row = {name: getattr(one, name) for name in SUBMISSIONS.names}
        row["metadata"] = [(key, str(value)) for key, value in one.metadata.items()]
        yield row


def _chosen(queue: Queue, settings: Settings) -> Iterator[Any]:
    if settings["submission"]:
        return iter([queue.submission(settings["submission"])])
    return queue.submissions(tenant=settings["tenant"])


def _dead(queue: Queue, settings: Settings) -> Iterator[dict[str, Any]]:
    for one in queue.dead():
        if settings["submission"] in (0, one.submission) and settings["tenant"] in (None, one.tenant):
            yield {name: getattr(one, name) for name in DEAD.names}


_ROWS: dict[str, Callable[[Queue, Settings], Iterator[dict[str, Any]]]] = {
    "submissions": _submissions,
    "dead": _dead,
}
