"""Clocks that a test sets: the wall clock jumps as people set it, the monotonic one as a machine that slept has it."""

from __future__ import annotations

import time

import pytest

HOUR = 3600.0


class Clocks:
    """Stands where a module has `time`; real time, and what a test has added to it."""

    def __init__(self) -> None:
        self.wall = self.slept = 0.0

    def time(self) -> float:
        return time.time() + self.wall + self.slept

    def monotonic(self) -> float:
        return time.monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def put_into(self, patch: pytest.MonkeyPatch, *modules: str) -> None:
        for module in modules:
            patch.setattr(f"{module}.time", self)
