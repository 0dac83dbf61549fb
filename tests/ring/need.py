"""What the tests of the ring need: the extension. Without a compiler they are skipped, with a word."""

from __future__ import annotations

import os

import pytest

from fairway.ring.native import BUILT


def need_ring() -> None:
    """Skip where the ring is not built; where it is required, fail."""
    if not BUILT:
        if os.environ.get("FAIRWAY_REQUIRE_RING") == "1":
            pytest.fail("the ring is required and not built: a C compiler or Python's headers are missing")
        pytest.skip("needs the ring's extension: no C compiler here")
