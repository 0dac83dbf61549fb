"""A script of calls on a bucket queue whose disk fails at one call: two processes on one file take turns.

Guards: the same calls are made up to the fault, whatever the fault is; an error that is none of Fairway's ends it.
"""

from __future__ import annotations

import random
from pathlib import Path

import fairway
from fairway.bucket.repairing import Repairer, repair
from fairway.testing.disk.faults import Plan
from fairway.testing.disk.vfs import Disk
from tests.faults.bucket_calls import QUEUE, Calls, bucket_queue
from tests.faults.bucket_steps import Steps
from tests.faults.places import place

PROCESSES = 2
OPENS_MAX = 60  # a fault goes away sooner


class BucketScript:
    """One run."""

    def __init__(self, folder: Path, plan: Plan | None, seed: int) -> None:
        folder.mkdir(parents=True)
        self.path = place({}, folder / "queue")
        self.history = folder / "history.jsonl"
        self.dice = random.Random(seed)
        self.steps = Steps(self.dice)
        self.disk = Disk(self.path.parent, seed)
        self.disk.plan = plan
        self.lives = self.done = 0
        self.errors: list[str] = []  # the codes of calls that failed
        self.unopened: list[str] = []  # and of openings
        self.after = 0  # disk calls between a fault and the last error of a call
        self.refused = 0  # calls since the last fault that met none and were refused all the same
        self.processes: list[tuple[Calls, Repairer]] = []

    def play(self, operations: int, calls: int = 0) -> None:
        """Do so many operations, and more if they made fewer calls of the disk than that."""
        while self.done < operations or self.disk.calls < calls:
            # All of them: who comes while others stay does not hear of a sync of the file that failed before.
            if self.done % 40 == 0:
                self._shut()
                for _ in range(PROCESSES):
                    self._open()
            faults, errors = len(self.disk.faults), len(self.errors)
            self._step(*self.dice.choice(self.processes))
            self.done += 1
            if len(self.errors) > errors:
                self._failed(faults)

    def close(self) -> None:
        """Close the queue; what was planned happens no more."""
        self.disk.plan = None
        self._shut()
        self.disk.unregister()

    def _open(self) -> None:
        for _ in range(OPENS_MAX):
            self.lives += 1
            faults = len(self.disk.faults)
            try:
                queue = bucket_queue(self.path, self.disk.name, repairs=False)
            except fairway.FairwayError as error:
                self.unopened.append(error.code)
                self._failed(faults)
                continue
            calls = Calls(queue, self.history, self.lives)
            calls.errors = self.errors
            self.processes.append((calls, Repairer(QUEUE, calls.row.generation)))
            return
        raise AssertionError(f"the queue does not open: {self.unopened[-3:]}")

    def _failed(self, faults: int) -> None:
        """A call was refused; so many faults had been told before it."""
        if self.disk.faults:
            self.after = max(self.after, self.disk.calls - self.disk.faults[-1].number)
            self.refused = self.refused + 1 if len(self.disk.faults) == faults else 0

    def _shut(self) -> None:
        for calls, _ in self.processes:
            calls.queue.close()
            calls.close()
        self.processes.clear()

    def _step(self, calls: Calls, repairer: Repairer) -> None:
        chance = self.dice.random()
        if self.done % 10 == 9:
            self._repair(calls, repairer)
        elif chance < 0.3:
            self.steps.produce(calls, "script")
        elif chance < 0.6:
            self.steps.take(calls)
        elif chance < 0.7:
            self.steps.operate(calls)
        else:
            self.steps.settle(calls)

    def _repair(self, calls: Calls, repairer: Repairer) -> None:
        try:
            calls.queue._verbs._desk.run(repair(repairer))
        except fairway.FairwayError as error:
            self.errors.append(error.code)
