"""A reload of a fair queue meets few tombstones, whatever went through it and however; its fenced partition is small.

The fair task reader's document counts Tp, tombstones between the stored A and the true one, Tg, those of one clearing,
and Ng, removed rows between two clearings. Here A is in every group, so Tp is 0; the other two are measured.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import fairway
from fairway.limits import CASSANDRA_RANGE_ROWS, CASSANDRA_TOMBSTONES_MAX
from fairway.model.stored import Drop, End, Kind, Put, Row
from fairway.store.cassandra import CassandraStore, Connection
from fairway.testing.cassandra.sharing import Address as Cluster
from fairway.testing.conformance import Owner
from tests.cassandra.tombstones import meets, reload_meets
from tests.proving import number

MESSAGES = number("MESSAGES", 1_000_000)
BATCH = number("BATCH", 1000)
FENCED_BYTES_MAX = 64 * 1024 * 1024
TOMBSTONES_MAX = 1000
NG, TG = CASSANDRA_TOMBSTONES_MAX, CASSANDRA_RANGE_ROWS
TRIES = 4
KINDS = (Kind.PROGRESS, Kind.HOLD)
RANGES = 60  # each stretch between live rows of a partition may have one

pytestmark = pytest.mark.real


class Run:
    """A queue in which each message leaves a row in five partitions that a reload reads."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._realm = connection, uuid.uuid4().hex
        self.next = 1
        self.stay = [0]
        self.begin()
        self.owner.write(rows=[Row(self.owner.id(0), 0, "t", 0.0, {}, b"a long lease holds the front")])

    def begin(self) -> None:
        """A new owner; the one before, if there was one, has crashed."""
        self.store = CassandraStore.open(self._connection, "q", realm=self._realm)
        self.owner = Owner(self.store)

    def messages(self, many: int, stays: int = 0) -> None:
        """So many come in one group and are done in another; every so many-th is of a paused tenant, and stays."""
        owner, numbers = self.owner, range(self.next, self.next + many)
        self.next += many
        rows = [Row(owner.id(n), n, "t", float(n), {}, b"body", (), float(n)) for n in numbers]
        owner.write(rows=rows, puts=[Put(kind, row.id, 0, b"p") for row in rows for kind in KINDS])
        self.stay += [n for n in numbers if stays and n % stays == 0]
        gone = [row for n, row in zip(numbers, rows, strict=True) if not stays or n % stays]
        ends = [End(row.id, row.pass_, "t", "completed", 1.0, b"") for row in gone]
        owner.write(ends=ends, drops=[Drop(kind, row.id, 0) for row in gone for kind in KINDS])

    def removed(self) -> int:
        """Rows that were removed by key and that no range covers yet."""
        return sum(map(len, self.store._tables._dropped.values()))

    def meets(self) -> int:
        """What a reload would meet now."""
        return sum(meets(self._connection, self._reload).values())

    def _reload(self) -> None:
        store = self.store
        store.last_number()
        assert self.owner.active() == self.stay
        for kind in Kind:
            there = len(list(store.objects(kind)))
            assert kind == Kind.PAGE or there == (kind in KINDS) * (len(self.stay) - 1)
        list(store.journal())
        store._fencing.logged(store._fencing.read().written)
        for what in ("due", "deadline"):
            assert len(store.times(what, (0.0, 0), 10_000)) == len(self.stay) - 1


@pytest.fixture
def run(connection: Connection) -> Iterator[Run]:
    run = Run(connection)
    yield run
    run.store.close()


@pytest.mark.parametrize("batch", [1, 10, 100, 499])
def test_a_reload_meets_few_tombstones_in_every_phase(run: Run, batch: int) -> None:
    at_once = 5 * batch >= TG  # so many leave by ranges, so nothing is left to be covered later
    most, before, covered = 0, 0, False
    while not covered:
        run.messages(batch)
        removed = run.removed()
        assert removed < NG, "they are covered before they are so many, whatever partition they are in"
        covered = removed < before or (at_once and run.next > 2 * batch)
        before = removed
        if removed >= NG - 5 * batch or covered:  # just before they are covered, and after it
            most = max(most, run.meets())
            print(f"batches of {batch}: {removed} removed by key, a reload meets {most} at most")
    assert most <= NG + TG + RANGES < TOMBSTONES_MAX, most
    assert at_once or most >= NG - 5 * batch, "what was removed by key is met, or nothing was measured"


def test_rows_that_stay_do_not_add_up_to_tombstones(connection: Connection) -> None:
    """A tenant of four is paused: between its rows are 1,250 stretches, and each could have a range."""
    met: list[int] = []
    while len(met) < TRIES and min(met, default=TOMBSTONES_MAX) >= TOMBSTONES_MAX:
        run = Run(connection)
        for _ in range(10):
            run.messages(100, stays=4)
        met.append(run.meets())
        run.store.close()
    print(f"{len(run.stay)} rows stay, a reload meets {met}")
    assert min(met) < TOMBSTONES_MAX, met


def test_what_crashed_owners_removed_does_not_add_up(run: Run) -> None:
    """None of them removes enough to cover it, and the next one does not know where it was."""
    for _ in range(6):
        run.messages(19)  # 95 rows, by key
        run.begin()
    assert run.meets() <= TG + RANGES


def test_an_owner_that_leaves_covers_what_it_removed(connection: Connection) -> None:
    """A node that writes to its disk in between still reads what is covered there: then it is tried again."""
    met: list[int] = []
    while len(met) < TRIES and min(met, default=RANGES + 1) > RANGES:
        run = Run(connection)
        run.messages(19)
        assert run.removed()
        run.store.close()
        before = run.store
        run.begin()
        assert before._tables.crowded() is False and not before._tables._dropped
        met.append(run.meets())
        run.store.close()
    assert min(met) <= RANGES, met


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_a_million_messages_leave_a_small_fence_and_few_tombstones(
    cassandra: Cluster, connection: Connection, record_proof: Callable[..., None]
) -> None:
    realm = uuid.uuid4().hex
    url = f"{cassandra.url}fairway_tests?realm={realm}"
    with fairway.open(url) as q:
        q.put(b"held", tenant="slow")
        held = q.reserve(1, lease_seconds=3600)  # one long lease holds the front
        done = 0
        while done < MESSAGES:
            q.put_many([{"payload": b"x" * 200, "tenant": f"t{n % 20}"} for n in range(BATCH)])
            while leases := q.reserve(BATCH):
                done += q.complete(leases).count("done")
            q.renew(held, 3600)
        ((queue, _),) = connection.read("find_queue", (realm, "default"))
        ((*_, meta),) = connection.read("fence", (queue,))
        logged = connection.read("logged", (queue, -2))
        fenced = len(meta) + sum(len(body or b"") + 200 for _, _, body, _ in logged)
        met = reload_meets(url)  # it takes over: the owner is as good as crashed, nothing was covered
    told = Counter[str]()
    for text, many in met.items():
        told[text.split("FROM")[1].split()[0]] += many
    print(f"{done:,} messages: fenced partition {fenced / 1024:,.0f} KiB, a reload meets {dict(told)}")
    note = f"the fenced partition has {fenced:,} bytes, a reload meets {sum(met.values())} tombstones"
    record_proof("messages through a queue on Cassandra", operations=done, lost=0, note=note)
    assert fenced < FENCED_BYTES_MAX
    assert sum(met.values()) < TOMBSTONES_MAX, met
