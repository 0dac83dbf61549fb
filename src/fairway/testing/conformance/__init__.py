"""What every store must do: subclass `StoreConformance`, say how to open your store, run it with pytest.

Guards: a store is a store when it passes this suite; the engine relies on nothing that is not checked here.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def make(self, tmp_path):
            return lambda queue: MyStore.open(tmp_path / "data", queue)

Every call of `make` in one test opens another handle on the same data. For readable failures, put
`pytest.register_assert_rewrite("fairway.testing.conformance")` into your conftest.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairway.store.port import Store
from fairway.testing.conformance.contents import ContentRules
from fairway.testing.conformance.fence import FenceRules
from fairway.testing.conformance.owner import Make, Owner, everything
from fairway.testing.conformance.runs import RunRules
from fairway.testing.conformance.wholes import WholeRules
from fairway.testing.conformance.window import WindowRules

__all__ = ["Make", "Owner", "StoreConformance", "everything"]


class StoreConformance(FenceRules, RunRules, ContentRules, WholeRules, WindowRules):
    """The suite. `make(queue_name)` must be given by a fixture of the subclass."""

    @pytest.fixture
    def make(self) -> Make:
        pytest.fail("give a fixture `make` that opens a handle on the data of this test")

    @pytest.fixture
    def store(self, make: Make) -> Iterator[Store]:
        store = make("q")
        yield store
        store.close()

    @pytest.fixture
    def owner(self, store: Store) -> Owner:
        return Owner(store)
