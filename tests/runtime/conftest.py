"""Queues to test on: the same tests run in memory and on a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway


@pytest.fixture(params=[":memory:", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == ":memory:" else str(tmp_path / "work.db")


@pytest.fixture
def q(url: str) -> Iterator[fairway.Queue]:
    with fairway.open(url) as queue:
        yield queue
