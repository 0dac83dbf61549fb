"""Statements: everything a bucket queue asks of its storage, one value each, each atomic on its own.

Guards: a write's answer is applied, refused or unknown; after unknown it may still be carried out, at any later time.

A write is conditional: if its condition does not hold it is refused and changes nothing. Three are plain, because their
keys are written once and never come back: `AddIndex` and `AddDead` stay without effect after their `Drop`.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Any, TypeVar

import msgspec

from fairway.bucket.places import LOWEST
from fairway.bucket.rows import BucketState, DeadLetter, Message, QueueState


class Outcome(Enum):
    """What became of a write; a read that failed is unknown too."""

    APPLIED = "applied"
    REFUSED = "refused"
    UNKNOWN = "unknown"


APPLIED, REFUSED, UNKNOWN = Outcome.APPLIED, Outcome.REFUSED, Outcome.UNKNOWN


class Statement(msgspec.Struct, frozen=True):
    """One atomic thing that a storage does."""


class Read(Statement, frozen=True):
    """A statement that changes nothing; it sees every write that was applied before it."""


class Write(Statement, frozen=True):
    """A statement that is applied whole or not at all."""


# -- queues by name


class ReadName(Read, frozen=True):
    """Gives a NameRow, also for a name that never was."""

    name: str


class CreateQueue(Write, frozen=True):
    """A new live generation, if the name is free and `changes` is what it was when it was read."""

    name: str
    changes: int
    generation: bytes
    config: bytes
    secret: bytes


class Configure(Write, frozen=True):
    """Another configuration, if the queue is live and has the old one."""

    name: str
    generation: bytes
    old: bytes
    new: bytes


class MoveQueue(Write, frozen=True):
    """Set a generation's state, if it has the other one; version + 1."""

    name: str
    generation: bytes
    old: QueueState
    new: QueueState


class FreeName(Write, frozen=True):
    """The name has no generation any more, if it had this one; changes + 1."""

    name: str
    generation: bytes


class ReadQueue(Read, frozen=True):
    """Gives the QueueRow of a generation, or None."""

    name: str
    generation: bytes


class ReadDeletes(Read, frozen=True):
    """Gives every generation of any name that is being deleted, at most `limit`; there may be others among them."""

    limit: int


class Publish(Write, frozen=True):
    """A bucket may be used: version + 1 and newest, if floor < bucket and the queue is live."""

    name: str
    generation: bytes
    bucket: bytes


class MoveFloor(Write, frozen=True):
    """A higher floor and version + 1, if the version is the one read before the index, and the queue is live."""

    name: str
    generation: bytes
    version: int
    floor: bytes


# -- the index


class ReadIndex(Read, frozen=True):
    """Gives IndexRows with above < bucket <= up_to in order, at most `limit`."""

    generation: bytes
    above: bytes
    up_to: bytes
    limit: int


class AddIndex(Write, frozen=True):
    """Plain: enter a bucket; without effect once it was dropped."""

    generation: bytes
    bucket: bytes
    creator: str
    due: float = 0.0


class DropIndex(Write, frozen=True):
    """Plain: drop every entry up to a bucket."""

    generation: bytes
    up_to: bytes


# -- buckets


class CreateBucket(Write, frozen=True):
    """An open bucket, if there is none of this id."""

    generation: bytes
    bucket: bytes
    creator: str
    born: float


class MoveBucket(Write, frozen=True):
    """Set a bucket's state, if it has the other one."""

    generation: bytes
    bucket: bytes
    old: BucketState
    new: BucketState


class RemoveBucket(Write, frozen=True):
    """The bucket with all its rows goes, if it is done."""

    generation: bytes
    bucket: bytes


class Put(Write, frozen=True):
    """Write messages, if the bucket is open; a row that is there already keeps all but body, headers and times."""

    generation: bytes
    bucket: bytes
    messages: list[Message]


class Glance(Read, frozen=True):
    """Gives the Sums of a bucket, or None. It costs little, and may be a little old."""

    generation: bytes
    bucket: bytes


class ReadBucket(Read, frozen=True):
    """Gives the Bucket with all its rows without bodies, or None."""

    generation: bytes
    bucket: bytes


class ReadRows(Read, frozen=True):
    """Gives the Bucket with these rows, as many as there are, with their bodies if asked; or None."""

    generation: bytes
    bucket: bytes
    uids: list[bytes]
    bodies: bool = False


class FindDue(Read, frozen=True):
    """Gives Found: rows above a place that may be delivered now, the first `limit`; or None if there is no bucket."""

    generation: bytes
    bucket: bytes
    now: float
    attempts_max: int
    limit: int
    above: bytes = LOWEST


class CountRows(Read, frozen=True):
    """Gives the Tally of a bucket, or None."""

    generation: bytes
    bucket: bytes
    now: float


class Taken(msgspec.Struct, frozen=True):
    """One row of a take: the version it was read with, and the count of deliveries this one makes."""

    uid: bytes
    version: int
    attempts: int


class Take(Write, frozen=True):
    """Lease rows: version + 1, nonce, lease, attempts, if every one exists, has its version and waits."""

    generation: bytes
    bucket: bytes
    rows: list[Taken]
    nonce: int
    lease: float


class Change(msgspec.Struct, frozen=True):
    """One row that its holder changes: the version and nonce it holds, the nonce it leaves."""

    uid: bytes
    version: int
    nonce: int
    new_nonce: int
    attempts: int = 0


class Finish(Write, frozen=True):
    """Complete rows: status acked, new nonce, no body, if every one has its version and nonce and waits."""

    generation: bytes
    bucket: bytes
    rows: list[Change]


class Hold(Write, frozen=True):
    """Hold rows until another time, or give them back: version + 1, new nonce, lease, held, attempts, error."""

    generation: bytes
    bucket: bytes
    rows: list[Change]
    lease: float
    held: bool
    error: str = ""


class Doom(Write, frozen=True):
    """Rows are to die: status dying, version + 1, new nonce, if they have their version and wait.

    A nonce of 0 is not compared: the repairer holds nothing.
    """

    generation: bytes
    bucket: bytes
    rows: list[Change]
    error: str = ""


class Bury(Write, frozen=True):
    """A row is dead, its body gone, if it is dying."""

    generation: bytes
    bucket: bytes
    uid: bytes


# -- dead letters


class AddDead(Write, frozen=True):
    """Plain: write a dead letter; without effect if it is there, or was dropped while its bucket is there."""

    generation: bytes
    letter: DeadLetter


class DropDead(Write, frozen=True):
    """Plain: drop dead letters."""

    generation: bytes
    uids: list[bytes]


class DropGeneration(Write, frozen=True):
    """Plain: drop the index and the dead letters of a deleted generation."""

    generation: bytes


class ReadDead(Read, frozen=True):
    """Gives DeadLetters with uid > after in order, at most `limit`."""

    generation: bytes
    after: bytes
    limit: int


class CountDead(Read, frozen=True):
    """Gives the number of dead letters."""

    generation: bytes


# -- who repairs


class ReadRepairer(Read, frozen=True):
    """Gives the RepairLease of a queue; its owner is "" if nobody ever repaired it."""

    name: str


class Beat(Write, frozen=True):
    """This one repairs now, if owner and beat are what was read."""

    name: str
    owner: str
    old_owner: str
    old_beat: int


# -- steps


class Fresh:
    """Asks for the time and for random bits: a Moment comes back."""


class Moment(msgspec.Struct, frozen=True):
    """The time in seconds since 1970, and 128 random bits."""

    now: float
    bits: int

    @property
    def nonce(self) -> int:
        """63 random bits that are not 0."""
        return self.bits >> 65 | 1


class Rest(msgspec.Struct, frozen=True):
    """Asks to wait a little."""

    seconds: float


FRESH = Fresh()
Step = Statement | Fresh | Rest
R = TypeVar("R")
Machine = Generator[Step, Any, R]
"""An operation under way: it yields steps, is sent their answers, and returns R."""

_REST = Rest(0.05)  # after an unknown answer the storage is given a little time


def read(statement: Read) -> Machine[Any]:
    """Ask until there is an answer: a read that failed tells nothing."""
    while True:
        found = yield statement
        if found is not UNKNOWN:
            return found
        yield _REST


def insist(statement: Write) -> Machine[Outcome]:
    """Repeat a statement that does no harm when it is carried out twice, until its outcome is known."""
    while True:
        outcome: Outcome = yield statement
        if outcome is not UNKNOWN:
            return outcome
        yield _REST
