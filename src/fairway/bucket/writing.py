"""Writing: a node makes buckets of its own and puts messages into them.

Guards: an accepted message is in a bucket that is in the index (I1); a late put is redirected, never late.
"""

from __future__ import annotations

from enum import Enum

from fairway import limits
from fairway.bucket.config import BucketConfig, unpacked
from fairway.bucket.places import place_after
from fairway.bucket.rows import Bucket, Message, QueueRow
from fairway.bucket.statements import (
    APPLIED,
    FRESH,
    REFUSED,
    UNKNOWN,
    AddIndex,
    CreateBucket,
    Machine,
    Moment,
    MoveBucket,
    Outcome,
    Publish,
    Put,
    ReadQueue,
    ReadRows,
    Rest,
    insist,
    read,
)

_REST = Rest(0.05)


class Told(Enum):
    """What the one who puts is told."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"  # the bucket was emptied and removed before anybody could look
    GONE = "gone"  # the queue is deleted


class Slot:
    """A place in a node for one bucket that it fills; one put at a time, and nothing that is due before a time."""

    __slots__ = ("bucket", "bytes", "due", "rows")

    def __init__(self, due: float = 0.0) -> None:
        self.due = due
        self.bucket: bytes | None = None
        self.rows = 0
        self.bytes = 0

    def drop(self) -> None:
        self.bucket, self.rows, self.bytes = None, 0, 0


class Writer:
    """What a node knows as a writer of one generation."""

    def __init__(self, name: str, queue: QueueRow, node: str) -> None:
        self.name, self.generation, self.node = name, queue.generation, node
        self.config: BucketConfig = unpacked(queue.config)  # as of the last bucket that was made
        self.last = b""  # the highest id this node chose


def hour_of(now: float, not_before: float) -> int:
    """Which buckets a message goes to: 0 for those of now, else the hour of its time.

    One message that stays for days keeps its bucket in the index for days; so those of one hour share theirs, which
    stays open and is looked at by nobody until then.
    """
    far = not_before - now > limits.HOUR_BUCKET_SECONDS
    return int(not_before // limits.HOUR_BUCKET_SECONDS) if far else 0


def make_bucket(writer: Writer, due: float = 0.0) -> Machine[bytes | None]:
    """A published bucket for what is not due before a time, or None if the queue is gone.

    A create of unknown outcome is abandoned with its id: carried out late, it would open a removed bucket again.
    """
    while True:
        queue: QueueRow | None = yield from read(ReadQueue(writer.name, writer.generation))
        if queue is None or queue.state != "live":
            return None
        writer.config = unpacked(queue.config)
        moment: Moment = yield FRESH
        bucket = place_after(
            moment.now, [queue.floor, queue.newest, *([writer.last] if writer.last else [])], moment.bits
        )
        writer.last = bucket
        # State before index before publish: an index entry without a bucket would pass for a removed one.
        created: Outcome = yield CreateBucket(writer.generation, bucket, writer.node, moment.now)
        if created is not APPLIED:
            continue
        yield from insist(AddIndex(writer.generation, bucket, writer.node, due))
        if (yield from insist(Publish(writer.name, writer.generation, bucket))) is APPLIED:
            return bucket


def put(writer: Writer, slot: Slot, messages: list[Message]) -> Machine[Told]:
    """Put messages together, into the slot's bucket or, when that is full or sealed, into the next one."""
    # Nobody looks into a bucket before its time.
    assert all(message.not_before >= slot.due for message in messages)
    size = sum(len(message.body) + len(message.headers) for message in messages)
    while True:
        yield from _ready(writer, slot, len(messages), size)
        if slot.bucket is None:
            return Told.GONE
        told = yield from _put_into(writer.generation, slot.bucket, messages)
        if told is Told.ACCEPTED:
            slot.rows += len(messages)
            slot.bytes += size
            return told
        slot.drop()
        if told is not None:
            return told


def _ready(writer: Writer, slot: Slot, rows: int, size: int) -> Machine[None]:
    """The slot has a bucket with room, or none because the queue is gone."""
    full = slot.rows + rows > writer.config.bucket_rows or slot.bytes + size > limits.BUCKET_BYTES_MAX
    if slot.bucket is not None and slot.rows and full:
        # Whatever comes of this: the repairer seals full buckets too.
        yield MoveBucket(writer.generation, slot.bucket, "open", "sealed")
        slot.drop()
    if slot.bucket is None:
        slot.bucket = yield from make_bucket(writer, slot.due)


def _put_into(generation: bytes, bucket: bytes, messages: list[Message]) -> Machine[Told | None]:
    """ACCEPTED, UNKNOWN, or None: the bucket is sealed and the messages are surely not in it."""
    statement, doubt = Put(generation, bucket, messages), False
    while True:
        outcome: Outcome = yield statement
        if outcome is APPLIED:
            return Told.ACCEPTED
        if outcome is REFUSED and not doubt:
            return None
        # Once one copy is out of sight a refusal is no answer either: that copy may have come late.
        doubt = True
        found: Bucket | None = yield from read(ReadRows(generation, bucket, [messages[0].uid]))
        if found is None:
            return Told.UNKNOWN
        if found.rows:
            return Told.ACCEPTED
        if found.state != "open":
            return None
        if outcome is UNKNOWN:
            yield _REST
