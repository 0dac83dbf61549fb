"""Repairing: what any node may do for a queue at any time, in rounds.

Guards: every step is right whoever does it and however often, so two repairers are harmless; a bucket is removed only
when it is sealed and every message in it is finished, and no time-out decides whether a message exists.
"""

from __future__ import annotations

import msgspec

from fairway import limits
from fairway.bucket.burying import bury
from fairway.bucket.config import BucketConfig, unpacked
from fairway.bucket.glancing import Look, due_looks, idle, needs_reading
from fairway.bucket.places import LOWEST
from fairway.bucket.rows import (
    DYING,
    FINISHED,
    WAITING,
    Bucket,
    BucketState,
    IndexRow,
    QueueRow,
    Row,
    Sums,
)
from fairway.bucket.statements import (
    APPLIED,
    FRESH,
    Change,
    Doom,
    DropIndex,
    Glance,
    Machine,
    Moment,
    MoveBucket,
    MoveFloor,
    Outcome,
    ReadBucket,
    ReadQueue,
    RemoveBucket,
    insist,
    read,
)
from fairway.bucket.taking import read_index


class Round(msgspec.Struct):
    """What a round of repair did."""

    buckets: int = 0
    sealed: int = 0
    buried: int = 0
    removed: int = 0
    floor: bytes = b""


class Repairer:
    """What a node knows as the repairer of one generation."""

    def __init__(self, name: str, generation: bytes) -> None:
        self.name, self.generation = name, generation
        self.config: BucketConfig | None = None
        self.looks: dict[bytes, Look] = {}
        self.swept = LOWEST  # up to here the index is known to be empty
        self.swept_at = float("-inf")
        self.gone: set[bytes] = set()  # seen removed: that is for ever


def repair(repairer: Repairer) -> Machine[Round | None]:
    """One round over a queue: seal, bury, clean, move the floor, sweep below it; None if the queue is gone."""
    generation, done = repairer.generation, Round()
    # The queue's row before the index: a bucket published in between changes the version, and the floor stays.
    queue: QueueRow | None = yield from read(ReadQueue(repairer.name, generation))
    if queue is None or queue.state != "live":
        return None
    config = unpacked(queue.config)
    index = yield from read_index(generation, queue.floor)
    repairer.gone = {bucket for bucket in repairer.gone if bucket > queue.floor}
    # What is not looked at in this round holds the floor where it is.
    states: dict[bytes, BucketState | None] = {
        entry.bucket: None if entry.bucket in repairer.gone else "open" for entry in index
    }
    live = [entry for entry in index if states[entry.bucket] is not None]
    known = repairer.looks if repairer.config == config else {}
    repairer.config = config
    looks = repairer.looks = {entry.bucket: known.get(entry.bucket) or Look() for entry in live}
    moment: Moment = yield FRESH
    for bucket in due_looks(looks, live, moment.now):
        done.buckets += 1
        state = states[bucket] = yield from repair_bucket(generation, bucket, config, done, looks[bucket])
        if state is None:
            repairer.gone.add(bucket)
    done.floor = yield from _move_floor(repairer, queue, index, states)
    # Not at every move of the floor: each sweep leaves a tombstone, which the next repairer's first sweep reads.
    busy = any(entry.bucket > done.floor for entry in index)
    rest = limits.SWEEP_SECONDS if busy else limits.SWEEP_AT_REST_SECONDS
    if done.floor > repairer.swept and abs(moment.now - repairer.swept_at) >= rest:
        yield from _sweep(repairer, done, moment.now)
    return done


def repair_bucket(
    generation: bytes, bucket: bytes, config: BucketConfig, done: Round, look: Look
) -> Machine[BucketState | None]:
    """Do what a bucket needs next; gives its state as far as it is known, None if it is removed."""
    sums: Sums | None = yield from read(Glance(generation, bucket))
    moment: Moment = yield FRESH
    if sums is None:
        # That a bucket is gone is believed only of a read that decides.
        gone: Bucket | None = yield from read(ReadBucket(generation, bucket))
        return None if gone is None else gone.state
    look.saw(sums, moment.now)
    state = sums.state
    if needs_reading(look, sums, config, moment.now):
        found: Bucket | None = yield from read(ReadBucket(generation, bucket))
        if found is None:
            return None
        look.read(found, config)
        buried = yield from _bury(generation, bucket, found, config, moment, done)
        look.again(moment.now if buried else max(look.over_at, moment.now))
        # Sealed and finished in one and the same read: neither can change any more.
        if found.state == "sealed" and all(row.status in FINISHED for row in found.rows):
            if (yield MoveBucket(generation, bucket, "sealed", "done")) is not APPLIED:
                return "sealed"
            state = "done"
    if state == "done":
        look.again(moment.now)
        if (yield RemoveBucket(generation, bucket)) is APPLIED:
            done.removed += 1
            return None
    elif state == "open" and idle(sums, config, moment.now):
        yield MoveBucket(generation, bucket, "open", "sealed")
        done.sealed += 1
        look.again(moment.now)
    elif state == "open":
        look.again(sums.last + config.seal_seconds)
    return state


def _bury(
    generation: bytes, bucket: bytes, found: Bucket, config: BucketConfig, moment: Moment, done: Round
) -> Machine[int]:
    """Messages that were delivered often enough and came back die; what others left dying is buried."""
    dying = [row.uid for row in found.rows if row.status == DYING]
    for row in found.rows:
        over = row.status == WAITING and row.attempts >= config.attempts_max and row.lease <= moment.now
        if over and (yield _doom(generation, bucket, row, moment)) is APPLIED:
            dying.append(row.uid)
    for start in range(0, len(dying), limits.BUCKET_BATCH_ROWS_MAX):
        some = dying[start : start + limits.BUCKET_BATCH_ROWS_MAX]
        done.buried += yield from bury(generation, bucket, some)
    return len(dying)


def _doom(generation: bytes, bucket: bytes, row: Row, moment: Moment) -> Doom:
    error = row.error or f"delivered {row.attempts} times and never completed"
    return Doom(generation, bucket, [Change(row.uid, row.version, 0, moment.nonce, row.attempts)], error)


def _move_floor(
    repairer: Repairer,
    queue: QueueRow,
    index: list[IndexRow],
    states: dict[bytes, BucketState | None],
) -> Machine[bytes]:
    """Raise the floor over buckets that are done or gone, up to the first that is not; gives the floor."""
    new = queue.floor
    for entry in index:
        if states[entry.bucket] not in ("done", None):
            break
        new = entry.bucket
    if new == queue.floor:
        return new
    outcome: Outcome = yield MoveFloor(repairer.name, repairer.generation, queue.version, new)
    return new if outcome is APPLIED else queue.floor


def _sweep(repairer: Repairer, done: Round, now: float) -> Machine[None]:
    """Below the floor: remove what a dead repairer left, then drop the index entries."""
    generation = repairer.generation
    for entry in (yield from read_index(generation, repairer.swept, done.floor)):
        # Removed before its entry goes: without an entry nobody would find a bucket that is done.
        if entry.bucket not in repairer.gone and not (yield from _removed(generation, entry.bucket, done)):
            return
    yield from insist(DropIndex(generation, done.floor))
    repairer.swept, repairer.swept_at = done.floor, now


def _removed(generation: bytes, bucket: bytes, done: Round) -> Machine[bool]:
    """Whether a bucket below the floor is removed: it is done, or was made too late to be published."""
    for _ in range(2):
        if (yield RemoveBucket(generation, bucket)) is APPLIED:
            done.removed += 1
            return True
        found: Bucket | None = yield from read(ReadBucket(generation, bucket))
        if found is None:
            return True
        if found.rows and found.state != "done":
            return False  # that cannot be; and what cannot be is not removed
        yield MoveBucket(generation, bucket, "open", "sealed")
        yield MoveBucket(generation, bucket, "sealed", "done")
    return False
