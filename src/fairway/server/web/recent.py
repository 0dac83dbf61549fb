"""Recent figures of a queue: throughput, the share of each tenant, how even the shares are.

Guards: pure; rates come from counters of one host, and when they fall, because another host took over, or when the
clock is set back, counting starts anew; what is kept is bounded by seconds and tenants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from fairway import limits
from fairway.engine.commands import QueueStats, TenantView
from fairway.server.web.waits import Waits, percentile

SHARE_SECONDS: Final = 30.0  # shares over less would jump
FAIRNESS_SECONDS: Final = 10.0
_PER_TENANT: Final = 2  # fewer chunks than this per tenant say nothing of fairness
_POINT_SECONDS: Final = 0.9


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One moment of the charts; None: not known."""

    time: float
    handed: float | None  # per second
    completed: float | None
    fairness: float | None


class Line(msgspec.Struct, frozen=True):
    """A tenant, or all others together."""

    name: str
    weight: float
    paused: bool
    submissions: int
    waiting: int
    leased: int
    share: float  # of what was handed out lately
    due: float  # what its weight is worth of what went to those that wanted work all along
    oldest: float  # when its oldest active submission was made; 0.0: it has none
    median: float | None  # waits, in seconds
    high: float | None  # nineteen of twenty chunks did not wait longer
    tenants: int = 1


class _Sample(msgspec.Struct, frozen=True):
    at: float
    handed: int
    completed: int
    by_tenant: dict[str, int]
    whole: bool  # whether every tenant is in it


class Recent:
    """What was seen of one queue in the last minutes."""

    def __init__(self) -> None:
        self.waits = Waits()
        self.points: deque[Point] = deque(maxlen=int(limits.DASHBOARD_HISTORY_SECONDS))
        self._samples: deque[_Sample] = deque()
        self._wants: dict[str, float] = {}  # since when a tenant has had work waiting without a break
        self._tenants: Sequence[TenantView] = ()
        self._pointed = -1e9

    def look(self, now: float, stats: QueueStats, tenants: Sequence[TenantView]) -> None:
        """Take in what the queue holds now."""
        kept = sorted(tenants, key=_importance)[: limits.DASHBOARD_TRACKED_TENANTS_MAX]
        counted = {one.name: one.handed for one in kept}
        sample = _Sample(now, stats.handed, stats.completed, counted, len(kept) == len(tenants))
        self._tenants = tenants
        last = self._samples[-1] if self._samples else None
        if last is not None and (
            sample.handed < last.handed or sample.completed < last.completed or now < last.at
        ):
            self._samples.clear()
            self._wants.clear()
        while self.points and self.points[-1].time > now:  # the clock was set back
            self.points.pop()
        wanting = {one.name for one in kept if one.waiting and not one.paused}
        self._wants = {name: self._wants.get(name, now) for name in wanting}
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].at <= now - SHARE_SECONDS:
            self._samples.popleft()
        self.waits.forget(now)
        if not self.points or not 0 <= now - self._pointed < _POINT_SECONDS:
            self._point(now)

    def seed(self, now: float, handed: dict[int, int], completed: dict[int, int], since: float) -> None:
        """Draw the seconds before the first look, from what the event log tells of them."""
        first = max(int(since), int(now - limits.DASHBOARD_HISTORY_SECONDS)) + 1
        for second in range(first, int(now)):
            point = Point(float(second), float(handed.get(second, 0)), float(completed.get(second, 0)), None)
            self.points.append(point)
        self._pointed = now

    def top(self) -> tuple[list[Line], Line | None]:
        """The tenants with the most work, and the others together if there are any."""
        ranked = sorted(self._tenants, key=_importance)
        shown, rest = ranked[: limits.METRIC_TENANTS_MAX], ranked[limits.METRIC_TENANTS_MAX :]
        return self.lines(shown), self._others(shown, rest) if rest else None

    def lines(self, tenants: Iterable[TenantView]) -> list[Line]:
        """Tenants with their figures, in the order given."""
        shares = self._shares()
        lines: list[Line] = []
        for t in tenants:
            steps = self.waits.of([t.name])
            share, due = shares.get(t.name, (0.0, 0.0))
            lines.append(
                Line(
                    t.name, t.weight, t.paused, t.submissions, t.waiting, t.leased, share, due, t.oldest,
                    percentile(steps, 0.5), percentile(steps, 0.95),
                )
            )  # fmt: skip
        return lines

    def _others(self, shown: list[TenantView], rest: list[TenantView]) -> Line:
        shares = self._shares()
        theirs = [shares[one.name] for one in rest if one.name in shares]
        steps = self.waits.of_others(one.name for one in shown)
        ages = [one.oldest for one in rest if one.oldest]
        return Line(
            "", 0.0, False, sum(one.submissions for one in rest), sum(one.waiting for one in rest),
            sum(one.leased for one in rest), sum(share for share, _ in theirs), sum(due for _, due in theirs),
            min(ages, default=0.0), percentile(steps, 0.5), percentile(steps, 0.95), len(rest),
        )  # fmt: skip

    def _shares(self) -> dict[str, tuple[float, float]]:
        """What each tenant got lately of all that was handed out, and what its weight is worth of that."""
        got, handed, since = self._got(SHARE_SECONDS)
        if handed <= 0:
            return {}
        steady = self._steady(since)
        theirs = sum(got.get(name, 0) for name in steady) / handed
        weights = sum(steady.values())
        return {
            name: (min(1.0, count / handed), theirs * steady[name] / weights if name in steady else 0.0)
            for name, count in got.items()
        }

    @property
    def fairness(self) -> float | None:
        """Jain's index of what the tenants that wanted work all along were handed, each by its weight."""
        if not self._samples:
            return None
        now = self._samples[-1].at
        since = now - FAIRNESS_SECONDS
        weights = self._steady(since)
        got, _, _ = self._got(FAIRNESS_SECONDS)
        values = [got.get(name, 0) / weight for name, weight in weights.items()]
        if len(values) < 2 or sum(got.get(name, 0) for name in weights) < _PER_TENANT * len(values):
            return None
        return jain(values)

    # -- from counters to rates

    def _steady(self, since: float) -> dict[str, float]:
        """The weights of the tenants that have wanted work ever since: only those can be compared."""
        return {
            t.name: t.weight for t in self._tenants if t.name in self._wants and self._wants[t.name] <= since
        }

    def _point(self, now: float) -> None:
        before = self._pointed
        self._pointed = now
        base = next((one for one in self._samples if one.at >= before - 1e-6), None)
        last = self._samples[-1]
        seconds = last.at - base.at if base is not None else 0.0
        handed = completed = None
        if base is not None and seconds > 0:
            handed = (last.handed - base.handed) / seconds
            completed = (last.completed - base.completed) / seconds
        self.points.append(Point(now, handed, completed, self.fairness))

    def _got(self, seconds: float) -> tuple[dict[str, int], int, float]:
        """What each tenant was handed in the last seconds, all of them together, and since when that is."""
        if not self._samples:
            return {}, 0, 0.0
        last = self._samples[-1]
        first = next(one for one in self._samples if one.at >= last.at - seconds or one is last)
        got: dict[str, int] = {}
        for name, count in last.by_tenant.items():
            # A tenant that is not in a whole sample had been handed nothing; in another one it was not looked at.
            before = first.by_tenant.get(name, 0 if first.whole else count)
            # A counter starts again when its tenant had nothing for a while.
            got[name] = count - before if count >= before else count
        return got, last.handed - first.handed, first.at


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one of n has everything; values must not all be 0."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def _importance(tenant: TenantView) -> tuple[int, int, str]:
    return -(tenant.waiting + tenant.leased), -tenant.submissions, tenant.name
