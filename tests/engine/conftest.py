"""A window that a test's desks have unless they are told another."""

from __future__ import annotations

import pytest

from tests.engine.desk import Desk


@pytest.fixture
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """See `desk.through_windows`."""
    monkeypatch.setattr(Desk, "usual_window", request.param)
    return request.param
