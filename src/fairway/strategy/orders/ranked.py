"""CustomPriority without limits: the fair order of the highest priority that has runs is next.

Guards: every priority with an eligible run has one entry in the heap, and its own table of turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic

from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R, TurnTable
from fairway.strategy.orders.fair import FairOrder


class RankedOrder(Generic[R]):
    """A heap of priorities, the highest first, over a fair order for each."""

    __slots__ = ("_heap", "_orders", "_size", "_sweep_at", "_table")

    def __init__(self, table: Callable[[int], TurnTable]) -> None:
        self._table = table
        self._heap: list[int] = []  # negated
        self._orders: dict[int, FairOrder[R]] = {}
        self._size = 0  # never below what all orders hold
        self._sweep_at = SWEEP_RUNS_MIN

    def __len__(self) -> int:
        return sum(map(len, self._orders.values()))

    def add(self, run: R) -> None:
        order = self._orders.get(run.priority)
        if order is None:
            self._orders[run.priority] = order = FairOrder[R](self._table(run.priority))
            order.expect(self._sweep_at)  # all are swept together
            heappush(self._heap, -run.priority)
        had = len(order)
        order.add(run)
        if len(order) > had:
            self._size += 1
            if self._size > self._sweep_at:
                self.sweep()

    def take(self, k: int, grab: Grab[R]) -> int:
        left = k
        while left > 0 and self._heap:
            priority = -self._heap[0]
            left -= self._orders[priority].take(left, grab)
            if left:  # nothing of it is eligible: whatever comes makes it anew
                heappop(self._heap)
                del self._orders[priority]
        return k - left

    def reweighed(self, tenant: str) -> None:
        for order in self._orders.values():
            order.reweighed(tenant)

    def runs(self) -> Iterable[R]:
        return (run for order in self._orders.values() for run in order.runs())

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

    def sweep(self) -> None:
        orders, self._orders, self._heap, self._size = self._orders, {}, [], 0
        for priority, order in orders.items():
            order.sweep()
            if not len(order):
                continue
            table = self._table(priority)
            if order.turns is not table:  # its lane was dropped and made again
                order, old = FairOrder[R](table), order
                for run in old.runs():
                    order.add(run)
            self._orders[priority] = order
            self._heap.append(-priority)
        heapify(self._heap)
        self._size = len(self)
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * self._size)
