"""One run of the story: a fresh file, consumers that reserve and complete, tenants that come while they work.

Guards: what a run calls done was reported done to a consumer, each chunk once, and nothing is left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import fairway
from fairway.cli.demo.story import WHALE, Arrival
from fairway.cli.demo.waits import Waits, waits_of

BATCH: Final = 100
CONSUMERS: Final = 4

Strategy = fairway.Fair | fairway.OldestFirst
Told = Callable[[int, int], None]
"""told(chunks, tenants): so many more chunks are completed, so many more small tenants have all of theirs."""


@dataclass(frozen=True)
class Run:
    """What a run showed."""

    strategy: str
    waits: Waits
    problems: tuple[str, ...]


def race(path: Path, strategy: Strategy, arrivals: Sequence[Arrival], told: Told) -> Run:
    """Let the story happen under one strategy, in a new file."""
    clear(path)
    with fairway.open(path) as queue:
        desk = _Desk(queue, strategy, arrivals, told)
        with ThreadPoolExecutor(CONSUMERS) as pool:
            consumers = [pool.submit(desk.consume) for _ in range(CONSUMERS)]
            try:
                for consumer in as_completed(consumers):
                    consumer.result()
            finally:
                desk.open = False  # after an error or Ctrl-C the others must not work on
        waits = waits_of(queue.events(), len(arrivals))
        return Run(str(strategy), waits, tuple(desk.problems()))


def clear(path: Path) -> None:
    """Remove the queue of an earlier demo."""
    if path.exists():
        fairway.open(path).close()  # refuses a file that is no queue, and one that is in use
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)


class _Desk:
    """What the consumers share: who has come, and how often each chunk was reported done."""

    def __init__(
        self, queue: fairway.Queue, strategy: Strategy, arrivals: Sequence[Arrival], told: Told
    ) -> None:
        self.open = True
        self._queue = queue
        self._strategy = strategy
        self._told = told
        self._coming = sorted(arrivals, key=lambda arrival: arrival.after)
        self._total = sum(arrival.chunks for arrival in arrivals)
        self._lock = threading.Lock()
        self._handed = 0
        self._done = 0
        self._times: dict[int, bytearray] = {}  # by submission: how often each chunk was reported done
        self._left: dict[int, int] = {}

    def consume(self) -> None:
        """Reserve and complete until the whole story is told."""
        self._greet()
        while self.open and self._done < self._total:
            leases = self._queue.reserve(max=BATCH, strategy=self._strategy, wait_seconds=0.2)
            if not leases:
                continue
            with self._lock:
                self._handed += len(leases)
            self._greet()
            outcomes = self._queue.complete(leases)
            with self._lock:
                self._count(leases, outcomes)

    def _greet(self) -> None:
        """Submit for everybody whose time has come, in one call: nobody is served before another has come."""
        with self._lock:
            due = [arrival for arrival in self._coming if arrival.after <= self._handed]
            if not due:
                return
            self._coming = self._coming[len(due) :]
            for made in self._queue.submit_many({"chunks": a.chunks, "tenant": a.tenant} for a in due):
                self._times[made.id] = bytearray(made.total)
                self._left[made.id] = made.total

    def _count(self, leases: Sequence[fairway.Lease], outcomes: Sequence[str]) -> None:
        chunks = tenants = 0
        for lease, outcome in zip(leases, outcomes, strict=True):
            if outcome == "done":
                self._times[lease.submission][lease.index] += 1
                self._left[lease.submission] -= 1
                chunks += 1
                tenants += not self._left[lease.submission] and lease.tenant != WHALE
        self._done += chunks
        self._told(chunks, tenants)

    def problems(self) -> list[str]:
        """Every way in which the run was not what it should be; an empty list is the proof."""
        found = [
            f"submission {id}: {len(times) - times.count(1)} chunks were not completed exactly once"
            for id, times in self._times.items()
            if times.count(1) != len(times)
        ]
        for id, times in self._times.items():
            ended = self._queue.submission(id)
            if (ended.state, ended.done) != ("completed", len(times)):
                found.append(f"submission {id} is {ended.state} with {ended.done} of {len(times)} done")
        stats = self._queue.stats()
        rest = (
            stats.submissions_active,
            stats.chunks_waiting,
            stats.chunks_leased,
            stats.chunks_dead,
            stats.reservations,
        )
        if any(rest):
            found.append(f"the queue is not at rest: {stats}")
        return found
