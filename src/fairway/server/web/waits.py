"""Waits: how long chunks waited for their first worker, per tenant, over the last minutes.

Guards: memory is bounded by slices, tenants and steps, however many chunks are told; the oldest slice is forgotten
as a whole.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from math import ceil, log
from typing import Final

from fairway import limits

_LEAST_SECONDS: Final = 0.001
_STEP: Final = 1.2  # a percentile is true within this ratio
_STEPS: Final = ceil(log(limits.DELAY_SECONDS_MAX / _LEAST_SECONDS) / log(_STEP))
_SLICES: Final = 10

Steps = Counter[int]  # how many chunks waited up to a step


class Waits:
    """Histograms in slices of time. Tenants beyond the bound are counted together, under None."""

    def __init__(self, seconds: float = limits.DASHBOARD_HISTORY_SECONDS) -> None:
        self._slice_seconds = seconds / _SLICES
        self._slices: deque[tuple[float, dict[str | None, Steps]]] = deque()

    def add(self, now: float, tenant: str, waited: float, count: int = 1) -> None:
        """Count chunks of a tenant that were handed out at `now` after a wait."""
        self.forget(now)
        if not self._slices or now >= self._slices[-1][0] + self._slice_seconds:
            self._slices.append((now, {}))
        slice_ = self._slices[-1][1]
        known = tenant in slice_ or len(slice_) < limits.DASHBOARD_TRACKED_TENANTS_MAX
        slice_.setdefault(tenant if known else None, Counter())[step_of(waited)] += count

    def forget(self, now: float) -> None:
        """Drop what is older than the window."""
        while self._slices and self._slices[0][0] <= now - self._slice_seconds * _SLICES:
            self._slices.popleft()

    def of(self, tenants: Iterable[str]) -> Steps:
        """The histogram of some tenants together."""
        names = set(tenants)
        return self._sum(lambda tenant: tenant in names)

    def of_others(self, tenants: Iterable[str]) -> Steps:
        """The histogram of everybody else."""
        names = set(tenants)
        return self._sum(lambda tenant: tenant not in names)

    def _sum(self, wanted: Callable[[str | None], bool]) -> Steps:
        total: Steps = Counter()
        for _, slice_ in self._slices:
            for tenant, steps in slice_.items():
                if wanted(tenant):
                    total.update(steps)
        return total


def step_of(waited: float) -> int:
    """The first step that is not below a wait."""
    if waited <= _LEAST_SECONDS:
        return 0
    return min(_STEPS, ceil(log(waited / _LEAST_SECONDS) / log(_STEP) - 1e-9))


def percentile(steps: Steps, part: float) -> float | None:
    """The wait that this part of the chunks did not exceed, at most one step too high; None: there are no chunks."""
    total = steps.total()
    if not total:
        return None
    wanted = max(1, ceil(total * part))
    seen = 0
    for step in sorted(steps):
        seen += steps[step]
        if seen >= wanted:
            return _LEAST_SECONDS * _STEP**step
    raise AssertionError("the parts of a sum do not add up")
