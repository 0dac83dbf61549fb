"""Reads of the tables, which follow the log: who may answer them, and what they show while groups are under way.

The store as shipped, on an imagined cluster: its plain writes arrive when the test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from fairway.errors import Fenced, StoreFailed
from fairway.face.queue import Queue
from fairway.runtime.running import Running
from fairway.store.cassandra import CassandraStore
from fairway.testing.conformance import Owner
from fairway.testing.imagined.cluster import Cluster
from tests.runtime.running import queue_on

Join = Callable[[], tuple[Running, Queue]]


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster("reads")
    cluster.dice.random = lambda: 1.0  # nothing arrives by itself
    return cluster


@pytest.fixture
def join(cluster: Cluster) -> Iterator[Join]:
    with ExitStack() as opened:

        def join() -> tuple[Running, Queue]:
            run = Running("default", cluster.open("q"))
            return run, opened.enter_context(queue_on(run))

        yield join


@pytest.mark.parametrize(
    "read",
    [
        lambda q, id: [one.id for one in q.submissions(state="completed")],
        lambda q, id: list(q.submissions(state="failed")),
        lambda q, id: list(q.results(id)),
        lambda q, id: list(q.dead()),
        lambda q, id: list(q.events()),
        lambda q, id: q.stats(),
    ],
    ids=["completed", "failed", "results", "dead", "events", "stats"],
)
def test_a_deposed_owner_answers_no_read_of_the_store(
    join: Join, read: Callable[[Queue, int], object]
) -> None:
    """Whatever is asked first: the new owner has acknowledged what the tables do not show yet."""
    run, old = join()
    sub = old.submit([b"p"])
    _, new = join()
    (lease,) = new.reserve()
    new.complete(lease, result=b"r")
    run.host.confirmed = 0.0  # long ago
    with pytest.raises(Fenced):
        read(old, sub.id)
    assert read(new, sub.id) is not None


def test_an_owner_that_was_confirmed_answers_reads_of_the_store(join: Join) -> None:
    run, q = join()
    sub = q.put(b"p")
    (lease,) = q.reserve()
    q.complete(lease, result=b"r")
    for confirmed in (run.host.confirmed, 0.0):
        run.host.confirmed = confirmed
        assert [one.id for one in q.submissions(state="completed")] == [sub.id]
        assert [q.read(one) for one in q.results(sub.id)] == [b"r"]
    assert run.host.confirmed > 0.0, "the store was asked"


def test_an_owner_whose_engine_is_rebuilt_reads_what_it_stored_before(cluster: Cluster) -> None:
    """It takes over anew; until the log is in the tables again, nothing shows them as if it were."""
    owner = Owner(cluster.open("q"))
    store: Any = owner.store
    owner.write(rows=[owner.row(1)], ends=[owner.end(1)])
    seen: list[list[int]] = []
    real = store._fencing.logged

    def logged(after: int) -> Any:
        seen.append(owner.ended())  # a call that another thread makes meanwhile
        return real(after)

    store._fencing.logged = logged
    store.take_over()
    assert seen == [[1]]


def test_an_owner_that_cannot_write_its_log_into_the_tables_answers_no_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(cluster.open("q"))
    owner.write(rows=[owner.row(1)], ends=[owner.end(1)])
    store: Any = cluster.open("q")
    real = store._connection.send

    def send(statement: object) -> object:
        raise StoreFailed

    monkeypatch.setattr(store._connection, "send", send)
    with pytest.raises(StoreFailed):
        store.take_over()
    with pytest.raises(StoreFailed):
        store.ended("", None, {}, 0, 9)
    monkeypatch.setattr(store._connection, "send", real)
    assert Owner(store).ended() == [1]


def test_who_follows_the_events_misses_no_group(cluster: Cluster) -> None:
    """Groups reach the tables in any order: one that is there is not shown before those that come before it."""
    owner = Owner(cluster.open("q"))
    store = owner.store
    assert isinstance(store, CassandraStore)
    owner.write(events=b"1", event_time=1.0)
    connection: Any = store._connection
    real = connection.read

    def read(name: str, values: Sequence[Any]) -> Any:
        if name == "events":
            connection.read = real
            for number in (2, 3):  # stored while the read is under way
                owner.write(events=b"%d" % number, event_time=float(number))
            cluster.under_way[-1].arrive()
        return real(name, values)

    connection.read = read
    numbers: list[int] = []
    for _ in range(2):
        numbers += [number for number, _, _ in store.events(numbers[-1] if numbers else 0, 9)]
    assert numbers == [1, 2, 3]
