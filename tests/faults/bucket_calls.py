"""A bucket queue on a disk of the test's own, whose calls are written down; each message is told by its id.

Guards: a put or redrive is written down before the storage hears of it, with the ids that it gives; a call whose answer
came when the power was gone has none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.bucket import naming
from fairway.bucket.config import BucketConfig
from fairway.bucket.rows import DeadLetter, Message
from fairway.bucket.writing import Told
from fairway.face.bucket.queue import BucketVerbs
from fairway.runtime.bucket.office import Office
from fairway.runtime.bucket.ports import OfficePort
from fairway.runtime.bucket.running import run
from fairway.store.sqlite.buckets import SqliteBuckets
from fairway.testing.history import Begin, End, Line
from tests.bucket.worker_script import Recorded

QUEUE = "events"
CONFIG = BucketConfig(
    attempts_max=4,
    lease_seconds=0.2,
    retry_delay_seconds=0.01,
    retry_delay_seconds_max=0.05,
    bucket_rows=20,
    open_buckets=2,
    seal_seconds=0.1,
)
_OFTEN = {  # what a queue does every few seconds: these tests have none
    "REPAIR_SECONDS": 0.05,
    "REPAIRER_SILENT_SECONDS": 0.2,
    "GLANCE_SECONDS_MAX": 0.1,
    "SWEEP_SECONDS": 0.1,
    "SWEEP_AT_REST_SECONDS": 0.05,
    "SIGHTING_SECONDS_MAX": 0.05,
}


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Let queues repair themselves and copy their log often."""
    for name, seconds in _OFTEN.items():
        patch.setattr(f"fairway.limits.{name}", seconds)
    patch.setattr("fairway.runtime.bucket.office.REPAIR_SECONDS", _OFTEN["REPAIR_SECONDS"])
    patch.setattr("fairway.store.sqlite.buckets.WAL_CHECKPOINT_PAGES", 60)


def bucket_queue(path: Path, vfs: str | None, *, repairs: bool = True) -> fairway.BucketQueue:
    """A real queue, as one process has it; it repairs the buckets by itself, or is told to."""
    storage = SqliteBuckets.open(path, vfs=vfs)
    try:
        office = Office(QUEUE, run(naming.create_queue(QUEUE, CONFIG), storage), storage, repairs=repairs)
    except BaseException:
        storage.close()
        raise
    return fairway.BucketQueue(QUEUE, BucketVerbs(office), OfficePort(office))


class Calls(Recorded):
    """The recorded verbs, those for dead letters too. One thread makes them."""

    def __init__(
        self, queue: fairway.BucketQueue, history: Path, number: int, dark: Callable[[], bool] = lambda: False
    ) -> None:
        self._dark = dark
        self._open: list[tuple[int, set[str]]] = []  # batches of the put under way
        super().__init__(queue, str(history), f"caller-{number}")
        desk = queue._verbs._desk
        self._put, desk.put = desk.put, self._hear_put
        self._redrive, desk.redrive = desk.redrive, self._hear_redrive

    @staticmethod
    def label(uid: bytes, body: bytes) -> str:
        return uid.hex()

    def _write(self, line: Line) -> None:
        if not self._dark():
            super()._write(line)

    # -- what offers messages
    def put(self, bodies: list[bytes], delay: float) -> None:
        items = [{"payload": body, "delay_seconds": delay} for body in bodies]
        self._offer(lambda: self.queue.put_many(items))

    def redrive(self, letters: list[fairway.DeadMessage]) -> None:
        self._offer(lambda: self.queue.redrive([letter.id for letter in letters]))

    def _offer(self, function: Callable[[], object]) -> None:
        error, accepted = "", None
        try:
            function()
        except fairway.FairwayError as raised:
            error, accepted = raised.code, set(raised.details.get("accepted", []))
            self.errors.append(error)
        for call, uids in self._open:
            stored = accepted is None or uids <= accepted
            self._write(End(time.time(), call, "accepted") if stored else End(time.time(), call, error=error))
        self._open.clear()

    def _hear_put(self, hour: int, messages: list[Message]) -> Told:
        self._offered("put", messages)
        return self._put(hour, messages)

    def _hear_redrive(self, letters: list[DeadLetter], messages: list[Message]) -> Told:
        self._offered("redrive", messages, letters=[letter.uid.hex() for letter in letters])
        return self._redrive(letters, messages)

    def _offered(self, op: str, messages: list[Message], **more: Any) -> None:
        self._calls += 1
        uids = [message.uid.hex() for message in messages]
        bodies = [message.body.decode() for message in messages]
        due = messages[0].not_before
        args = {"queue": self.row.generation.hex(), "uids": uids, "bodies": bodies, "due": due, **more}
        self._write(Begin(time.time(), self._calls, self.who, op, args))
        self._open.append((self._calls, set(uids)))

    # -- the others
    def renew(self, lease: fairway.BucketLease) -> fairway.BucketLease | None:
        """The renewed lease; None if it was lost, or nobody knows."""

        def renew() -> fairway.BucketLease | None:
            try:
                return self.queue.renew(lease)
            except fairway.LeaseLost:
                return None

        args = {"uids": [lease.id], "versions": [self.ticket(lease).version]}
        return self.call("renew", args, renew, lambda found: ["lost" if found is None else "renewed"])

    def dead(self) -> list[fairway.DeadMessage]:
        letters = self.call("dead", {}, lambda: list(self.queue.dead()), lambda all: [one.id for one in all])
        return letters or []

    def purge(self, letters: list[fairway.DeadMessage]) -> None:
        ids = [letter.id for letter in letters]
        self.call("purge", {"uids": ids}, lambda: self.queue.purge(ids), lambda _: "purged")
