"""A machine with a bucket queue under load, whose power is cut: several processes on one disk, a thread for each.

Guards: each has connections, buckets and a repairer of its own; what is told after the cut is written down by none.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import fairway
from fairway.testing.disk.vfs import Disk
from tests.faults.bucket_calls import Calls, bucket_queue
from tests.faults.bucket_steps import Steps

LIFE_SECONDS = 10.0  # the power goes at the latest after this
ROLES = ("produce", "produce", "consume", "consume", "operate")  # of the processes


class Machine:
    """One life: from the power switch to the cut."""

    def __init__(self, path: Path, history: Path, life: int, seed: int, generation: bytes = b"") -> None:
        self.path, self.history, self.life, self.seed = path, history, life, seed
        self.generation = generation  # of the queue, once one was made
        self.disk = Disk(path.parent, seed)
        self.broken: list[BaseException] = []

    def live(self, cut_at: int, held: list[fairway.BucketLease]) -> None:
        """Work until the power goes, before the change of the disk that has this number."""
        self.disk.cut_at = cut_at
        processes: list[Calls] = []
        try:
            try:
                for n in range(len(ROLES)):
                    processes.append(self._process(n))
            except fairway.FairwayError:
                assert self.disk.off, "a queue opens unless the power is off"
            else:
                found = processes[0].row.generation
                assert self.generation in (b"", found), "the queue is gone"
                self.generation = found
                self._work(processes, held)
        finally:
            self.disk.cut()
            for calls in processes:
                calls.queue.close()
                calls.close()
            self.disk.unregister()
        if self.broken:
            raise self.broken[0]

    def _process(self, n: int) -> Calls:
        queue = bucket_queue(self.path, self.disk.name)
        return Calls(queue, self.history, self.life * len(ROLES) + n, lambda: self.disk.off)

    def _work(self, processes: list[Calls], held: list[fairway.BucketLease]) -> None:
        threads: list[threading.Thread] = []
        for n, (calls, role) in enumerate(zip(processes, ROLES, strict=True)):
            steps = Steps(Random(f"{self.seed} {n}"))
            if role == "consume":  # what was held when the power went
                steps.held, held[:] = held[: len(held) // 2 + 1], held[len(held) // 2 + 1 :]
            threads.append(threading.Thread(target=self._until_dark, args=(role, steps, calls, held)))
        for thread in threads:
            thread.start()
        give_up = time.monotonic() + LIFE_SECONDS
        while not self.disk.off and time.monotonic() < give_up and not self.broken:
            time.sleep(0.002)
        self.disk.cut()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()

    def _until_dark(self, role: str, steps: Steps, calls: Calls, held: list[fairway.BucketLease]) -> None:
        try:
            while not self.disk.off:
                if role == "produce":
                    steps.produce(calls, calls.who)
                    time.sleep(0.002)
                elif role == "consume":
                    steps.take(calls, 0.01)
                    steps.settle(calls)
                else:
                    time.sleep(0.01)
                    steps.operate(calls)
        except BaseException as error:
            self.broken.append(error)
        held += steps.held
