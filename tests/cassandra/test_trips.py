"""A group costs the same few round trips, whatever it holds."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import fairway
from fairway.store.cassandra import Connection
from fairway.testing.cassandra.sharing import Address as Cluster
from fairway.testing.cassandra.trips import Trips

pytestmark = pytest.mark.real
ROUNDS = 12  # more than the log holds, so that groups wait for those before them
PAGES = 1  # a group above 64 KiB goes before its conditional write, up to four pages of 256 KiB at once
LOG = 1  # a group waits if the four before it are not in the tables yet
CLEARING = 1  # now and then it looks where rows were removed


def _a_group(q: fairway.Queue, do: Callable[[], object], behind: bool) -> tuple[float, float, float]:
    """Round trips, requests and rows of a group of its own; `behind`: the tables are as late as they may be."""
    store: Any = q._port._member.store  # type: ignore[attr-defined]
    tables = store._tables
    if behind:
        tables.written = lambda last: tables._under_way[0].number - 1 if tables._under_way else last
    first, trips = store.last_number(), Trips(store)
    for _ in range(ROUNDS):
        do()
    trips.stop()
    groups = store.last_number() - first
    return trips.waits / groups, trips.requests.total() / groups, trips.rows.total() / groups


@pytest.mark.parametrize("behind", [False, True], ids=["tables keep up", "tables are behind"])
def test_round_trips_of_a_group_do_not_grow_with_it(
    cassandra: Cluster, connection: Connection, behind: bool
) -> None:
    puts: dict[int, Any] = {}
    ends: dict[int, Any] = {}
    for batch in (100, 1000):
        url = f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"
        with fairway.open(url) as q:
            messages = [{"payload": b"x" * 200, "tenant": f"t{n % 20}"} for n in range(batch)]
            puts[batch] = _a_group(q, lambda q=q, messages=messages: q.put_many(messages), behind)
            ends[batch] = _a_group(q, lambda q=q, batch=batch: q.complete(q.reserve(batch)), behind)
    for what, counted in (("put", puts), ("reserve and complete", ends)):
        (few, _, _), (many, requests, rows) = counted[100], counted[1000]
        print(f"{what}: {few:.1f} round trips of a group of 100, {many:.1f} of 1000; {requests:.1f} requests")
        assert many <= few + PAGES + LOG + CLEARING, counted
        assert many <= 6 and requests < rows / 20, counted
    assert not behind or puts[100][0] > 1 + LOG / 2, "the log was full, and groups waited"
