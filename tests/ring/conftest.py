"""A folder in shared memory for each test, and the extension with fault points compiled in."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.ring import building
from tests.ring.need import need_ring


@pytest.fixture(autouse=True)
def built() -> None:
    need_ring()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in shared memory."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-test-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same C file with fault points, as a module: no such point exists in what is installed."""
    need_ring()
    built = building.build(tmp_path_factory.mktemp("faults"), "_ring_faults", ["FAULTS"])
    found = importlib.util.spec_from_file_location("_ring_faults", built)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["_ring_faults"] = module
    found.loader.exec_module(module)
    return module
