"""Programs that a test needs and that not every machine has."""

from __future__ import annotations

import os
import shutil

import pytest


def need_program(name: str) -> str:
    """Where a program is. Without it a test is skipped, or fails where such programs are required."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("FAIRWAY_REQUIRE_PROGRAMS") == "1":
            pytest.fail(f"{name} is required and not here; run `make system`")
        pytest.skip(f"needs {name}: run `make system`")
    return found
