"""Samples of a queue: what it holds now, and what moved since a few samples ago.

Guards: rates come from counters of one host; when another takes over, counting starts anew.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Self

import msgspec

from fairway.cli.places import Where, seen
from fairway.engine.commands import ConsumerView, QueueStats, TenantView
from fairway.errors import NoHost
from fairway.face.queue import Queue

_WINDOW_SECONDS = 10.0  # shares over less would jump
_TREND_SAMPLES = 60


class Share(msgspec.Struct, frozen=True):
    """A tenant: what it got of what was handed out lately, and what its weight is worth among those that want."""

    tenant: TenantView
    share: float
    due: float
    age: float  # of its oldest active submission, in seconds


class View(msgspec.Struct, frozen=True):
    """What one look shows."""

    place: str
    queue: str
    time: float
    hosted: bool
    stats: QueueStats
    handed_per_second: float
    completed_per_second: float
    tenants: list[Share]
    consumers: list[ConsumerView]
    trend: list[float]


class _Sample(msgspec.Struct, frozen=True):
    at: float
    handed: int
    completed: int
    by_tenant: dict[str, int]


class Sampler:
    """Looks at one queue again and again; it finds the host that comes after another."""

    def __init__(self, place: str, where: Where) -> None:
        self._place, self._where = place, where
        self._queue: Queue | None = None
        self._hosted = False
        self._samples: deque[_Sample] = deque()
        self._trend: deque[float] = deque(maxlen=_TREND_SAMPLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def take(self) -> View:
        """Look."""
        if self._queue is not None and not self._hosted:
            self._close()  # what was read from the file is as old as the last look
        try:
            return self._look(self._open())
        except NoHost:
            self._close()
            return self._look(self._open())

    def _open(self) -> Queue:
        if self._queue is None:
            self._queue, self._hosted = seen(self._place, self._where)
        return self._queue

    def _close(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.close()

    def _look(self, queue: Queue) -> View:
        stats, tenants, consumers = queue.stats(), list(queue.tenants()), queue.consumers()
        now = time.time()
        sample = _Sample(time.monotonic(), stats.handed, stats.completed, {t.name: t.handed for t in tenants})
        first = self._since(sample)
        seconds = sample.at - first.at
        handed = (stats.handed - first.handed) / seconds if seconds > 0 else 0.0
        completed = (stats.completed - first.completed) / seconds if seconds > 0 else 0.0
        self._trend.append(self._lately(sample))
        return View(
            self._place,
            self._where.queue,
            now,
            self._hosted,
            stats,
            handed,
            completed,
            _shares(tenants, first, stats.handed - first.handed, now),
            consumers,
            list(self._trend),
        )

    def _lately(self, sample: _Sample) -> float:
        """Completions per second since the sample before this one."""
        before = self._samples[-2] if len(self._samples) > 1 else sample
        seconds = sample.at - before.at
        return (sample.completed - before.completed) / seconds if seconds > 0 else 0.0

    def _since(self, sample: _Sample) -> _Sample:
        """The sample to compare this one with."""
        kept = self._samples
        if kept and (sample.handed < kept[-1].handed or sample.completed < kept[-1].completed):
            kept.clear()
        kept.append(sample)
        while len(kept) > 2 and kept[1].at <= sample.at - _WINDOW_SECONDS:
            kept.popleft()
        return kept[0]


def _shares(tenants: list[TenantView], first: _Sample, handed: int, now: float) -> list[Share]:
    """Those that got most first, then those that have most to do."""
    got = {}
    for tenant in tenants:
        before = first.by_tenant.get(tenant.name, 0)
        got[tenant.name] = tenant.handed - before if tenant.handed >= before else tenant.handed
    wants = {t.name: t.weight for t in tenants if not t.paused and (t.waiting or got[t.name])}
    weights = sum(wants.values())
    shares = [
        Share(
            tenant,
            min(1.0, got[tenant.name] / handed) if handed > 0 else 0.0,
            wants.get(tenant.name, 0.0) / weights if weights else 0.0,
            max(0.0, now - tenant.oldest) if tenant.oldest else 0.0,
        )
        for tenant in tenants
    ]
    return sorted(shares, key=lambda one: (-round(one.share, 2), -one.tenant.waiting, one.tenant.name))
