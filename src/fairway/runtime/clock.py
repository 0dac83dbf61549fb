"""Engine time: the wall clock at the start, or what is stored if that is later, plus monotonic time since.

Guards: it never runs backward and never stands still, whatever is done to the wall clock, now or between two starts.
"""

from __future__ import annotations

import time
from typing import Final

from fairway.engine.timing import counted_on

_LOOKS: Final = 3


class Clock:
    """Seconds since 1970, read once and then counted."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = wall_offset()

    def now(self) -> float:
        return self._offset + time.monotonic()

    def go_on_from(self, began: float) -> None:
        """An engine has begun at this time: it may be ahead of the wall clock, and counts on from there."""
        self._offset = counted_on(self._offset, began, time.monotonic())


def wall_offset() -> float:
    """The wall clock less the monotonic one: the quickest of some looks, for between two others may run."""
    found: list[tuple[float, float]] = []
    for _ in range(_LOOKS):
        before = time.monotonic()
        wall = time.time()
        found.append((time.monotonic() - before, wall - before))
    return min(found)[1]
