"""OldestFirst and NewestFirst: runs by submission id.

Guards: every eligible run that was added has exactly one entry in the heap.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic

from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R


class AgeOrder(Generic[R]):
    """A heap of ids, negated when the newest is first."""

    __slots__ = ("_heap", "_runs", "_sign", "_sweep_at")

    def __init__(self, newest: bool = False) -> None:
        self._sign = -1 if newest else 1
        self._heap: list[int] = []
        self._runs: dict[int, R] = {}  # by key in the heap
        self._sweep_at = SWEEP_RUNS_MIN

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: R) -> None:
        key = run.id * self._sign
        runs = self._runs
        if key not in runs:
            heappush(self._heap, key)
        runs[key] = run
        if len(runs) > self._sweep_at:
            self.sweep()

    def take(self, k: int, grab: Grab[R]) -> int:
        heap, runs = self._heap, self._runs
        left = k
        while left > 0 and heap:
            run = runs[heap[0]]
            if run.eligible:
                n = min(left, run.ready)
                grab(run, n, False)
                left -= n
                if run.eligible:
                    continue
            del runs[heappop(heap)]
        return k - left

    def reweighed(self, tenant: str) -> None:
        pass

    def runs(self) -> Iterable[R]:
        return self._runs.values()

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

    def sweep(self) -> None:
        self._runs = {key: run for key, run in self._runs.items() if run.eligible}
        self._heap = list(self._runs)
        heapify(self._heap)
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(self._runs))
