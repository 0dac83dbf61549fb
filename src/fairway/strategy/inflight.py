"""Chunks in flight by key and value, for the keys that some plan limits.

Guards: a count is the number of leases out of runs with that value, whatever strategy leased them; one that
falls below a limit is told to the order that has the limit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Generic

from fairway.strategy.candidate import value_of
from fairway.strategy.order import Limited, R
from fairway.strategy.tiers import Value


class InFlight(Generic[R]):
    """Exact counts; a value that has none in flight has no entry."""

    __slots__ = ("_orders", "counts")

    def __init__(self) -> None:
        self.counts: dict[str, dict[Value, int]] = {}
        self._orders: dict[str, list[Limited[R]]] = {}

    def track(self, keys: Iterable[str]) -> frozenset[str]:
        """Count these keys from now on; gives those that were not counted before, for `count`."""
        new = frozenset(keys).difference(self.counts)
        self.counts.update({key: {} for key in sorted(new)})
        return new

    def count(self, run: R, n: int, keys: Iterable[str]) -> None:
        """n chunks of the run are out already."""
        for key in keys:
            value, counts = value_of(run, key), self.counts[key]
            if value is not None:
                counts[value] = counts.get(value, 0) + n

    def join(self, order: Limited[R]) -> None:
        """The order is told from now on when a value goes below one of its limits."""
        for key in order.most:
            self._orders.setdefault(key, []).append(order)

    def leave(self, order: Limited[R]) -> None:
        """The order is gone; what it alone limited is no longer counted."""
        for key in order.most:
            self._orders[key].remove(order)
            if not self._orders[key]:
                del self._orders[key], self.counts[key]

    def leased(self, run: R, n: int, but: Container[str] = ()) -> None:
        """n chunks of the run went out; some keys may not be counted for it yet."""
        for key, counts in self.counts.items():
            if key in but:
                continue
            value = run.tenant if key == "tenant" else run.metadata.get(key)
            if value is not None:
                counts[value] = counts.get(value, 0) + n

    def freed(self, run: R, n: int, but: Container[str] = ()) -> bool:
        """n chunks of the run came back or ended; says whether a limit went from full to open."""
        opened = False
        for key, counts in self.counts.items():
            if key in but:
                continue
            value = run.tenant if key == "tenant" else run.metadata.get(key)
            if value is None:
                continue
            had = counts.get(value, 0)
            left = had - n
            assert left >= 0, (key, value, had, n)
            if left:
                counts[value] = left
            elif had:
                del counts[value]
            for order in self._orders.get(key, ()):
                if left < order.most[key] <= had:
                    order.freed(key, value)
                    opened = True
        return opened
