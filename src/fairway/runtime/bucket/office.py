"""The office: one open bucket queue in this process, with its slots, its reader and its repairer.

Guards: one put at a time fills a bucket; what the repairer's thread meets never reaches a caller, and is told of.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from fairway.bucket import naming
from fairway.bucket.electing import Candidate, beating, elect
from fairway.bucket.places import place_after
from fairway.bucket.port import BucketStorage
from fairway.bucket.redriving import redrive
from fairway.bucket.repairing import Repairer, repair
from fairway.bucket.rows import DeadLetter, Message, QueueRow
from fairway.bucket.statements import Machine
from fairway.bucket.taking import Reader
from fairway.bucket.writing import Slot, Told, Writer, put
from fairway.errors import Closed, FairwayError
from fairway.limits import (
    BUCKET_CLOSE_SECONDS,
    DELETES_SECONDS,
    HOUR_BUCKET_SECONDS,
    REPAIR_SECONDS,
)
from fairway.runtime.bucket.running import run
from fairway.runtime.failing import Failing

R = TypeVar("R")
_FORK_SECONDS = 2.0  # a statement takes milliseconds


class Office:
    """What the verbs of a bucket queue stand on."""

    def __init__(self, name: str, queue: QueueRow, storage: BucketStorage, *, repairs: bool = True) -> None:
        self.name, self.queue, self._storage = name, queue, storage
        self._enter()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if repairs:
            self._thread = threading.Thread(target=self._repair, name=f"fairway-repair-{name}", daemon=True)
            self._thread.start()
        _offices.add(self)

    def _enter(self) -> None:
        """Become a node: a name that no other process has, and buckets of its own."""
        self.node = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.reader = Reader(self.name, self.queue, self.node)
        self._writer = Writer(self.name, self.queue, self.node)
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._heard = threading.Condition()
        self._slots: dict[int, list[Slot]] = {}
        self._busy: dict[int, int] = {}
        self._last_uid = b""

    # -- what verbs ask for
    def run(self, machine: Machine[R]) -> R:
        if self._closed.is_set():
            machine.close()
            raise Closed()
        return run(machine, self._storage)

    def put(self, hour: int, messages: list[Message]) -> Told:
        return self._fill(hour, lambda slot: put(self._writer, slot, messages))

    def redrive(self, letters: list[DeadLetter], messages: list[Message]) -> Told:
        return self._fill(0, lambda slot: redrive(self._writer, slot, letters, messages))

    def _fill(self, hour: int, machine: Callable[[Slot], Machine[Told]]) -> Told:
        with self._slot(hour) as slot:
            try:
                told = self.run(machine(slot))
            except BaseException:
                slot.drop()  # nobody knows what is in its bucket; the repairer seals it
                raise
            if hour:
                self._forget_hours(hour)
            return told

    def now(self) -> float:
        return time.time()

    def fresh_uids(self, count: int) -> list[bytes]:
        now, bits = time.time(), secrets.randbits(62)
        with self._lock:
            uids: list[bytes] = []
            for _ in range(count):
                self._last_uid = place_after(now, [self._last_uid] if self._last_uid else [], bits)
                uids.append(self._last_uid)
            return uids

    def changed(self) -> None:
        with self._heard:
            self._heard.notify_all()

    def wait(self, seconds: float) -> None:
        """Until something changes here, or some seconds; others' changes are found by looking."""
        with self._heard:
            if not self._closed.is_set():
                self._heard.wait(seconds)
        if self._closed.is_set():
            raise Closed()

    def delete(self) -> None:
        generation = self.run(naming.delete_queue(self.name)) if self._is_current() else None
        if generation is not None:
            # Answered for already: the name is free. What is left here the repairer of any queue goes on with.
            with suppress(FairwayError):
                self.run(naming.remove_queue(self.name, generation))
        self.changed()

    def _is_current(self) -> bool:
        """A handle deletes the queue it was opened for, never its successor."""
        found = self.run(naming.find_queue(self.name))
        return found is not None and found.generation == self.queue.generation

    # -- slots
    @contextmanager
    def _slot(self, hour: int) -> Iterator[Slot]:
        """A slot that is this thread's alone; it waits for one if all are in use."""
        with self._free:
            while (slot := self._idle(hour)) is None:
                self._free.wait()
        try:
            yield slot
        finally:
            with self._free:
                self._slots.setdefault(hour, []).append(slot)
                self._busy[hour] -= 1
                self._free.notify_all()  # whoever waits for another hour would keep it to himself

    def _idle(self, hour: int) -> Slot | None:
        idle = self._slots.setdefault(hour, [])
        most = self._writer.config.open_buckets if not hour else 1
        if idle or self._busy.get(hour, 0) < most:
            self._busy[hour] = self._busy.get(hour, 0) + 1
            # The one used last: with few writers few buckets are begun.
            return idle.pop() if idle else Slot(hour * HOUR_BUCKET_SECONDS)
        return None

    def _forget_hours(self, hour: int) -> None:
        """Hours that have passed need no slot; their open buckets are sealed by the repairer."""
        now = int(time.time() // HOUR_BUCKET_SECONDS)
        with self._lock:
            for old in [one for one in self._slots if 0 < one < now and one != hour]:
                if not self._busy.get(old):
                    del self._slots[old]

    # -- repair
    def _repair(self) -> None:
        candidate = Candidate(self.name, self.node)
        repairer = Repairer(self.name, self.queue.generation)
        failing, deletes_at = Failing(self.name), 0.0
        while not self._closed.wait(REPAIR_SECONDS):
            reason = None
            try:
                if self._round(elect(candidate, time.monotonic())):
                    self._round(beating(candidate, repair(repairer), time.monotonic))
                    if time.monotonic() >= deletes_at:
                        deletes_at = time.monotonic() + DELETES_SECONDS
                        self._round(beating(candidate, naming.finish_deletes(), time.monotonic))
            except Closed:
                return
            except FairwayError as error:  # the next round, or another node, goes on with it
                reason = str(error)
            if self._going():
                failing.tell("repair its buckets", reason)

    def _round(self, machine: Machine[R]) -> R:
        return run(machine, self._storage, self._closed.wait, going=self._going)

    def _going(self) -> bool:
        return not self._closed.is_set()

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        self.changed()
        if self._thread is not None and self._thread is not threading.current_thread():
            # It stops after the statement it is at. One that hangs is not waited for: it may stop anywhere.
            self._thread.join(BUCKET_CLOSE_SECONDS)
        self._storage.close()

    # -- fork
    def before_fork(self) -> Callable[[], None] | None:
        hold: Callable[[float], bool] | None = getattr(self._storage, "hold_still", None)
        if self._closed.is_set() or hold is None or not hold(_FORK_SECONDS):
            return None
        return getattr(self._storage, "go_on", None)

    def forked(self) -> None:
        """In the child: a node of its own, that the parent repairs for."""
        leave: Callable[[], None] | None = getattr(self._storage, "leave_to_parent", None)
        closed = self._closed.is_set()
        self._closed = threading.Event()
        if closed or leave is None:
            self._closed.set()
            return
        leave()
        self._thread = None
        self._enter()


_offices: weakref.WeakSet[Office] = weakref.WeakSet()
_resting: list[tuple[Office, Any]] = []


def _before_fork() -> None:
    _resting[:] = [(office, office.before_fork()) for office in list(_offices)]


def _after_fork_in_parent() -> None:
    for _, go_on in _resting:
        if go_on is not None:
            go_on()
    _resting.clear()


def _after_fork_in_child() -> None:
    resting = list(_resting)
    _resting.clear()
    for office, _ in resting:
        office.forked()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
