"""Naming: queues are made and deleted by generations that are never used again.

Guards: a message belongs to one generation, so nothing of a deleted queue shows up in its successor; whoever stops in
the middle of a delete leaves a state that any node goes on from.
"""

from __future__ import annotations

from fairway import limits
from fairway.bucket.config import BucketConfig, changed, packed, unpacked
from fairway.bucket.places import LOWEST
from fairway.bucket.rows import Deleting, NameRow, QueueRow
from fairway.bucket.statements import (
    APPLIED,
    FRESH,
    Configure,
    CreateQueue,
    DropGeneration,
    FreeName,
    Machine,
    Moment,
    MoveBucket,
    MoveQueue,
    Outcome,
    ReadDeletes,
    ReadName,
    ReadQueue,
    RemoveBucket,
    Rest,
    insist,
    read,
)
from fairway.bucket.taking import read_index

_REST = Rest(0.05)


def find_queue(name: str) -> Machine[QueueRow | None]:
    """The live generation of a name, or None."""
    row: NameRow = yield from read(ReadName(name))
    queue = row.queue(row.current)
    return queue if queue is not None and queue.state == "live" else None


def create_queue(name: str, config: BucketConfig) -> Machine[QueueRow]:
    """The live generation of a name, made if there is none; one that is being deleted is deleted first."""
    first: Moment = yield FRESH
    second: Moment = yield FRESH
    generation, secret = first.bits.to_bytes(16), second.bits.to_bytes(16)
    while True:
        row: NameRow = yield from read(ReadName(name))
        queue = row.queue(row.current)
        if queue is not None and queue.state == "live":
            return queue
        if queue is not None:
            yield from close_queue(name, queue.generation)
            continue
        mine = row.queue(generation)
        if mine is not None:
            # It was made, and deleted by somebody before this one heard of it: the next one is another.
            moment: Moment = yield FRESH
            generation = moment.bits.to_bytes(16)
        # `changes` dies with every create and delete: a copy that comes late finds another number.
        yield CreateQueue(name, row.changes, generation, packed(config), secret)


def configure(name: str, generation: bytes, changes: dict[str, object]) -> Machine[BucketConfig | None]:
    """Change settings; the whole configuration as it is then, or None if the queue is gone."""
    while True:
        queue: QueueRow | None = yield from read(ReadQueue(name, generation))
        if queue is None or queue.state != "live":
            return None
        new = changed(unpacked(queue.config), changes)
        if packed(new) == queue.config:
            return new
        outcome: Outcome = yield Configure(name, generation, queue.config, packed(new))
        if outcome is APPLIED:
            return new
        yield _REST


def delete_queue(name: str) -> Machine[bytes | None]:
    """Delete what the name stands for; answered when nothing can be put into it any more and the name is free.

    Gives the generation, whose removal goes on with `remove_queue`; None if there was no queue.
    """
    row: NameRow = yield from read(ReadName(name))
    if row.current is None:
        return None
    yield from close_queue(name, row.current)
    return row.current


def close_queue(name: str, generation: bytes) -> Machine[None]:
    """No publish, every bucket sealed, the name free: in this order, or nodes with open buckets go on accepting."""
    yield from insist(MoveQueue(name, generation, "live", "deleting"))
    for entry in (yield from read_index(generation, LOWEST)):
        yield from insist(MoveBucket(generation, entry.bucket, "open", "sealed"))
    yield from insist(FreeName(name, generation))


def remove_queue(name: str, generation: bytes) -> Machine[int]:
    """Remove the buckets of a generation that is being deleted; gives how many. Any node may go on with it."""
    yield from close_queue(name, generation)
    index = yield from read_index(generation, LOWEST)
    for entry in index:
        yield from insist(MoveBucket(generation, entry.bucket, "sealed", "done"))
        yield from insist(RemoveBucket(generation, entry.bucket))
    yield from insist(DropGeneration(generation))
    yield from insist(MoveQueue(name, generation, "deleting", "deleted"))
    return len(index)


def finish_deletes() -> Machine[int]:
    """Go on with deletes, of any name in the storage, that somebody left in the middle; gives how many ended."""
    ended = 0
    found: list[Deleting] = yield from read(ReadDeletes(limits.DELETES_MAX))
    for one in found:
        queue: QueueRow | None = yield from read(ReadQueue(one.name, one.generation))
        # A list may be older than what it tells of: what is live is left alone.
        if queue is not None and queue.state != "live":
            yield from remove_queue(one.name, one.generation)
            ended += 1
    return ended
