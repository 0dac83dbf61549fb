"""A machine with a queue under load, whose power is cut: producers and consumers in threads on one disk.

Guards: nothing that the queue says after the cut is written down, as nobody would have heard it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import fairway
from fairway.face.verbs import Verbs
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import writer
from fairway.runtime.running import Running
from fairway.store.sqlite import SqliteStore
from fairway.testing.disk.vfs import Disk
from fairway.testing.history import Line
from fairway.testing.vocabulary import submission_of
from tests.kill.follower import Follower
from tests.kill.recorded import Lines, Recorded
from tests.kill.worker import CALLS_PER_LIFE, Again, Consumer, Producer

PRODUCERS = 2
CONSUMERS = 3
LIFE_SECONDS = 10.0  # the power goes at the latest after this


class Mortal(Lines):
    """The lines of one machine."""

    off = False

    def go_dark(self) -> None:
        self.off = True

    def _write(self, line: Line) -> None:
        if not self.off:
            super()._write(line)


class Calls(Recorded):
    """The recorded verbs, and cancel."""

    def cancel(self, who: str, id: int) -> None:
        self.lines.call(who, "cancel", {"sub": id}, lambda: submission_of(self.q.cancel(id)))


class Canceller(Producer):
    """A producer that sometimes thinks better of it."""

    def step(self) -> None:
        self._produce()
        recorded = self.recorded
        assert isinstance(recorded, Calls)
        if self.dice.random() < 0.15:
            self.made += 1
            client = recorded.life * 100 + self.n + 1
            (id,) = recorded.submit(self.who, "put", [self._offer("put", client, 0)], client, self.made)
            recorded.cancel(self.who, id)


def queue_on(store: SqliteStore) -> tuple[fairway.Queue, Running]:
    """A real queue on a store of the test's own."""
    run = Running("default", store)
    return fairway.Queue(
        "default", Verbs(ObstoreObjects(), writer, read), ThreadPort(run.host, run.close)
    ), run


class Machine:
    """One life: from the power switch to the cut."""

    def __init__(self, path: Path, history: Path, offset: float, life: int, seed: int) -> None:
        self.path, self.life, self.seed = path, life, seed
        self.dice = random.Random(seed)
        self.disk = Disk(path.parent, seed)
        self.lines = Mortal(history, offset, life * CALLS_PER_LIFE)
        self.disk.dark = self.lines.go_dark
        self.broken: list[BaseException] = []

    def live(self, cut_at: int, follower: Follower) -> None:
        """Work until the power goes, before the change of the disk that has this number."""
        self.disk.cut_at = cut_at
        self.lines.started(life=self.life)
        try:
            store = SqliteStore.open(self.path, "default", vfs=self.disk.name)
            try:
                q, run = queue_on(store)
            except BaseException:
                store.close()
                raise
        except fairway.FairwayError:
            assert self.disk.off, "a queue opens unless the power is off"
        else:
            self._work(q, run, store, follower)
        finally:
            self.lines.close()
            self.disk.unregister()
        if self.broken:
            raise self.broken[0]

    def _work(self, q: fairway.Queue, run: Running, store: SqliteStore, follower: Follower) -> None:
        recorded = Calls(q, self.lines, self.life)
        steps: list[Callable[[], None]] = [partial(self._checkpoint, store)]
        again, receipts = follower.unknown(), follower.receipts()
        for n in range(PRODUCERS):
            producer = Canceller(recorded, n, self.seed)
            steps.append(partial(self._produce, producer, again[n::PRODUCERS]))
        for n in range(CONSUMERS):
            consumer = Consumer(recorded, n, self.seed)
            old = receipts[n::CONSUMERS]
            steps.append(partial(self._consume, consumer, old))
        threads = [threading.Thread(target=self._until_dark, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        give_up = time.monotonic() + LIFE_SECONDS
        while not self.disk.off and time.monotonic() < give_up and not self.broken:
            time.sleep(0.002)
        self.disk.cut()
        q.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()

    def _until_dark(self, step: Callable[[], None]) -> None:
        try:
            while not self.disk.off:
                with suppress(fairway.FairwayError):  # it stands in the history
                    step()
        except BaseException as error:
            self.broken.append(error)

    def _produce(self, producer: Canceller, again: list[Again]) -> None:
        if again:
            one = again.pop()
            producer.recorded.submit(producer.who, one.verb, one.offers, one.client, one.number)
        else:
            producer.step()

    def _consume(self, consumer: Consumer, receipts: list) -> None:
        if receipts:
            consumer._complete([receipts.pop()])
        else:
            consumer._consume()

    def _checkpoint(self, store: SqliteStore) -> None:
        time.sleep(self.dice.random() * 0.1)
        store.checkpoint()
