"""The store on Cassandra passes the public suite, on a real node."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from fairway.store.cassandra import CassandraStore, Connection
from fairway.store.port import Store
from fairway.testing.conformance import Make, StoreConformance

pytestmark = pytest.mark.real


class TestCassandraStore(StoreConformance):
    @pytest.fixture
    def make(self, connection: Connection) -> Iterator[Make]:
        opened: list[Store] = []
        realm = uuid.uuid4().hex

        def make(queue: str = "q") -> Store:
            opened.append(CassandraStore.open(connection, queue, realm=realm))
            return opened[-1]

        yield make
        for store in opened:
            store.close()
