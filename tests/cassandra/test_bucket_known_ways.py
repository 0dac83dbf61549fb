"""The known ways in which leaderless queues lose or block messages, each played step by step on a real node."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from fairway.store.cassandra import Connection
from fairway.store.cassandra.buckets import CassandraBuckets
from fairway.store.cassandra.opening import prepare
from tests.bucket import test_known_ways as known_ways
from tests.bucket.directing import Stage, StageOf

pytestmark = pytest.mark.real

# Every one that asks a storage anything, also those that are added later.
globals().update(
    {
        name: test
        for name, test in vars(known_ways).items()
        if "stage_of" in getattr(test, "__annotations__", {})
    }
)


@pytest.fixture
def stage_of(connection: Connection) -> Iterator[StageOf]:
    """Every stage has a realm and a generation of its own; all share the connection."""
    prepare(connection, True, "bucket_schema.cql")
    opened: list[CassandraBuckets] = []

    def make(**settings: Any) -> Stage:
        opened.append(CassandraBuckets(connection.share(), secrets.token_hex(4)))
        return Stage(opened[-1], secrets.randbits(40), **settings)

    yield make
    for storage in opened:
        storage.close()
