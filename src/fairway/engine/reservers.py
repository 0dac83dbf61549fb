"""Who reserves: the consumers that a percentage is a share of.

Guards: whoever reserved in the last minute, or waits for work now, counts once.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable

from fairway.limits import RESERVER_SECONDS


class Reservers:
    """Consumers by when they were last seen, and those that wait."""

    __slots__ = ("_seen", "_waiting")

    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, float] = OrderedDict()  # the longest unseen first
        self._waiting: Counter[Hashable] = Counter()

    def seen(self, who: Hashable, now: float) -> bool:
        """A reserve came, or a waiting one was answered; says whether there is one consumer more."""
        new = who not in self._seen and who not in self._waiting
        self._seen[who] = now
        self._seen.move_to_end(who)
        self._forget(now)
        return new

    def waits(self, who: Hashable) -> None:
        """A reserve of this one waits from now on."""
        self._waiting[who] += 1

    def waited(self, who: Hashable, now: float) -> None:
        """It waits no longer."""
        self._waiting[who] -= 1
        if self._waiting[who] <= 0:
            del self._waiting[who]
        self.seen(who, now)

    def count(self, now: float) -> int:
        """How many there are, at least one: the one who asks."""
        self._forget(now)
        return max(1, len(self._seen) + sum(who not in self._seen for who in self._waiting))

    def _forget(self, now: float) -> None:
        while self._seen and next(iter(self._seen.values())) < now - RESERVER_SECONDS:
            self._seen.popitem(last=False)
