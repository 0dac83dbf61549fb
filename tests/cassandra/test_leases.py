"""Leases on a real cluster: what a lost worker held can be handed out again in the time that is promised."""

from __future__ import annotations

import time
import uuid

import pytest

import fairway
from fairway.store.cassandra import Connection
from fairway.testing.cassandra.sharing import Address as Cluster

pytestmark = pytest.mark.real
AGAIN_SECONDS = 5.0  # what is promised of a cluster, after the end of the lease


def test_a_lease_that_ran_out_is_handed_out_again_within_five_seconds(
    cassandra: Cluster, connection: Connection
) -> None:
    with fairway.open(f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}") as q:
        q.put(b"x")
        (first,) = q.reserve(lease_seconds=1)
        (second,) = q.reserve(wait_seconds=60)
        assert 0 <= time.time() - first.deadline <= AGAIN_SECONDS
        assert (second.submission, second.attempt) == (first.submission, 2)
        with pytest.raises(fairway.LeaseLost):
            q.complete(first)
        assert q.complete(second) == "done"
