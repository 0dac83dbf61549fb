"""A steady load on one file: producers and consumers in threads, and counts of what they were told.

Guards: it keeps numbers and the chunks that are under way, never a list that grows, so that memory that grows is the
queue's.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import fairway

WAITING_MAX = 2_000  # chunks; a steady load does not outrun its consumers
DRAIN_SECONDS = 120.0
PATIENCE_SECONDS = 60.0
DONE_MIN = 500
OUTCOMES = ("dead", "released", "retrying")


class Steady:
    """Some threads on a queue, until they are stopped; then the rest is worked off."""

    def __init__(self, q: fairway.Queue, seed: int, rest_seconds: float) -> None:
        self.q, self._rest = q, rest_seconds
        self.told: Counter[str] = Counter()  # chunks accepted, and outcomes
        self.failed: list[BaseException] = []
        self._under_way: Counter[tuple[int, int]] = Counter()  # times accepted less times ended, where not 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        dice = [random.Random(f"{seed} {n}") for n in range(4)]
        work = [self._produce, self._produce, self._consume, self._consume]
        self._threads = [
            threading.Thread(target=self._repeat, args=(one, d)) for one, d in zip(work, dice, strict=True)
        ]

    @property
    def operations(self) -> int:
        return sum(self.told.values())

    def _repeat(self, do: Callable[[random.Random], None], dice: random.Random) -> None:
        try:
            while not self._over.is_set():
                do(dice)
        except BaseException as error:
            self.failed.append(error)
            self._over.set()

    def _count(self, what: str, many: int = 1) -> None:
        with self._lock:
            self.told[what] += many

    def accept(self, submission: int, total: int) -> None:
        """A submission was accepted, with so many chunks."""
        with self._lock:
            self.told["accepted"] += total
            for index in range(total):
                self._move((submission, index), 1)

    def end(self, submission: int, index: int, outcome: str) -> None:
        """A consumer was told what became of a chunk."""
        with self._lock:
            self.told[outcome] += 1
            if outcome in ("done", "dead"):
                self._move((submission, index), -1)

    def _move(self, chunk: tuple[int, int], by: int) -> None:
        self._under_way[chunk] += by
        if not self._under_way[chunk]:
            del self._under_way[chunk]

    def _produce(self, dice: random.Random) -> None:
        tenant, size = f"tenant {dice.randint(1, 20)}", dice.choice((10, 200, 2000))
        match dice.choice(("put", "put_many", "submit")):
            case "put":
                subs = [self.q.put(bytes(size), tenant=tenant)]
            case "put_many":
                subs = self.q.put_many([bytes(size)] * 10, tenant=tenant)
            case _:
                body = [bytes(size)] * 5
                subs = [self.q.submit(body, tenant=tenant, policy="dead_letter", info=bytes(size))]
        for sub in subs:
            self.accept(sub.id, sub.total)
        self._over.wait(self._rest)
        while self.q.stats().chunks_waiting > WAITING_MAX and not self._over.wait(0.05):
            pass

    def _consume(self, dice: random.Random) -> None:
        leases = self.q.reserve(dice.randint(1, 30), lease_seconds=60, wait_seconds=0.2)
        if not leases:
            return
        self._count("handed out", len(leases))
        verb = dice.choices(("complete", "fail", "release", "renew"), (80, 8, 6, 6))[0]
        if verb == "renew":
            leases = self.q.renew(leases, 30)
        if verb in ("complete", "renew"):
            results = [bytes(dice.choice((0, 10, 500))) for _ in leases]
            outcomes = self.q.complete(leases, results=results)
        elif verb == "fail":
            outcomes = self.q.fail(leases, "not today", retry=dice.random() < 0.9, delay_seconds=0.02)
        else:
            outcomes = self.q.release(leases)
        for lease, outcome in zip(leases, outcomes, strict=True):
            self.end(lease.submission, lease.index, outcome)

    def run(self, seconds: float) -> None:
        """So long, and on a machine that is busy with other things until every outcome was told."""
        for thread in self._threads:
            thread.start()
        self._over.wait(seconds)
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not self._told_all() and time.monotonic() < give_up and not self._over.wait(0.1):
            pass
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert not self.failed, self.failed

    def _told_all(self) -> bool:
        with self._lock:
            return self.told["done"] > DONE_MIN and all(self.told[what] for what in OUTCOMES)

    def drain(self) -> None:
        """Everything that was accepted is worked off."""
        give_up = time.monotonic() + DRAIN_SECONDS
        while self.q.stats().submissions_active:
            assert time.monotonic() < give_up, self.q.stats()
            leases = self.q.reserve(1000, wait_seconds=0.2)
            outcomes = self.q.complete(leases) if leases else []
            for lease, outcome in zip(leases, outcomes, strict=True):
                self.end(lease.submission, lease.index, outcome)

    @property
    def lost(self) -> int:
        """Accepted chunks that are neither done nor dead, or more than once."""
        return sum(map(abs, self._under_way.values()))
