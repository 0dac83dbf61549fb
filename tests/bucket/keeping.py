"""What a storage keeps of a generation, read past its port: also what no statement would ever show.

Guards: a bucket that no index names, a row that was never put and a bucket without a state are seen, not assumed away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import apsw

from fairway.bucket.places import place_of
from fairway.bucket.port import BucketStorage
from fairway.bucket.rows import WAITING
from fairway.store.memory.buckets import MemoryBuckets
from fairway.store.sqlite.buckets import SqliteBuckets

STATES = ("open", "sealed", "done")
_SQLITE = """
SELECT b.bucket, b.state, r.uid, r.created, r.status, y.body FROM buckets AS b
LEFT JOIN bucket_rows AS r ON r.number = b.number
LEFT JOIN bucket_bodies AS y ON y.number = r.number AND y.uid = r.uid WHERE b.generation = ?
"""
# Rows of buckets that are gone: nobody can say of which queue they were.
_SQLITE_LEFT = """
SELECT number, uid FROM bucket_rows WHERE number NOT IN (SELECT number FROM buckets)
UNION SELECT number, uid FROM bucket_bodies WHERE number NOT IN (SELECT number FROM buckets)
"""
_PARTITIONS = "SELECT DISTINCT generation, bucket FROM {}.bucket_rows"
_PARTITION = (
    "SELECT state, id, created, status, body FROM {}.bucket_rows WHERE generation = %s AND bucket = %s"
)


@dataclass(frozen=True)
class KeptRow:
    """A row as it lies there."""

    uid: bytes
    put: bool
    status: int
    body: bytes | None

    @property
    def ghost(self) -> bool:
        """Something wrote it that was no put."""
        return not self.put or (self.status == WAITING and self.body is None)


@dataclass
class KeptBucket:
    """A bucket as it lies there."""

    state: str | None
    rows: list[KeptRow] = field(default_factory=list)


Kept = dict[bytes, KeptBucket]


def kept(storage: BucketStorage, generation: bytes) -> Kept:
    """Every bucket of a generation, with every row."""
    if isinstance(storage, MemoryBuckets):
        return _in_memory(storage, generation)
    if isinstance(storage, SqliteBuckets):
        return _in_file(storage, generation)
    return _in_cluster(storage, generation)


def ghosts(found: Kept) -> int:
    """How many rows and buckets are there that nobody made."""
    rows = sum(row.ghost for bucket in found.values() for row in bucket.rows)
    return rows + sum(bucket.state not in STATES for bucket in found.values())


def unnamed(found: Kept, index: set[bytes]) -> int:
    """How many buckets hold messages and are in no index. An empty one is what an abandoned create leaves."""
    return sum(bool(bucket.rows) and place not in index for place, bucket in found.items())


def waiting(found: Kept) -> list[KeptRow]:
    """Messages that are neither finished nor dying."""
    return [row for bucket in found.values() for row in bucket.rows if row.status == WAITING]


def _in_memory(storage: MemoryBuckets, generation: bytes) -> Kept:
    found: Kept = {}
    for (own, place), bucket in storage.buckets.items():
        if own == generation:
            rows = [KeptRow(uid, row.created > 0, row.status, row.body) for uid, row in bucket.rows.items()]
            found[place] = KeptBucket(bucket.state, rows)
    return found


def _in_file(storage: SqliteBuckets, generation: bytes) -> Kept:
    found: Kept = {}
    connection = apsw.Connection(storage.path, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)
    try:
        for place, state, uid, created, status, body in connection.execute(_SQLITE, (generation,)):
            bucket = found.setdefault(place, KeptBucket(state))
            if uid is not None:
                bucket.rows.append(KeptRow(uid, created > 0, status, body))
        for number, uid in connection.execute(_SQLITE_LEFT):
            bucket = found.setdefault(b"number %d" % number, KeptBucket(None))
            bucket.rows.append(KeptRow(uid, False, WAITING, None))
    finally:
        connection.close()
    return found


def _in_cluster(storage: Any, generation: bytes) -> Kept:
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    connection = storage._session._connection
    keyspace, session = connection.address.keyspace, connection.session
    every = session.execute(SimpleStatement(_PARTITIONS.format(keyspace), fetch_size=1000), timeout=60.0)
    own = [row[1] for row in every if row[0].bytes == generation]
    one = SimpleStatement(_PARTITION.format(keyspace), consistency_level=ConsistencyLevel.SERIAL)
    found: Kept = {}
    for bucket in own:
        lines = list(session.execute(one, (UUID(bytes=generation), bucket), timeout=60.0))
        if lines:
            rows = [
                KeptRow(place_of(uid.bytes), created is not None, status or WAITING, body)
                for _, uid, created, status, body in lines
                if uid is not None
            ]
            found[place_of(bucket.bytes)] = KeptBucket(lines[0][0], rows)
    return found
