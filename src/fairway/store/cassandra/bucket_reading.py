"""The reads of bucket queues on Cassandra, one method per statement.

Guards: what decides an outcome is read at serial consistency; a state and rows that were read apart are only put
together where neither could have changed in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from fairway import limits
from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST, place_of, uuid_bytes
from fairway.bucket.rows import (
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
from fairway.bucket.sorting import found_due, tallied
from fairway.store.cassandra.bucket_session import BucketSession


def to_uuid(place: bytes) -> uuid.UUID:
    """A place as the time-UUID it stands for."""
    return uuid.UUID(bytes=uuid_bytes(place))


def to_place(found: uuid.UUID) -> bytes:
    return place_of(found.bytes)


def plain(generation: bytes) -> uuid.UUID:
    """A generation, which is sixteen random bytes."""
    return uuid.UUID(bytes=generation)


def _row(values: Any, body: bytes | None = None, headers: bytes | None = None) -> Row:
    uid, created, not_before, version, nonce, lease, attempts, held, status, error = values
    return Row(
        uid=to_place(uid),
        created=created,
        not_before=not_before,
        version=version or 0,
        nonce=nonce or 0,
        lease=lease or 0.0,
        attempts=attempts or 0,
        held=bool(held),
        status=status or WAITING,
        error=error or "",
        body=body,
        headers=headers or b"",
    )


def _heads(found: Iterable[Any]) -> list[Row]:
    # A row without `created` was never put.
    return [_row(row[3:13]) for row in found if row[3] is not None and row[4] is not None]


class BucketReads:
    """The reading half of the storage."""

    def __init__(self, session: BucketSession, realm: str) -> None:
        self._session, self._realm = session, realm

    def read_name(self, x: s.ReadName) -> NameRow:
        found = self._session.read("read_name", (self._realm, x.name))
        if not found:
            return NameRow(None, 0, [])
        current, changes = found[0][:2]
        queues = [_queue(row[2:]) for row in found if row[2] is not None and row[3] is not None]
        return NameRow(current.bytes if current else None, changes or 0, queues)

    def read_queue(self, x: s.ReadQueue) -> QueueRow | None:
        found = self._session.read("read_queue", (self._realm, x.name, plain(x.generation)))
        return _queue(found[0]) if found and found[0][1] is not None else None

    def read_deletes(self, x: s.ReadDeletes) -> list[Deleting]:
        found = self._session.read("read_deletes", (self._realm, x.limit))
        return [Deleting(name, generation.bytes) for name, generation in found]

    def read_index(self, x: s.ReadIndex) -> list[IndexRow]:
        values = (plain(x.generation), to_uuid(x.above), to_uuid(x.up_to), x.limit)
        found = self._session.read("read_index", values)
        return [
            IndexRow(to_place(bucket), name, due or 0.0) for bucket, name, due in found if name is not None
        ]

    def glance(self, x: s.Glance) -> Sums | None:
        found = self._session.read("glance", (plain(x.generation), to_uuid(x.bucket)))
        if not found or found[0][0] is None:
            return None
        state, born, count, last, *sums = found[0]
        return Sums(state, born, count, last if count else born, *(one or 0 for one in sums))

    def read_bucket(self, x: s.ReadBucket) -> Bucket | None:
        # Pages are reads of their own; sealed stays sealed, finished stays finished, so the first page's state holds.
        found = self._session.read("read_bucket", (plain(x.generation), to_uuid(x.bucket)))
        return _bucket(found)

    def read_rows(self, x: s.ReadRows) -> Bucket | None:
        keys = (plain(x.generation), to_uuid(x.bucket))
        values = (*keys, [to_uuid(uid) for uid in x.uids])
        if x.bodies:
            found = self._session.read("read_bodies", values)
            bucket = _bucket(found)
            if bucket is not None:
                rows = [_row(row[3:13], row[13], row[14]) for row in found if row[4] is not None]
                return Bucket(bucket.state, bucket.creator, bucket.born, rows)
        found = self._session.read("read_rows", values)
        return _bucket(found) if found else self._absent(keys, values)

    def _absent(self, keys: Any, values: Any) -> Bucket | None:
        """None of the rows is there: the state before and after tells whether that is final."""
        before = self._session.read("read_state", keys)
        if not before or before[0][0] is None:
            return None
        found = self._session.read("read_rows", values)
        if found:
            return _bucket(found)
        after = self._session.read("read_state", keys)
        if not after or after[0][0] is None:
            return None
        # As it was before the rows were read: what was open then may have got them since.
        state, creator, born = before[0]
        return Bucket(state, creator, born, [])

    def find_due(self, x: s.FindDue) -> Found | None:
        key = (plain(x.generation), to_uuid(x.bucket))
        # Mostly what is asked for is the next there is: a slice first, and the rest only where that is not enough.
        few = 2 * x.limit + limits.LOOK_SLACK_ROWS
        above = (to_uuid(x.above),) if x.above != LOWEST else ()
        lines = self._session.read("look_on" if above else "look", (*key, *above, few))
        if above and not lines:
            # There is nothing above: it is the state that is missing then.
            state = self._session.read("look", (*key, 1))
            bucket = _bucket(state)
            return bucket and Found(bucket.state, [], None)
        bucket = _bucket(lines)
        if bucket is None:
            return None
        found = found_due(bucket.state, bucket.rows, x)
        if len(found.rows) >= x.limit or len(lines) < few:
            return found
        lines += self._session.read("look_on", (*key, lines[-1][3], 2 * limits.BUCKET_ROWS_MAX))
        return found_due(bucket.state, _heads(lines), x)

    def count_rows(self, x: s.CountRows) -> Tally | None:
        key = (plain(x.generation), to_uuid(x.bucket))
        bucket = _bucket(self._session.read("look", (*key, 2 * limits.BUCKET_ROWS_MAX)))
        return bucket and tallied(bucket.state, bucket.rows, x.now)

    def read_dead(self, x: s.ReadDead) -> list[DeadLetter]:
        found = self._session.read("read_dead", (plain(x.generation), to_uuid(x.after), x.limit))
        return [DeadLetter(to_place(uid), to_place(bucket), *rest) for uid, bucket, *rest in found]

    def count_dead(self, x: s.CountDead) -> int:
        return self._session.read("count_dead", (plain(x.generation),))[0][0]

    def read_repairer(self, x: s.ReadRepairer) -> RepairLease:
        found = self._session.read("read_repairer", (self._realm, x.name))
        return RepairLease(*found[0]) if found and found[0][0] is not None else RepairLease("", 0)


def _bucket(found: list[Any]) -> Bucket | None:
    if not found or found[0][0] is None:
        return None
    state, creator, born = found[0][:3]
    return Bucket(state, creator, born, _heads(found))


def _queue(values: Any) -> QueueRow:
    generation, state, version, floor, newest, config, secret = values
    return QueueRow(generation.bytes, state, version, to_place(floor), to_place(newest), config, secret)
