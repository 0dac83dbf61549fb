"""Rows: what the storage of bucket queues keeps, as frozen values.

Guards: put writes the first half of a row (body, headers, times), everything else the second (version, nonce, lease,
attempts, status, error); no statement writes both, or a late put would give back what was completed.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

QueueState = Literal["live", "deleting", "deleted"]
BucketState = Literal["open", "sealed", "done"]

WAITING: Final = 0  # to be delivered, or leased
ACKED: Final = 1  # completed: terminal
DYING: Final = 2  # on its way to the dead letters: never delivered again
DEAD: Final = 3  # its dead letter is written: terminal
FINISHED: Final = (ACKED, DEAD)


class Message(msgspec.Struct, frozen=True):
    """A message as put writes it."""

    uid: bytes
    body: bytes
    headers: bytes
    created: float
    not_before: float


class Row(msgspec.Struct, frozen=True):
    """A message in its bucket. 0 stands for what was never written: version, nonce, lease, status."""

    uid: bytes
    created: float
    not_before: float
    version: int = 0
    nonce: int = 0
    lease: float = 0.0
    attempts: int = 0
    held: bool = False  # `lease` is a lease, not a back-off
    status: int = WAITING
    error: str = ""
    body: bytes | None = None
    headers: bytes = b""

    @property
    def due(self) -> float:
        """When it may be delivered."""
        return max(self.not_before, self.lease)


class Bucket(msgspec.Struct, frozen=True):
    """A bucket as read, with the rows that were asked for."""

    state: BucketState
    creator: str
    born: float
    rows: list[Row]

    def row(self, uid: bytes) -> Row | None:
        return next((row for row in self.rows if row.uid == uid), None)


class Found(msgspec.Struct, frozen=True):
    """What is due in a bucket, without bodies; if that is less than was asked for, when the next one is due."""

    state: BucketState
    rows: list[Row]
    next_due: float | None


class Tally(msgspec.Struct, frozen=True):
    """How many rows of a bucket are in which state."""

    state: BucketState
    ready: int
    delayed: int
    leased: int
    dying: int
    finished: int


class Sums(msgspec.Struct, frozen=True):
    """Sums over a bucket's rows: whatever happens to one of them changes them."""

    state: BucketState
    born: float
    rows: int
    last: float  # when the newest row was created; when the bucket was born if it has none
    versions: int  # the sum of all versions
    settled: int  # rows that do not wait
    statuses: int  # the sum of all states; more than `settled` if one is dying or dead
    attempts: int  # the most deliveries of a row


class IndexRow(msgspec.Struct, frozen=True):
    """A bucket's entry in the index of its queue."""

    bucket: bytes
    creator: str
    due: float = 0.0  # nothing that is put into it may be delivered before


class QueueRow(msgspec.Struct, frozen=True):
    """One generation of a queue."""

    generation: bytes
    state: QueueState
    version: int
    floor: bytes
    newest: bytes
    config: bytes
    secret: bytes


class NameRow(msgspec.Struct, frozen=True):
    """A queue's name: its present generation, how often that changed, and every generation that is kept."""

    current: bytes | None
    changes: int
    queues: list[QueueRow]

    def queue(self, generation: bytes | None) -> QueueRow | None:
        return next((queue for queue in self.queues if queue.generation == generation), None)


class Deleting(msgspec.Struct, frozen=True):
    """A generation whose delete has begun, and may have ended."""

    name: str
    generation: bytes


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was delivered too often, or given up."""

    uid: bytes
    bucket: bytes
    body: bytes
    headers: bytes
    created: float
    died: float
    attempts: int
    error: str


class RepairLease(msgspec.Struct, frozen=True):
    """Who repairs a queue now; `beat` rises while it lives."""

    owner: str
    beat: int
