"""A script of calls on a queue whose disk fails at one call; each is recorded, a queue that stopped is opened again.

Guards: the same calls are made up to the fault, whatever the fault is; an error that is none of Fairway's ends it.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import fairway
from fairway.model.lease import Lease
from fairway.runtime.running import Running
from fairway.store.sqlite import SqliteStore
from fairway.testing.disk.faults import Plan
from fairway.testing.disk.vfs import Disk
from fairway.testing.history import Header
from tests.faults.machine import Calls, queue_on
from tests.kill.recorded import Given, Lines, ticket_of
from tests.kill.worker import result_of

OPENS_MAX = 60  # a fault goes away sooner
LEASE_SECONDS = 0.3  # the end of a run waits for those that nobody gave back


class Script:
    """One run."""

    def __init__(self, folder: Path, plan: Plan | None, seed: int) -> None:
        (folder / "queue").mkdir(parents=True)
        self.path = folder / "queue" / "work.db"
        self.history = folder / "history.jsonl"
        self.offset = time.time() - time.monotonic()
        self.dice = random.Random(seed)
        self.lines = Lines(self.history, self.offset, 0)
        self.lines.write(Header(drained=True, origin={"seed": seed}))
        self.disk = Disk(self.path.parent, seed)
        self.disk.plan = plan
        self.lives = self.made = 0
        self.ids: list[int] = []
        self.held: list[Lease] = []
        self.errors: list[str] = []  # their codes
        self.after = 0  # disk calls between a fault and the last error of a call
        self.refused = 0  # calls since the last fault that met none and were refused all the same
        self.store: SqliteStore | None = None
        self.run: Running
        self.calls: Calls

    def play(self, operations: int) -> None:
        """Do so many operations."""
        for n in range(operations):
            if self.store is None or self.run.host.stopped is not None:
                self._open()
            faults = len(self.disk.faults)
            try:
                self._step(n)
            except fairway.FairwayError as error:
                self._failed(error, faults)

    def close(self) -> None:
        """Close the queue; what was planned happens no more."""
        self.disk.plan = None
        self._shut()
        self.lines.close()
        self.disk.unregister()

    def _open(self) -> None:
        self._shut()
        for _ in range(OPENS_MAX):
            self.lives += 1
            faults = len(self.disk.faults)
            self.lines.started(life=self.lives)
            try:
                store = SqliteStore.open(self.path, "default", vfs=self.disk.name)
                try:
                    q, self.run = queue_on(store)
                except BaseException:
                    store.close()
                    raise
            except fairway.FairwayError as error:
                self._failed(error, faults)
                continue
            self.store, self.calls = store, Calls(q, self.lines, self.lives)
            return
        raise AssertionError(f"the queue does not open: {self.errors[-3:]}")

    def _failed(self, error: fairway.FairwayError, faults: int) -> None:
        """A call was refused; so many faults had been told before it."""
        self.errors.append(error.code)
        if isinstance(error, fairway.AlreadyEnded) or not self.disk.faults:
            return
        self.after = max(self.after, self.disk.calls - self.disk.faults[-1].number)
        self.refused = self.refused + 1 if len(self.disk.faults) == faults else 0

    def _shut(self) -> None:
        if self.store is not None:
            self.store = None
            self.run.close()
            self.lines.note("crash")

    def _step(self, n: int) -> None:
        dice, calls = self.dice, self.calls
        chance = dice.random()
        if n % 40 == 39:
            assert self.store is not None
            self.store.checkpoint()
        elif chance < 0.4 or not self.ids:
            verb = dice.choice(("put", "submit", "put_many"))
            offers = [self._offer(verb) for _ in range(3 if verb == "put_many" else 1)]
            self.ids += calls.submit("script", verb, offers, 1, self.made)
        elif chance < 0.65 or not self.held:
            self.held += calls.reserve("script", dice.randint(1, 4), LEASE_SECONDS, 0.0)
        elif chance < 0.7:
            calls.cancel("script", dice.choice(self.ids))
        elif chance < 0.75:
            calls.show("script", dice.choice(self.ids))
        else:
            self._settle(self.held.pop(dice.randrange(len(self.held))), chance)

    def _settle(self, lease: Lease, chance: float) -> None:
        receipt = ticket_of(lease)
        if chance < 0.78:
            self.calls.fail("script", [receipt], retry=True, delay_seconds=0.0)
        elif chance < 0.8:
            self.calls.release("script", [receipt])
        elif chance < 0.83:
            self.calls.renew("script", lease, LEASE_SECONDS)
            self.held.append(lease)
        else:
            self.calls.complete("script", [receipt], [result_of(receipt, "script")])

    def _offer(self, verb: str) -> Given:
        self.made += 1
        total = self.dice.randint(2, 4) if verb == "submit" else 1
        return {
            "tenant": self.dice.choice(("", "acme", "whale")),
            "total": total,
            "payloads": [f"{self.made}/{index}" * self.dice.choice((1, 50, 600)) for index in range(total)],
            "metadata": {"mark": self.made},
            "policy": "dead_letter",
            "key": f"key {self.made}",
            "attempts_max": 50,
        }
