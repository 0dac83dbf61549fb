"""A backlog larger than memory, on Cassandra: small windows hand out the same chunks, after a change of owner too."""

from __future__ import annotations

import uuid

import pytest

import fairway
from fairway.testing.cassandra.sharing import Address as Cluster

pytestmark = pytest.mark.real


@pytest.mark.parametrize("window_rows", [2, 8])
def test_a_small_window_hands_out_everything_once(cassandra: Cluster, window_rows: int) -> None:
    url = f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"
    payloads = [b"%d" % n for n in range(60)]
    seen: list[bytes] = []
    with fairway.open(url, window_rows=window_rows) as q:
        q.put_many([{"payload": payload, "tenant": f"t{n % 7}"} for n, payload in enumerate(payloads)])
        for _ in range(3):
            leases = q.reserve(max=7, wait_seconds=10)
            seen += [lease.payload for lease in leases]
            q.complete(leases)
    with fairway.open(url, window_rows=window_rows) as q:
        while leases := q.reserve(max=7, wait_seconds=2):
            seen += [lease.payload for lease in leases]
            q.complete(leases)
    assert sorted(seen) == sorted(payloads)
