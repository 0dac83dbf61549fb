"""Both stores of this package pass the public suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.store.memory import MemoryStore, Shelf
from fairway.store.port import Store
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import Make, StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        shelf = Shelf()
        return lambda queue="q": MemoryStore.open(queue, shelf)


class TestMemoryStoreThatDeletesByRange(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        shelf = Shelf(by_range=True)
        return lambda queue="q": MemoryStore.open(queue, shelf)


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Make]:
        opened: list[Store] = []

        def make(queue: str = "q") -> Store:
            opened.append(SqliteStore.open(tmp_path / "work.db", queue))
            return opened[-1]

        yield make
        for store in opened:
            store.close()
