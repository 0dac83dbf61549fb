"""Bucket queues broken in one way each: storages that forget a condition, machines that believe too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from fairway.bucket import naming, redriving, repairing, settling, taking, writing
from fairway.bucket import statements as s
from fairway.bucket.places import place_after
from fairway.bucket.rows import Row
from fairway.bucket.sorting import found_due
from fairway.bucket.statements import APPLIED, FRESH, REFUSED, UNKNOWN, Machine, insist, read
from fairway.store.memory.buckets import Kept
from fairway.testing.bucket.profile import BucketProfile
from fairway.testing.bucket.world import Watched, World

change = msgspec.structs.replace


def world_with(storage: type[Watched]) -> Callable[[BucketProfile], World]:
    class Broken(World):
        def __init__(self, profile: BucketProfile) -> None:
            super().__init__(profile)
            self.storage = storage(self._note)

    return Broken


# -- storages without a condition


class NoSealCheck(Watched):
    def _put(self, x: s.Put) -> Any:
        bucket = self.buckets.setdefault((x.generation, x.bucket), Kept("sealed", "", 0.0))
        self._write(bucket, x)
        return APPLIED


class PutWritesVersion(Watched):
    def _write(self, bucket: Kept, x: s.Put) -> None:
        for m in x.messages:
            bucket.rows[m.uid] = Row(m.uid, m.created, m.not_before, body=m.body, headers=m.headers)


class PublishBelowFloor(Watched):
    def _publish(self, x: s.Publish) -> Any:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live":
            return REFUSED
        return self._set_queue(x.name, change(queue, version=queue.version + 1, newest=x.bucket))


class FloorWithoutVersion(Watched):
    def _move_floor(self, x: s.MoveFloor) -> Any:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live" or queue.floor >= x.floor:
            return REFUSED
        return self._set_queue(x.name, change(queue, version=queue.version + 1, floor=x.floor))


class PublishKeepsVersion(Watched):
    def _publish(self, x: s.Publish) -> Any:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live" or not queue.floor < x.bucket:
            return REFUSED
        return self._set_queue(x.name, change(queue, newest=x.bucket))


class TakeMakesGhosts(Watched):
    def _take(self, x: s.Take) -> Any:
        if all(one.version == 0 for one in x.rows):
            bucket = self.buckets.setdefault((x.generation, x.bucket), Kept(None, "", 0.0))  # pyright: ignore
            for one in x.rows:
                bucket.rows.setdefault(one.uid, Row(one.uid, 0.0, 0.0))
        return super()._take(x)


class DeadLettersComeBack(Watched):
    def _add_dead(self, x: s.AddDead) -> Any:
        self.dead_dropped.discard((x.generation, x.letter.uid))
        return super()._add_dead(x)


class AnyReceiptCounts(Watched):
    def _held(self, x: Any, change: Any, *, free: bool = False) -> Any:
        rows = getattr(self.buckets.get((x.generation, x.bucket)), "rows", {})
        now = [rows[one.uid] for one in x.rows if one.uid in rows]
        if len(now) != len(x.rows):
            return REFUSED
        as_now = [
            msgspec.structs.replace(one, version=row.version, nonce=row.nonce)
            for one, row in zip(x.rows, now, strict=True)
        ]
        return super()._held(msgspec.structs.replace(x, rows=as_now), change, free=free)


class DelayIgnored(Watched):
    def _add_index(self, x: s.AddIndex) -> Any:
        return super()._add_index(change(x, due=0.0))

    def _find_due(self, x: s.FindDue) -> Any:
        bucket = self.buckets.get((x.generation, x.bucket))
        rows = [change(row, not_before=0.0) for _, row in sorted(bucket.rows.items())] if bucket else []
        return bucket and found_due(bucket.state, rows, x)


class AttemptsUnbounded(Watched):
    def _find_due(self, x: s.FindDue) -> Any:
        return super()._find_due(change(x, attempts_max=1_000_000))


class BodiesMixedUp(Watched):
    def _read_rows(self, x: s.ReadRows) -> Any:
        found = super()._read_rows(x)
        if found is None or not x.bodies:
            return found
        bodies = [row.body for row in found.rows]
        turned = zip(found.rows, bodies[1:] + bodies[:1], strict=True)
        return change(found, rows=[change(row, body=body) for row, body in turned])


# -- machines that believe too much


def index_first(writer: writing.Writer, due: float = 0.0) -> Machine[bytes | None]:
    while True:
        queue = yield from read(s.ReadQueue(writer.name, writer.generation))
        if queue is None or queue.state != "live":
            return None
        moment = yield FRESH
        above = [queue.floor, queue.newest, *([writer.last] if writer.last else [])]
        bucket = writer.last = place_after(moment.now, above, moment.bits)
        yield from insist(s.AddIndex(writer.generation, bucket, writer.node, due))
        if (yield s.CreateBucket(writer.generation, bucket, writer.node, moment.now)) is not APPLIED:
            continue
        if (yield from insist(s.Publish(writer.name, writer.generation, bucket))) is APPLIED:
            return bucket


def same_id(writer: writing.Writer, due: float = 0.0) -> Machine[bytes | None]:
    while True:
        queue = yield from read(s.ReadQueue(writer.name, writer.generation))
        if queue is None or queue.state != "live":
            return None
        moment = yield FRESH
        above = [queue.floor, queue.newest, *([writer.last] if writer.last else [])]
        bucket = writer.last = place_after(moment.now, above, moment.bits)
        yield from insist(s.CreateBucket(writer.generation, bucket, writer.node, moment.now))
        yield from insist(s.AddIndex(writer.generation, bucket, writer.node, due))
        if (yield from insist(s.Publish(writer.name, writer.generation, bucket))) is APPLIED:
            return bucket


def no_publish(writer: writing.Writer, due: float = 0.0) -> Machine[bytes | None]:
    queue = yield from read(s.ReadQueue(writer.name, writer.generation))
    if queue is None or queue.state != "live":
        return None
    while True:
        moment = yield FRESH
        above = [queue.floor, queue.newest, *([writer.last] if writer.last else [])]
        bucket = writer.last = place_after(moment.now, above, moment.bits)
        if (yield s.CreateBucket(writer.generation, bucket, writer.node, moment.now)) is APPLIED:
            yield from insist(s.AddIndex(writer.generation, bucket, writer.node, due))
            return bucket


def put_believes(generation: bytes, bucket: bytes, messages: Any) -> Machine[Any]:
    """A refusal after an unknown outcome is taken for an answer."""
    statement = s.Put(generation, bucket, messages)
    while True:
        outcome = yield statement
        if outcome is not UNKNOWN:
            return writing.Told.ACCEPTED if outcome is APPLIED else None
        found = yield from read(s.ReadRows(generation, bucket, [messages[0].uid]))
        if found is not None and found.rows:
            return writing.Told.ACCEPTED


def put_redirects_when_gone(generation: bytes, bucket: bytes, messages: Any) -> Machine[Any]:
    told = yield from RIGHT_PUT(generation, bucket, messages)
    return None if told is writing.Told.UNKNOWN else told


def put_blindly(generation: bytes, bucket: bytes, messages: Any) -> Machine[Any]:
    """A time-out is followed by a try somewhere else."""
    outcome = yield s.Put(generation, bucket, messages)
    return writing.Told.ACCEPTED if outcome is APPLIED else None


def take_blindly(
    generation: bytes, bucket: bytes, rows: list[Row], nonce: int, lease: float
) -> Machine[list[Row]]:
    taken = [s.Taken(row.uid, row.version, row.attempts + 1) for row in rows]
    outcome = yield from insist(s.Take(generation, bucket, taken, nonce, lease))
    return [taking._leased(row, nonce, lease) for row in rows] if outcome is APPLIED else []


def take_looks_once(
    generation: bytes, bucket: bytes, rows: list[Row], nonce: int, lease: float
) -> Machine[list[Row]]:
    taken = [s.Taken(row.uid, row.version, row.attempts + 1) for row in rows]
    outcome = yield s.Take(generation, bucket, taken, nonce, lease)
    if outcome is APPLIED:
        return [taking._leased(row, nonce, lease) for row in rows]
    found = yield from read(s.ReadRows(generation, bucket, [row.uid for row in rows]))
    return [row for row in found.rows if row.nonce == nonce] if found is not None else []


def complete_blindly(generation: bytes, bucket: bytes, tickets: Any) -> Machine[Any]:
    """An unknown completion is told as done."""
    rows = [settling._as_change(ticket, "complete") for ticket in tickets]
    outcome = yield s.Finish(generation, bucket, rows)
    return ["lost" if outcome is REFUSED else "done" for _ in tickets]


def repair_by_time(generation: bytes, bucket: bytes, config: Any, done: Any, look: Any) -> Machine[Any]:
    """After a time-out a bucket counts as finished: nothing is sealed, and leases are not looked at."""
    found = yield from read(s.ReadBucket(generation, bucket))
    if found is None:
        return None
    moment = yield FRESH
    if moment.now - found.born > 20.0 or found.state != "open":
        for old, new in (("open", "sealed"), ("sealed", "done")):
            yield s.MoveBucket(generation, bucket, old, new)  # pyright: ignore
        yield s.RemoveBucket(generation, bucket)
        return None
    return found.state


def repair_without_seal(generation: bytes, bucket: bytes, config: Any, done: Any, look: Any) -> Machine[Any]:
    """Everything in it is finished, so it goes: without a seal something may come between read and delete."""
    found = yield from read(s.ReadBucket(generation, bucket))
    if found is not None and found.rows and all(row.status in (1, 3) for row in found.rows):
        for old, new in (("open", "sealed"), ("sealed", "done")):
            yield s.MoveBucket(generation, bucket, old, new)  # pyright: ignore
        yield s.RemoveBucket(generation, bucket)
        return None
    return (yield from RIGHT_REPAIR(generation, bucket, config, done, look))


def repair_buries_soon(generation: bytes, bucket: bytes, config: Any, done: Any, look: Any) -> Machine[Any]:
    """What was delivered once and came back is buried."""
    return (yield from RIGHT_REPAIR(generation, bucket, change(config, attempts_max=1), done, look))


def fail_buries_soon(generation: bytes, bucket: bytes, tickets: Any, config: Any, *args: Any) -> Machine[Any]:
    """What was delivered once and failed is buried."""
    return (yield from RIGHT_FAIL(generation, bucket, tickets, change(config, attempts_max=1), *args))


def close_without_seals(name: str, generation: bytes) -> Machine[None]:
    yield from insist(s.MoveQueue(name, generation, "live", "deleting"))
    yield from insist(s.FreeName(name, generation))


def bury_at_once(generation: bytes, bucket: bytes, uids: list[bytes]) -> Machine[int]:
    """The row is marked dead before its letter is written."""
    found = yield from read(s.ReadRows(generation, bucket, uids, True))
    moment = yield FRESH
    for row in found.rows if found is not None else []:
        if row.status == 2 and (yield s.Bury(generation, bucket, row.uid)) is APPLIED and row.body:
            letter = (row.uid, bucket, row.body, b"", row.created, moment.now, row.attempts, row.error)
            yield s.AddDead(generation, repairing_letter(*letter))
    return 0


def drop_before_put(writer: Any, slot: Any, letters: Any, messages: Any) -> Machine[Any]:
    """A letter is removed, then its message is put."""
    yield from insist(s.DropDead(writer.generation, [letter.uid for letter in letters]))
    return (yield from writing.put(writer, slot, messages))


def drop_whatever_is_told(writer: Any, slot: Any, letters: Any, messages: Any) -> Machine[Any]:
    """A redrive that takes no notice of what became of its put, which is tried once."""
    yield from writing._ready(writer, slot, len(messages), 0)
    if slot.bucket is None:
        return writing.Told.GONE
    yield s.Put(writer.generation, slot.bucket, messages)
    yield from insist(s.DropDead(writer.generation, [letter.uid for letter in letters]))
    return writing.Told.ACCEPTED


def repairing_letter(*fields: Any) -> Any:
    from fairway.bucket.rows import DeadLetter

    return DeadLetter(*fields)


RIGHT_PUT, RIGHT_REPAIR, RIGHT_FAIL = writing._put_into, repairing.repair_bucket, settling.fail

STORAGES: dict[str, type[Watched]] = {
    "put does not check the seal": NoSealCheck,
    "put writes the version": PutWritesVersion,
    "publish does not check the floor": PublishBelowFloor,
    "the floor moves without the version": FloorWithoutVersion,
    "publish keeps the version": PublishKeepsVersion,
    "a take makes ghosts": TakeMakesGhosts,
    "a dead letter is not written once": DeadLettersComeBack,
    "any receipt counts": AnyReceiptCounts,
    "a delay is ignored": DelayIgnored,
    "one attempt after another": AttemptsUnbounded,
    "the bodies of a batch are mixed up": BodiesMixedUp,
}
MACHINES: dict[str, list[tuple[Any, str, Any]]] = {
    "a lease hides nothing": [(Row, "due", property(lambda row: row.not_before))],
    "index before state": [(writing, "make_bucket", index_first)],
    "a create is repeated with its id": [(writing, "make_bucket", same_id)],
    "a bucket is used without being published": [(writing, "make_bucket", no_publish)],
    "a put believes a refusal after an unknown outcome": [(writing, "_put_into", put_believes)],
    "a put goes elsewhere when its bucket is gone": [(writing, "_put_into", put_redirects_when_gone)],
    "a put is retried blindly": [(writing, "_put_into", put_blindly)],
    "a take is retried blindly": [(taking, "take", take_blindly)],
    "a take is looked up once": [(taking, "take", take_looks_once)],
    "a completion is not looked up": [(settling, "complete", complete_blindly)],
    "repair goes by time": [(repairing, "repair_bucket", repair_by_time)],
    "repair removes what it did not seal": [(repairing, "repair_bucket", repair_without_seal)],
    "a message that came back once is buried": [(repairing, "repair_bucket", repair_buries_soon)],
    "a message that failed once is buried": [(settling, "fail", fail_buries_soon)],
    "delete answers before the seals": [(naming, "close_queue", close_without_seals)],
    "a redrive removes before it puts": [(redriving, "redrive", drop_before_put)],
    "a redrive does not look what became of its put": [(redriving, "redrive", drop_whatever_is_told)],
    "a row is dead before its letter": [(repairing, "bury", bury_at_once), (settling, "bury", bury_at_once)],
}
# Which check has to find it; others may fail too.
FAULTS: dict[str, str] = {
    "put does not check the seal": "accepted_is_not_lost",
    "put writes the version": "versions_rise",
    "publish does not check the floor": "accepted_is_not_lost",
    "the floor moves without the version": "everything_is_swept",
    "publish keeps the version": "accepted_is_not_lost",
    "a take makes ghosts": "everything_is_swept",
    "a dead letter is not written once": "one_dead_letter",
    "any receipt counts": "stale_receipts_are_refused",
    "a delay is ignored": "not_before_due",
    "a lease hides nothing": "leases_hide",
    "one attempt after another": "deliveries_are_bounded",
    "the bodies of a batch are mixed up": "nothing_crosses",
    "index before state": "counts_are_true",
    "a create is repeated with its id": "completed_or_dead",
    "a bucket is used without being published": "nothing_after_delete",
    "a put believes a refusal after an unknown outcome": "nothing_after_completion",
    "a put goes elsewhere when its bucket is gone": "nothing_after_completion",
    "a put is retried blindly": "versions_rise",
    "a take is retried blindly": "no_lease_is_burnt",
    "a take is looked up once": "no_lease_is_burnt",
    "a completion is not looked up": "stale_receipts_are_refused",
    "repair goes by time": "accepted_is_not_lost",
    "repair removes what it did not seal": "everything_is_swept",
    "a message that came back once is buried": "deaths_have_a_cause",
    "a message that failed once is buried": "deaths_have_a_cause",
    "delete answers before the seals": "everything_is_swept",
    "a redrive removes before it puts": "dead_letters_are_not_lost",
    "a redrive does not look what became of its put": "dead_letters_are_not_lost",
    "a row is dead before its letter": "accepted_is_not_lost",
}


@contextmanager
def planted(fault: str) -> Iterator[Callable[[BucketProfile], World]]:
    """Plant a fault; gives how to make worlds that have it."""
    patches = [patch.object(where, name, new) for where, name, new in MACHINES.get(fault, [])]
    for one in patches:
        one.start()
    try:
        yield world_with(STORAGES[fault]) if fault in STORAGES else World
    finally:
        for one in patches:
            one.stop()
