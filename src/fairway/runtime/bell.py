"""A bell that wakes one sleeping thread.

Guards: a ring is never lost, and a hundred rings before the sleeper looks are one.
"""

from __future__ import annotations

import threading


class Bell:
    """One sleeper; `ring` and `heard` are called under one lock, `wait` without it."""

    __slots__ = ("_latch", "_rung")

    def __init__(self) -> None:
        self._latch = threading.Lock()
        self._latch.acquire()
        self._rung = False

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._latch.release()

    def wait(self, seconds: float) -> None:
        """Sleep until it rings, at most so long."""
        timeout = -1.0 if seconds > threading.TIMEOUT_MAX else max(0.0, seconds)
        if self._latch.acquire(timeout=timeout):
            self._latch.release()  # `heard` takes it back under the lock

    def heard(self) -> None:
        """From here on a new ring counts again."""
        if self._rung:
            self._rung = False
            self._latch.acquire()
