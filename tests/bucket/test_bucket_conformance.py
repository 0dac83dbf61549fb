"""Every storage of bucket queues passes the same suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.bucket.port import BucketStorage
from fairway.store.memory.buckets import MemoryBuckets
from fairway.store.sqlite.buckets import SqliteBuckets
from fairway.testing.bucket.conformance import BucketConformance


class TestMemoryBuckets(BucketConformance):
    @pytest.fixture
    def storage(self) -> BucketStorage:
        return MemoryBuckets()


class TestSqliteBuckets(BucketConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[BucketStorage]:
        storage = SqliteBuckets.open(tmp_path / "work.db")
        yield storage
        storage.close()
