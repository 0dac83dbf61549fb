"""A stderr that somebody looks at, for the bars of long work."""

from __future__ import annotations

import io
import sys

import pytest


class Screen(io.StringIO):
    """What a terminal was told."""

    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Called by the test itself: pytest puts its own stderr there when one begins."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", made := Screen())
    return made
