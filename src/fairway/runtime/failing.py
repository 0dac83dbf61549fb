"""Failing: what a queue's threads say of work that fails and is tried again.

Guards: it is said once that a kind of work fails, and why, and once that it does no longer.
"""

from __future__ import annotations

import logging
from typing import Final

_log: Final = logging.getLogger("fairway")


class Failing:
    """The kinds of work that fail just now, each with what was said of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: dict[str, str] = {}

    def tell(self, work: str, reason: str | None) -> None:
        """How a kind of work, told as what the queue does, went: why it failed, or None."""
        before = self._said.pop(work, None)
        if reason is not None:
            self._said[work] = reason
            if before != reason:
                _log.warning("Queue %s cannot %s and tries again: %s", self._name, work, reason)
        elif before is not None:
            _log.info("Queue %s can %s again.", self._name, work)
