"""Random: every chunk that can be handed out is equally likely.

Guards: a run's cap is never below its `ready`, and a draw accepts it with ready / cap: exactly uniform.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from fairway.model.dice import Dice
from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R


class UniformOrder(Generic[R]):
    """Runs in buckets by cap, a power of two; a draw among all caps is rejected when it falls above `ready`.

    A run that sank is moved down when a draw finds it, one that grew is moved up at once.
    """

    __slots__ = ("_buckets", "_dice", "_full", "_place", "_sweep_at", "_total")

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._buckets: list[list[R]] = []  # bucket b: the runs with cap 2**b
        self._full: list[int] = []  # buckets that are not empty, the highest first
        self._place: dict[int, tuple[int, int]] = {}  # run id -> bucket, index in it
        self._total = 0  # the sum of all caps
        self._sweep_at = SWEEP_RUNS_MIN

    def __len__(self) -> int:
        return len(self._place)

    def add(self, run: R) -> None:
        if run.ready <= 0:
            return
        place = self._place.get(run.id)
        if place is None:
            self._enter(run)
            if len(self._place) > self._sweep_at:
                self.sweep()
        elif run.ready > 1 << place[0]:
            self._leave(run)
            self._enter(run)
        else:
            self._buckets[place[0]][place[1]] = run

    def take(self, k: int, grab: Grab[R]) -> int:
        below, buckets, full = self._dice.below, self._buckets, self._full
        left = k
        while left > 0 and full:
            at, b = below(self._total), 0
            for b in full:
                span = len(buckets[b]) << b
                if at < span:
                    break
                at -= span
            run = buckets[b][at >> b]
            if run.eligible:
                if at & ((1 << b) - 1) < run.ready:
                    grab(run, 1, True)
                    left -= 1
                if run.eligible:
                    if run.ready << 1 <= 1 << b:
                        self._leave(run)
                        self._enter(run)
                    continue
            self._leave(run)
        return k - left

    def reweighed(self, tenant: str) -> None:
        pass

    def _enter(self, run: R) -> None:
        b = (run.ready - 1).bit_length()
        while b >= len(self._buckets):
            self._buckets.append([])
        bucket = self._buckets[b]
        if not bucket:
            self._full.append(b)
            self._full.sort(reverse=True)
        self._place[run.id] = (b, len(bucket))
        bucket.append(run)
        self._total += 1 << b

    def _leave(self, run: R) -> None:
        b, i = self._place.pop(run.id)
        bucket = self._buckets[b]
        last = bucket.pop()
        if i < len(bucket):
            bucket[i] = last
            self._place[last.id] = (b, i)
        if not bucket:
            self._full.remove(b)
        self._total -= 1 << b

    def runs(self) -> Iterable[R]:
        return (run for b in self._full for run in self._buckets[b])

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

    def sweep(self) -> None:
        for run in [run for b in self._full for run in self._buckets[b] if not run.eligible]:
            self._leave(run)
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(self._place))
