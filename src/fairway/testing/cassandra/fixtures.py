"""Fixtures: import them into a conftest.py.

Guards: tests get an address, never a process, unless they ask for a cluster of their own to break.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.testing.cassandra.cluster import Cluster
from fairway.testing.cassandra.sharing import Address, needed, run_folder, shared

__all__ = ["cassandra", "cassandra_three"]


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Address:
    """One node, shared by the whole run: each test uses partition keys of its own."""
    return shared(run_folder(tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="module")
def cassandra_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes for one module, to kill and to pause."""
    folder: Path = tmp_path_factory.mktemp("cassandra3")
    with needed():
        cluster = Cluster(folder, 3)
    with cluster:
        yield cluster
