"""The reads of bucket queues in SQLite, one function per statement.

Guards: a read sees one snapshot, so the state of a bucket and its rows belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import apsw

from fairway.bucket import statements as s
from fairway.bucket.rows import (
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
from fairway.store.sqlite.connections import rows
from fairway.store.sqlite.statements import load

SQL: Final = load("buckets.sql")
Connection = apsw.Connection


def read_name(c: Connection, x: s.ReadName) -> NameRow:
    found = rows(c, SQL["read_name"], (x.name,))
    current, changes = found[0] if found else (None, 0)
    return NameRow(current, changes, [QueueRow(*row) for row in rows(c, SQL["read_queues"], (x.name,))])


def read_queue(c: Connection, x: s.ReadQueue) -> QueueRow | None:
    found = rows(c, SQL["read_queue"], (x.name, x.generation))
    return QueueRow(*found[0]) if found else None


def read_deletes(c: Connection, x: s.ReadDeletes) -> list[Deleting]:
    return [Deleting(*row) for row in rows(c, SQL["read_deletes"], (x.limit,))]


def read_index(c: Connection, x: s.ReadIndex) -> list[IndexRow]:
    found = rows(c, SQL["read_index"], (x.generation, x.above, x.up_to, x.limit))
    return [IndexRow(*row) for row in found]


def bucket_of(c: Connection, generation: bytes, bucket: bytes) -> tuple[int, Any, str, float] | None:
    """Number, state, creator and birth of a bucket."""
    found = rows(c, SQL["bucket"], (generation, bucket))
    return found[0] if found else None


def _row(values: Any, body: bytes | None = None, headers: bytes = b"") -> Row:
    uid, created, not_before, version, nonce, lease, attempts, held, status, error = values
    return Row(
        uid, created, not_before, version, nonce, lease, attempts, bool(held), status, error, body, headers
    )


def read_bucket(c: Connection, x: s.ReadBucket) -> Bucket | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, creator, born = found
    return Bucket(state, creator, born, [_row(row) for row in rows(c, SQL["rows"], (number,))])


def glance(c: Connection, x: s.Glance) -> Sums | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, _, born = found
    count, last, *sums = rows(c, SQL["sums"], (number,))[0]
    return Sums(state, born, count, last if count else born, *sums)


def read_rows(c: Connection, x: s.ReadRows) -> Bucket | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, creator, born = found
    heads: list[Row] = []
    for uid in x.uids:
        for row in rows(c, SQL["row"], (number, uid)):
            body = rows(c, SQL["body"], (number, uid)) if x.bodies else []
            heads.append(_row(row, *body[0]) if body else _row(row))
    return Bucket(state, creator, born, heads)


def find_due(c: Connection, x: s.FindDue) -> Found | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    number, state, _, _ = found
    due = [_row(row) for row in rows(c, SQL["due"], (number, x.attempts_max, x.now, x.limit, x.above))]
    later = rows(c, SQL["next_due"], (number, x.attempts_max, x.now))[0][0] if len(due) < x.limit else None
    return Found(state, due, later)


def count_rows(c: Connection, x: s.CountRows) -> Tally | None:
    found = bucket_of(c, x.generation, x.bucket)
    if found is None:
        return None
    return Tally(found[1], *(int(count) for count in rows(c, SQL["tally"], (found[0], x.now))[0]))


def read_dead(c: Connection, x: s.ReadDead) -> list[DeadLetter]:
    return [DeadLetter(*row) for row in rows(c, SQL["read_dead"], (x.generation, x.after, x.limit))]


def count_dead(c: Connection, x: s.CountDead) -> int:
    return rows(c, SQL["count_dead"], (x.generation,))[0][0]


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
