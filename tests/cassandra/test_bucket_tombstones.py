"""What a reserve reads does not grow with the buckets that are done."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from secrets import randbits, token_hex
from typing import Any

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import TraceUnavailable

from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST, place_after
from fairway.bucket.rows import QueueRow
from fairway.bucket.taking import TOP
from fairway.store.cassandra import Connection
from fairway.store.cassandra.bucket_reading import plain, to_uuid
from fairway.store.cassandra.buckets import CassandraBuckets
from fairway.store.cassandra.opening import prepare
from tests.bucket.directing import Stage
from tests.proving import number

ROUND = 1000  # buckets that are done between two moves of the floor
LIVE = 9  # buckets that are not done at the end
IN_FLIGHT = 64
TRIES = 20
TOMBSTONES_MAX = 1000


@dataclass
class Met:
    """Tombstones that the reads of one reserve, and a new repairer's sweep, meet, as the server traces them."""

    queue: int = 0
    index: int = 0
    buckets: int = 0
    sweep: int = 0

    @property
    def all(self) -> int:
        """Those of the reserve."""
        return self.queue + self.index + self.buckets

    def __str__(self) -> str:
        told = f"{self.queue} in the queue's row, {self.index} in the index, {self.buckets} in {LIVE} buckets"
        return f"{told}, {self.sweep} in the index below the floor"


class Lives:
    """A queue through which many buckets go."""

    def __init__(self, connection: Connection) -> None:
        prepare(connection, True, "bucket_schema.cql")
        self.session: Any = connection.session
        self.storage = CassandraBuckets(connection.share(), token_hex(4))
        self.stage = Stage(self.storage, randbits(40), bucket_rows=1, seal_seconds=0.0)
        self.done = 0

    def by_machines(self, buckets: int) -> None:
        """Buckets are filled, emptied, sealed and removed, and the floor is moved, all as in use."""
        stage, end = self.stage, self.done + buckets
        while self.done < end:
            some = min(20, end - self.done)
            for n in range(some):
                stage.put(b"%d" % n)
            stage.now += 60.0
            assert stage.complete(stage.reserve()) == ["done"] * some
            stage.repair(3)
            stage.repair()  # a repairer rests between two sweeps of the index; the first of another one comes at once
            assert stage.index() == []
            self.done += some

    def by_index(self, buckets: int) -> None:
        """Of a million buckets a reserve reads nothing but what is left of their entries: those come and go."""
        generation = self.stage.generation
        for first in range(0, buckets, ROUND):
            self.stage.now += ROUND
            places = [place_after(self.stage.now + n, [], n) for n in range(min(ROUND, buckets - first))]
            self._enter([(plain(generation), to_uuid(place), "node", 0.0) for place in places])
            queue: QueueRow = self.stage.execute(s.ReadQueue("q", generation))
            self.stage.run(s.insist(s.MoveFloor("q", generation, queue.version, places[-1])))
            assert self.stage.floor() == places[-1]
            self.stage.run(s.insist(s.DropIndex(generation, places[-1])))
            self.done += len(places)
        self.stage.now += 2 * ROUND

    def _enter(self, rows: list[Any]) -> None:
        """Entries of the index, many at once; those that a busy node did not answer once more."""
        statement = self.storage._session._ready("add_index")
        for _ in range(TRIES):
            results: Any = execute_concurrent_with_args(
                self.session, statement, rows, concurrency=IN_FLIGHT, raise_on_first_error=False
            )
            rows = [row for row, (good, _) in zip(rows, results, strict=True) if not good]
            if not rows:
                return
        pytest.fail(f"{len(rows)} entries could not be written")

    def met(self) -> Met:
        """What a reserve meets now, with a few buckets that are not done."""
        stage = self.stage
        for n in range(LIVE):
            stage.put(b"%d" % n)
        live = stage.index()
        assert len(live) == LIVE
        generation, realm = plain(stage.generation), self.storage._realm
        met = Met(self._read("read_queue", realm, "q", generation))
        met.index = self._read("read_index", generation, to_uuid(stage.floor()), to_uuid(TOP), 1000)
        met.buckets = sum(self._read("look", generation, to_uuid(bucket), 1000) for bucket in live)
        floor = to_uuid(stage.floor())
        met.sweep = self._read("read_index", generation, to_uuid(LOWEST), floor, 1000)
        return met

    def _read(self, name: str, *values: Any) -> int:
        """What a node says in the trace of a read. A busy node loses traces: then it is read again."""
        for _ in range(TRIES):
            statement = self.storage._session._ready(name)
            answer: Any = self.session.execute(statement, values, trace=True, timeout=60.0)
            try:
                events = [event.description for event in answer.get_query_trace(max_wait_sec=10).events]
            except TraceUnavailable:
                continue
            told = [re.search(r"Read \d+ live rows and (\d+) tombstone cells", event) for event in events]
            found = [int(match[1]) for match in told if match]
            if found:
                return sum(found)
        pytest.fail(f"no trace of {name} says what it met")


def live_through(connection: Connection, by_machines: int, buckets: int) -> Met:
    lives = Lives(connection)
    try:
        lives.by_machines(by_machines)
        lives.by_index(buckets - by_machines)
        met = lives.met()
        print(f"{lives.done:,} buckets done, {by_machines:,} of them by the machines: {met}")
        assert lives.done == buckets
        return met
    finally:
        lives.storage.close()


@pytest.mark.real
def test_done_buckets_leave_few_tombstones_to_a_reserve(connection: Connection) -> None:
    assert live_through(connection, 60, 5 * ROUND).all < TOMBSTONES_MAX


@pytest.mark.proof
@pytest.mark.real
@pytest.mark.timeout(0)
def test_a_million_done_buckets_leave_few_tombstones_to_a_reserve(
    connection: Connection, record_proof: Callable[..., None]
) -> None:
    buckets = number("BUCKETS", 1_000_000)
    filled = min(1000, buckets)
    met = live_through(connection, filled, buckets)
    wrong = met.all >= TOMBSTONES_MAX
    note = (
        f"entries of the index that came and went, {filled:,} of them with a bucket that was filled, emptied and"
        f" removed; then a reserve read {met.all} tombstones, {TOMBSTONES_MAX:,} were allowed,"
        f" and a new repairer {met.sweep:,}, for each sweep of the index one"
    )
    record_proof(
        "tombstones after many buckets of a bucket queue", operations=buckets, lost=int(wrong), note=note
    )
    assert not wrong
