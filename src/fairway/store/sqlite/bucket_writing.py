"""The writes of bucket queues in SQLite, one function per statement; each runs inside one transaction.

Guards: a refused write raises inside its transaction, so nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import apsw

from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST
from fairway.errors import BadArgument
from fairway.store.sqlite import seals
from fairway.store.sqlite.bucket_reading import SQL, Connection, bucket_of, expect_none
from fairway.store.sqlite.connections import rows


class RefusedHere(Exception):
    """The condition of a write does not hold; its transaction is rolled back."""


def _one(c: Connection, name: str, values: Iterable[Any]) -> None:
    """A statement that changes one row, or the write is refused."""
    c.execute(SQL[name], tuple(values))
    if c.changes() != 1:
        raise RefusedHere


def _row(c: Connection, name: str, number: int, uid: bytes, *values: Any) -> None:
    """A statement that changes the head of one message, or the write is refused."""
    c.execute(SQL[name], (number, uid, *values))
    if c.changes() != 1:
        if not rows(c, SQL["row"], (number, uid)):
            expect_none(c, number, uid)
        raise RefusedHere


def _do(c: Connection, name: str, values: Iterable[Any]) -> None:
    c.execute(SQL[name], tuple(values))


def _number(c: Connection, generation: bytes, bucket: bytes) -> int:
    found = bucket_of(c, generation, bucket)
    if found is None:
        raise RefusedHere
    return found[0]


def create_queue(c: Connection, x: s.CreateQueue) -> None:
    if rows(c, SQL["fair_queue"], (x.name,)):
        raise BadArgument(
            f"queue: {x.name} is a fair queue in this file; open it without kind=, or take another name",
            argument="queue",
        )
    _do(c, "add_name", (x.name,))
    _one(c, "take_name", (x.name, x.changes, x.generation))
    _do(c, "add_generation", (x.name, x.generation, LOWEST, x.config, x.secret))


def free_name(c: Connection, x: s.FreeName) -> None:
    _one(c, "free_name", (x.name, x.generation))


def configure(c: Connection, x: s.Configure) -> None:
    _one(c, "configure", (x.name, x.generation, x.old, x.new))


def move_queue(c: Connection, x: s.MoveQueue) -> None:
    _one(c, "move_queue", (x.name, x.generation, x.old, x.new))


def publish(c: Connection, x: s.Publish) -> None:
    _one(c, "publish", (x.name, x.generation, x.bucket))


def move_floor(c: Connection, x: s.MoveFloor) -> None:
    _one(c, "move_floor", (x.name, x.generation, x.version, x.floor))


def add_index(c: Connection, x: s.AddIndex) -> None:
    seal = seals.of(x.generation, x.bucket, x.creator, float(x.due))
    _do(c, "add_index", (x.generation, x.bucket, x.creator, x.due, seal))


def drop_index(c: Connection, x: s.DropIndex) -> None:
    _do(c, "drop_index", (x.generation, x.up_to))
    _do(c, "mark_index", (x.generation, x.up_to))


def create_bucket(c: Connection, x: s.CreateBucket) -> None:
    seal = seals.of(x.generation, x.bucket, "open", x.creator, float(x.born))
    _one(c, "create_bucket", (x.generation, x.bucket, x.creator, x.born, seal))


def move_bucket(c: Connection, x: s.MoveBucket) -> None:
    _one(c, "move_bucket", (x.generation, x.bucket, x.old, x.new))


def remove_bucket(c: Connection, x: s.RemoveBucket) -> None:
    found = rows(c, SQL["remove_bucket"], (x.generation, x.bucket))
    if not found:
        raise RefusedHere
    _do(c, "remove_rows", found[0])
    _do(c, "remove_bodies", found[0])
    _do(c, "forget_dropped", (x.generation, x.bucket))


def put(c: Connection, x: s.Put) -> None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None or found[1] != "open":
        raise RefusedHere
    number = found[0]
    before = c.total_changes()
    heads = [(number, m.uid, m.created, m.not_before, seals.of(m.uid, "")) for m in x.messages]
    c.executemany(SQL["put_row"], heads)
    if c.total_changes() == before:
        return  # the same put again: all of it was stored together, and may be finished
    bodies = [(number, m.uid, m.body, m.headers) for m in x.messages]
    c.executemany(SQL["put_body"], [(*body, seals.of(*body)) for body in bodies])


def take(c: Connection, x: s.Take) -> None:
    number = _number(c, x.generation, x.bucket)
    for row in x.rows:
        _row(c, "take", number, row.uid, row.version, x.nonce, x.lease, row.attempts)


def finish(c: Connection, x: s.Finish) -> None:
    number = _number(c, x.generation, x.bucket)
    for row in x.rows:
        _row(c, "finish", number, row.uid, row.version, row.nonce, row.new_nonce)
    c.executemany(SQL["drop_body"], [(number, row.uid) for row in x.rows])


def hold(c: Connection, x: s.Hold) -> None:
    number = _number(c, x.generation, x.bucket)
    for row in x.rows:
        held = (row.new_nonce, x.lease, int(x.held), row.attempts, x.error, seals.of(row.uid, x.error))
        _row(c, "hold", number, row.uid, row.version, row.nonce, *held)


def doom(c: Connection, x: s.Doom) -> None:
    number = _number(c, x.generation, x.bucket)
    for row in x.rows:
        doomed = (row.new_nonce, x.error, seals.of(row.uid, x.error))
        _row(c, "doom", number, row.uid, row.version, row.nonce, *doomed)


def bury(c: Connection, x: s.Bury) -> None:
    number = _number(c, x.generation, x.bucket)
    _row(c, "bury", number, x.uid)
    _do(c, "drop_body", (number, x.uid))


def add_dead(c: Connection, x: s.AddDead) -> None:
    one = x.letter
    told = (one.body, one.headers, float(one.created), float(one.died), one.attempts, one.error)
    seal = seals.of(x.generation, one.uid, one.bucket, 0, *told)
    _do(c, "add_dead", (x.generation, one.uid, one.bucket, *told, seal))
    if c.changes():
        _do(c, "count_letters", (x.generation, 1))


def drop_dead(c: Connection, x: s.DropDead) -> None:
    dropped = 0
    for uid in x.uids:
        _do(c, "drop_dead", (x.generation, uid))
        dropped += c.changes()
        _do(c, "forget_dead", (x.generation, uid))
    if dropped:
        _do(c, "count_letters", (x.generation, -dropped))


def drop_generation(c: Connection, x: s.DropGeneration) -> None:
    _do(c, "drop_index_whole", (x.generation,))
    _do(c, "drop_dead_whole", (x.generation,))
    _do(c, "drop_letters", (x.generation,))
    # Above every place: nothing enters this index again.
    _do(c, "mark_index", (x.generation, b"\xff" * 16))


def beat(c: Connection, x: s.Beat) -> None:
    _do(c, "first_beat", (x.name,))
    _one(c, "beat", (x.name, x.owner, x.old_owner, x.old_beat))


WRITES: Final[dict[type[s.Statement], Callable[[apsw.Connection, Any], None]]] = {
    s.CreateQueue: create_queue,
    s.FreeName: free_name,
    s.Configure: configure,
    s.MoveQueue: move_queue,
    s.Publish: publish,
    s.MoveFloor: move_floor,
    s.AddIndex: add_index,
    s.DropIndex: drop_index,
    s.CreateBucket: create_bucket,
    s.MoveBucket: move_bucket,
    s.RemoveBucket: remove_bucket,
    s.Put: put,
    s.Take: take,
    s.Finish: finish,
    s.Hold: hold,
    s.Doom: doom,
    s.Bury: bury,
    s.AddDead: add_dead,
    s.DropDead: drop_dead,
    s.DropGeneration: drop_generation,
    s.Beat: beat,
}

# Only power loss may forget these, and then work is repeated, never lost: a lease, a seal, a beat.
UNSYNCED: Final = (s.Take, s.Hold, s.MoveBucket, s.Beat, s.DropIndex, s.RemoveBucket, s.MoveFloor)
