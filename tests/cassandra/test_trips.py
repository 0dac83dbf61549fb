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
ROUNDS = 3
PAGES = 1  # a group above 64 KiB goes before its conditional write, all pages at once


def _a_group(q: fairway.Queue, do: Callable[[], object]) -> tuple[float, float, float]:
    """Round trips, requests and rows of a group of its own."""
    store: Any = q._port._member.store  # type: ignore[attr-defined]
    first, trips = store.last_number(), Trips(store)
    for _ in range(ROUNDS):
        do()
    trips.stop()
    groups = store.last_number() - first
    return trips.waits / groups, trips.requests.total() / groups, trips.rows.total() / groups


def test_round_trips_of_a_group_do_not_grow_with_it(cassandra: Cluster, connection: Connection) -> None:
    puts: dict[int, Any] = {}
    ends: dict[int, Any] = {}
    for batch in (100, 1000):
        url = f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"
        with fairway.open(url) as q:
            messages = [{"payload": b"x" * 200, "tenant": f"t{n % 20}"} for n in range(batch)]
            puts[batch] = _a_group(q, lambda q=q, messages=messages: q.put_many(messages))
            ends[batch] = _a_group(q, lambda q=q, batch=batch: q.complete(q.reserve(batch)))
    for what, counted in (("put", puts), ("reserve and complete", ends)):
        (few, _, _), (many, requests, rows) = counted[100], counted[1000]
        print(f"{what}: {few:.1f} round trips of a group of 100, {many:.1f} of 1000; {requests:.1f} requests")
        assert few <= many <= few + PAGES, counted
        assert many <= 6 and requests < rows / 20, counted
