"""Waiting, read from the queue's own event log.

A chunk's waiting is counted in work: how many chunks were handed out to anybody since its tenant submitted.
Guards: the log is in the order in which the queue acted, so the count is exact, whatever the consumers did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import fairway


@dataclass
class Wait:
    """How the chunks of one tenant waited."""

    tenant: str
    chunks: int
    submitted: float
    before: int  # chunks handed out before it submitted
    handed: int = 0
    work: int = 0  # added up over its chunks
    seconds: float = 0.0  # likewise

    @property
    def mean_work(self) -> float:
        """What a chunk waited on average, in chunks handed out."""
        return self.work / self.handed

    @property
    def mean_seconds(self) -> float:
        return self.seconds / self.handed


@dataclass(frozen=True)
class Waits:
    """The waiting of every tenant, by name, and what each got while all of them waited."""

    by_tenant: Mapping[str, Wait]
    shares: Sequence[int]
    seconds: float  # from the first submit to the last chunk handed out

    @property
    def jain(self) -> float:
        """Jain's index of the shares: 1 if all are equal, 1/n if one has everything."""
        return sum(self.shares) ** 2 / (len(self.shares) * sum(share * share for share in self.shares))

    def means(self, apart: str, in_seconds: bool = False) -> tuple[float, float, float]:
        """The mean of the tenant that stands apart, then the median and the worst of the others' means."""
        means = {
            wait.tenant: wait.mean_seconds if in_seconds else wait.mean_work
            for wait in self.by_tenant.values()
        }
        mean = means.pop(apart)
        return mean, median(means.values()), max(means.values())


def waits_of(events: Iterable[fairway.Event], tenants: int) -> Waits:
    """Read a log in which each of so many tenants submits once."""
    waits: dict[int, Wait] = {}
    shares: dict[int, int] = {}
    handed = 0
    contest = False  # all have come, and none has been handed its last chunk
    last = 0.0
    for event in events:
        if event.what == "submitted":
            waits[event.submission] = Wait(event.tenant, event.count, event.time, handed)
            shares[event.submission] = 0
            contest = len(waits) == tenants and all(wait.handed < wait.chunks for wait in waits.values())
        elif event.what == "reserved":
            wait, count = waits[event.submission], event.count
            wait.handed += count
            wait.work += count * (handed - wait.before) + count * (count - 1) // 2
            wait.seconds += count * (event.time - wait.submitted)
            handed += count
            last = event.time
            if contest:
                shares[event.submission] += count
                contest = wait.handed < wait.chunks
    begun = min(wait.submitted for wait in waits.values())
    return Waits({wait.tenant: wait for wait in waits.values()}, list(shares.values()), last - begun)
