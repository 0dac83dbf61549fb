"""Engine time: the wall clock at the start plus monotonic time since.

Guards: it never runs backward, whatever is done to the wall clock while the process lives.
"""

from __future__ import annotations

import time


class Clock:
    """Seconds since 1970, read once and then counted."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()
