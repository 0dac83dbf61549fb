"""A server for the tests of one module, and one for a single test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.server.live import Live, live


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path) as found:
        yield found


@pytest.fixture
def http(server: Live) -> Iterator[httpx2.Client]:
    with server.http() as client:
        yield client
