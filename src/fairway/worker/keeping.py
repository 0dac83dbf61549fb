"""Keeping leases: one thread renews what a worker holds, another tells which leases are no longer its own.

Guards: nobody works on a chunk for longer than its lease, also while the queue cannot be reached to renew it: a renewal
is repeated for longer than many leases last, so whoever watches their ends never waits for one.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from fairway.errors import FairwayError
from fairway.face.queue import Queue
from fairway.model.lease import Lease

_SHARE: Final = 3  # a lease is renewed when a third of its time is over, so two tries may fail
_AGAIN_SECONDS: Final = 1.0  # after a failure, if the lease lasts longer than that
_log: Final = logging.getLogger("fairway.worker")

Chunk = tuple[int, int]


class Keeper:
    """Renews leases of one worker; `on_lost` is called, in a thread of the keeper's, for each that ended."""

    def __init__(self, queue: Queue, lease_seconds: float, on_lost: Callable[[Lease], None]) -> None:
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._on_lost = on_lost
        self._held: dict[Chunk, tuple[Lease, float]] = {}  # and until when it surely is ours; monotonic
        self._due = 0.0
        self._looks_at = math.inf  # when the watching thread looks next, unless it is told
        self._ending = False
        lock = threading.Lock()
        self._changed = threading.Condition(lock)  # wakes the thread that renews
        self._sooner = threading.Condition(lock)  # wakes the one that watches
        self._threads = [
            threading.Thread(target=run, name=f"fairway keeper {name}", daemon=True)
            for name, run in (("renews", self._run), ("watches", self._watch))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify()
            self._sooner.notify()
        for thread in self._threads:
            thread.join()

    def hold(self, leases: Iterable[Lease], since: float) -> None:
        """Keep these; `since` is when they were asked for, by the monotonic clock."""
        due, over = since + self._lease_seconds / _SHARE, since + self._lease_seconds
        with self._changed:
            self._due = min(self._due, due) if self._held else due
            for lease in leases:
                self._held[lease.submission, lease.index] = (lease, over)
            self._changed.notify()
            if over < self._looks_at:
                self._sooner.notify()

    def holds(self, lease: Lease) -> bool:
        with self._changed:
            return (lease.submission, lease.index) in self._held

    def let_go(self, leases: Iterable[Lease]) -> None:
        """These were told or given back."""
        with self._changed:
            for lease in leases:
                self._held.pop((lease.submission, lease.index), None)

    # -- the thread that renews

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._ending and (not self._held or time.monotonic() < self._due):
                    self._changed.wait(max(0.0, self._due - time.monotonic()) if self._held else None)
                if self._ending:
                    return
                leases = [lease for lease, _ in self._held.values()]
            self._renew(leases)

    def _renew(self, leases: list[Lease]) -> None:
        since = time.monotonic()
        renewed: set[Chunk] | None = None
        try:
            found: Any = self._queue.renew(leases, self._lease_seconds)
            renewed = {(lease.submission, lease.index) for lease in found}
        except FairwayError as error:
            _log.warning("leases cannot be renewed: %s", error)
        with self._changed:
            lost = self._after(leases, renewed, since)
        for lease in lost:
            self._on_lost(lease)

    def _after(self, leases: list[Lease], renewed: set[Chunk] | None, since: float) -> list[Lease]:
        """Under the lock: which leases the queue says are over."""
        lost: list[Lease] = []
        for lease in leases:
            chunk = (lease.submission, lease.index)
            if renewed is None or chunk not in self._held:
                continue
            if chunk in renewed:
                self._held[chunk] = (self._held[chunk][0], since + self._lease_seconds)
            else:
                lost.append(self._held.pop(chunk)[0])
        share = self._lease_seconds / _SHARE
        again = time.monotonic() + min(_AGAIN_SECONDS, share / 4)
        self._due = since + share if renewed is not None else again
        return lost

    # -- the thread that watches

    def _watch(self) -> None:
        while not self._ending:
            with self._changed:
                lost = self._over()
                if not lost and not self._ending:
                    left = self._looks_at - time.monotonic()
                    self._sooner.wait(None if math.isinf(left) else max(0.0, left))
            for lease in lost:
                self._on_lost(lease)

    def _over(self) -> list[Lease]:
        """Under the lock: the leases whose time is up, which are held no longer; and when to look again."""
        now = time.monotonic()
        over = [chunk for chunk, (_, until) in self._held.items() if until <= now]
        lost = [self._held.pop(chunk)[0] for chunk in over]
        self._looks_at = min((until for _, until in self._held.values()), default=math.inf)
        return lost
