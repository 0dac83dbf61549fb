"""When a process that died is started again: soon, unless it keeps dying.

Guards: a process that dies as it begins takes ever less of the machine; one that had come to work is back at once.
One that cannot be started is tried again: whoever looks after it has others to look after.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from fairway import limits

_log: Final = logging.getLogger("fairway")
P = TypeVar("P")


class Restarting:
    """One place for a process. Whoever looks after it tells each death once, and asks for the next one by `start`."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._pause = limits.RESTART_SECONDS
        self._due: float | None = None

    @property
    def awaited(self) -> bool:
        """Whether its death was told, and no start since."""
        return self._due is not None

    def died(self, now: float) -> None:
        if now - self._started > limits.RESTART_STEADY_SECONDS:
            self._pause = limits.RESTART_SECONDS
        self._due = now + self._pause
        self._pause = min(self._pause * 2, limits.RESTART_SECONDS_MAX)

    def due(self, now: float) -> bool:
        return self._due is not None and now >= self._due

    def started(self, now: float) -> None:
        self._due, self._started = None, now

    def start(self, now: float, start: Callable[[], P]) -> P | None:
        """The process that `start` gives; None: it is not due, or none can be started now."""
        if not self.due(now):
            return None
        self.started(now)
        try:
            return start()
        except OSError as error:
            _log.warning("no process can be started now: %s", error)
            self.died(now)
            return None
