"""How many chunks of one value may be in flight, as the number of consumers comes and goes.

Guards: a value that a higher ceiling opens is told of once.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.strategy.tiers import Cap, Value


class Ceilings:
    """The limits of one order; `most` is their present form, by key."""

    __slots__ = ("_caps", "_consumers", "_counts", "most")

    def __init__(self, caps: tuple[tuple[str, Cap], ...], counts: dict[str, dict[Value, int]]) -> None:
        self._caps = caps
        self._counts = counts
        self._consumers = 1
        self.most = {key: cap.at(1) for key, cap in caps}

    def seen(self, consumers: int) -> Iterator[tuple[str, Value]]:
        """So many consumers there are now; gives each (key, value) that is no longer full."""
        if consumers == self._consumers:
            return
        self._consumers = consumers
        for key, cap in self._caps:
            old, self.most[key] = self.most[key], cap.at(consumers)
            if self.most[key] > old:
                for value, out in self._counts[key].items():
                    if old <= out < self.most[key]:
                        yield key, value
