"""Bucket queues on a real Cassandra pass the suite that every storage passes."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import pytest

from fairway.bucket.port import BucketStorage
from fairway.store.cassandra import Connection
from fairway.store.cassandra.buckets import CassandraBuckets
from fairway.store.cassandra.opening import prepare
from fairway.testing.bucket.conformance import BucketConformance


@pytest.mark.real
class TestCassandraBuckets(BucketConformance):
    @pytest.fixture
    def storage(self, connection: Connection) -> Iterator[BucketStorage]:
        prepare(connection, True, "bucket_schema.cql")
        storage = CassandraBuckets(connection.share(), token_hex(4))
        yield storage
        storage.close()
