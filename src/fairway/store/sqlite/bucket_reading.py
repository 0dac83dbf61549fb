"""The reads of bucket queues in SQLite, one function per statement.

Guards: a read sees one snapshot, so the state of a bucket and its rows belong together. What it tells is what was
written, and nothing that was written is passed over, or StoreCorrupt is raised: as far as the seal of each row tells
(seals.py), the sum of its numbers (steps/0007), and what must be there because something else is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import apsw

from fairway.bucket import statements as s
from fairway.bucket.rows import (
    DYING,
    WAITING,
    Bucket,
    DeadLetter,
    Deleting,
    Found,
    IndexRow,
    NameRow,
    QueueRow,
    RepairLease,
    Row,
    Sums,
    Tally,
)
from fairway.store.sqlite import seals
from fairway.store.sqlite.connections import rows
from fairway.store.sqlite.statements import load

SQL: Final = load("buckets.sql")
_BODIED: Final = (WAITING, DYING)
Connection = apsw.Connection


def _expect(sound: bool, what: str) -> None:
    if not sound:
        raise seals.damaged(what.encode())


def read_name(c: Connection, x: s.ReadName) -> NameRow:
    found = rows(c, SQL["read_name"], (x.name,))
    current, changes = found[0] if found else (None, 0)
    name = NameRow(current, changes, [_queue(x.name, row) for row in rows(c, SQL["read_queues"], (x.name,))])
    # A name keeps its row and its generations for ever.
    _expect(bool(found) or not name.queues, f"name {x.name}")
    _expect(current is None or name.queue(current) is not None, f"queue {x.name}")
    return name


def read_queue(c: Connection, x: s.ReadQueue) -> QueueRow | None:
    found = rows(c, SQL["read_queue"], (x.name, x.generation))
    _expect(bool(found) or not rows(c, SQL["stands_for"], (x.name, x.generation)), f"queue {x.name}")
    return _queue(x.name, found[0]) if found else None


def _queue(name: str, row: Any) -> QueueRow:
    _expect(row[-1] == seals.of(name, *row[:-1]), f"queue {name}")
    return QueueRow(*row[:-1])


def read_deletes(c: Connection, x: s.ReadDeletes) -> list[Deleting]:
    return [Deleting(*row) for row in rows(c, SQL["read_deletes"], (x.limit,))]


def read_index(c: Connection, x: s.ReadIndex) -> list[IndexRow]:
    found = rows(c, SQL["read_index"], (x.generation, x.above, x.up_to, x.limit))
    for *entry, seal in found:
        _expect(seal == seals.of(x.generation, *entry), "entry of a bucket")
    above = x.above
    for up_to, seal in rows(c, SQL["index_dropped"], (x.generation,)):
        _expect(seal == seals.of(x.generation, up_to), "end of what was dropped")
        above = max(above, up_to)
    seen = found[-1][0] if len(found) == x.limit else x.up_to
    _expect(not rows(c, SQL["unlisted"], (x.generation, above, seen)), "entry of a bucket")
    return [IndexRow(*row[:-1]) for row in found]


def bucket_of(c: Connection, generation: bytes, bucket: bytes) -> tuple[int, Any, str, float] | None:
    """Number, state, creator and birth of a bucket."""
    found = rows(c, SQL["bucket"], (generation, bucket))
    if not found:
        # Rare, since who has seen that a bucket is gone does not ask again.
        _expect(not rows(c, SQL["bucket_itself"], (generation, bucket)), "bucket")
        return None
    number, state, creator, born, seal = found[0]
    _expect(seal == seals.of(generation, bucket, state, creator, born), "bucket")
    return number, state, creator, born


def _whole(c: Connection, number: int, bodies: float, damaged: float = 0) -> None:
    """See to it that no row of a bucket is damaged, and that as many have bodies as should."""
    _expect(not damaged and rows(c, SQL["count_bodies"], (number,))[0][0] == bodies, "messages of a bucket")


def _row(values: Any, body: bytes | None = None, headers: bytes = b"") -> Row:
    uid, created, not_before, version, nonce, lease, attempts, held, status, error, seal, sound = values
    _expect(sound and seal == seals.of(uid, error), "message")
    return Row(
        uid, created, not_before, version, nonce, lease, attempts, bool(held), status, error, body, headers
    )


def read_bucket(c: Connection, x: s.ReadBucket) -> Bucket | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, creator, born = found
    heads = [_row(row) for row in rows(c, SQL["rows"], (number,))]
    _whole(c, number, sum(row.status in _BODIED for row in heads))
    return Bucket(state, creator, born, heads)


def glance(c: Connection, x: s.Glance) -> Sums | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, _, born = found
    count, last, *sums, bodies, damaged = rows(c, SQL["sums"], (number,))[0]
    _whole(c, number, bodies, damaged)
    return Sums(state, born, count, last if count else born, *sums)


def read_rows(c: Connection, x: s.ReadRows) -> Bucket | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, creator, born = found
    heads: list[Row] = []
    for uid in x.uids:
        one = rows(c, SQL["row_with_body" if x.bodies else "row"], (number, uid))
        if one:
            heads.append(_with_body(number, one[0]) if x.bodies else _row(one[0]))
        else:
            expect_none(c, number, uid)
    return Bucket(state, creator, born, heads)


def expect_none(c: Connection, number: int, uid: bytes) -> None:
    """See to it that a message that is not found by its key is not there."""
    _expect(not rows(c, SQL["row_itself"], (number, uid)), "message")


def _with_body(number: int, values: Any) -> Row:
    body, headers, seal = values[-3:]
    if seal is None:
        row = _row(values[:-3])
        _expect(row.status not in _BODIED, "body of a message")
        return row
    _expect(seal == seals.of(number, values[0], body, headers), "body of a message")
    return _row(values[:-3], body, headers)


def find_due(c: Connection, x: s.FindDue) -> Found | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, _, _ = found
    due = [_row(row) for row in rows(c, SQL["due"], (number, x.attempts_max, x.now, x.limit, x.above))]
    if len(due) >= x.limit:
        return Found(state, due, None)
    later, bodies, damaged = rows(c, SQL["next_due"], (number, x.attempts_max, x.now))[0]
    _whole(c, number, bodies, damaged)
    return Found(state, due, later)


def count_rows(c: Connection, x: s.CountRows) -> Tally | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    *counts, bodies, damaged = rows(c, SQL["tally"], (found[0], x.now))[0]
    _whole(c, found[0], bodies, damaged)
    return Tally(found[1], *(int(count) for count in counts))


def read_dead(c: Connection, x: s.ReadDead) -> list[DeadLetter]:
    found = rows(c, SQL["read_dead"], (x.generation, x.after, x.limit))
    for uid, bucket, *told, seal in found:
        _expect(seal == seals.of(x.generation, uid, bucket, 0, *told), "dead letter")
    if len(found) < x.limit:
        _letters(c, x.generation)
    return [DeadLetter(*row[:-1]) for row in found]


def count_dead(c: Connection, x: s.CountDead) -> int:
    return _letters(c, x.generation)


def _letters(c: Connection, generation: bytes) -> int:
    """How many dead letters there are, which is how many there should be."""
    found, wanted = rows(c, SQL["count_dead"], (generation,))[0][0], 0
    for wanted, seal in rows(c, SQL["letters"], (generation,)):
        _expect(seal == seals.of(generation, wanted), "count of dead letters")
    _expect(found == wanted, "dead letters")
    return found


def read_repairer(c: Connection, x: s.ReadRepairer) -> RepairLease:
    found = rows(c, SQL["read_repairer"], (x.name,))
    return RepairLease(*found[0]) if found else RepairLease("", 0)


READS: Final[dict[type[s.Statement], Callable[[Connection, Any], Any]]] = {
    s.ReadName: read_name,
    s.ReadQueue: read_queue,
    s.ReadDeletes: read_deletes,
    s.ReadIndex: read_index,
    s.Glance: glance,
    s.ReadBucket: read_bucket,
    s.ReadRows: read_rows,
    s.FindDue: find_due,
    s.CountRows: count_rows,
    s.ReadDead: read_dead,
    s.CountDead: count_dead,
    s.ReadRepairer: read_repairer,
}
