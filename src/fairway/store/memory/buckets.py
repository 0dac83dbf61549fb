"""Bucket queues in memory: the port in its plainest form, also what the simulator breaks.

Guards: a statement is carried out whole under one lock, or refused and changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST
from fairway.bucket.rows import (
    ACKED,
    DEAD,
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
from fairway.bucket.sorting import found_due, summed, tallied
from fairway.bucket.statements import APPLIED, REFUSED, Outcome
from fairway.errors import Closed

_change = msgspec.structs.replace


class Kept:
    """A bucket as it is kept."""

    __slots__ = ("born", "creator", "rows", "state")

    def __init__(self, state: str, creator: str, born: float) -> None:
        self.state: Any = state
        self.creator, self.born = creator, born
        self.rows: dict[bytes, Row] = {}


class MemoryBuckets:
    """Bucket queues that live as long as this object."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.names: dict[str, NameRow] = {}
        self.index: dict[bytes, dict[bytes, IndexRow]] = {}
        self.index_dropped: dict[bytes, bytes] = {}
        self.buckets: dict[tuple[bytes, bytes], Kept] = {}
        self.dead: dict[bytes, dict[bytes, DeadLetter]] = {}
        self.dead_dropped: set[tuple[bytes, bytes]] = set()
        self.generations_dropped: set[bytes] = set()
        self.repairers: dict[str, RepairLease] = {}
        self.closed = False
        self._do: dict[type[s.Statement], Callable[[Any], Any]] = {
            kind: getattr(self, f"_{_snake(kind.__name__)}")
            for base in (s.Read, s.Write)
            for kind in base.__subclasses__()
        }

    def execute(self, statement: s.Statement) -> Any:
        with self.lock:
            if self.closed:
                raise Closed()
            return self._do[type(statement)](statement)

    def close(self) -> None:
        self.closed = True

    # -- queues by name
    def _read_name(self, x: s.ReadName) -> NameRow:
        return self.names.get(x.name, NameRow(None, 0, []))

    def _create_queue(self, x: s.CreateQueue) -> Outcome:
        row = self._read_name(s.ReadName(x.name))
        if row.current is not None or row.changes != x.changes:
            return REFUSED
        queue = QueueRow(x.generation, "live", 0, LOWEST, LOWEST, x.config, x.secret)
        self.names[x.name] = NameRow(x.generation, x.changes + 1, [*row.queues, queue])
        return APPLIED

    def _free_name(self, x: s.FreeName) -> Outcome:
        row = self._read_name(s.ReadName(x.name))
        if row.current != x.generation:
            return REFUSED
        self.names[x.name] = _change(row, current=None, changes=row.changes + 1)
        return APPLIED

    def _read_queue(self, x: s.ReadQueue) -> QueueRow | None:
        return self._read_name(s.ReadName(x.name)).queue(x.generation)

    def _set_queue(self, name: str, queue: QueueRow) -> Outcome:
        row = self.names[name]
        queues = [queue if one.generation == queue.generation else one for one in row.queues]
        self.names[name] = _change(row, queues=queues)
        return APPLIED

    def _configure(self, x: s.Configure) -> Outcome:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live" or queue.config != x.old:
            return REFUSED
        return self._set_queue(x.name, _change(queue, config=x.new))

    def _move_queue(self, x: s.MoveQueue) -> Outcome:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != x.old:
            return REFUSED
        return self._set_queue(x.name, _change(queue, state=x.new, version=queue.version + 1))

    def _read_deletes(self, x: s.ReadDeletes) -> list[Deleting]:
        rows = ((name, queue) for name, row in self.names.items() for queue in row.queues)
        deleting = [Deleting(name, queue.generation) for name, queue in rows if queue.state == "deleting"]
        return deleting[: x.limit]

    def _publish(self, x: s.Publish) -> Outcome:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live" or not queue.floor < x.bucket:
            return REFUSED
        return self._set_queue(x.name, _change(queue, version=queue.version + 1, newest=x.bucket))

    def _move_floor(self, x: s.MoveFloor) -> Outcome:
        queue = self._read_queue(s.ReadQueue(x.name, x.generation))
        if queue is None or queue.state != "live" or queue.version != x.version:
            return REFUSED
        return self._set_queue(x.name, _change(queue, version=queue.version + 1, floor=x.floor))

    # -- the index
    def _read_index(self, x: s.ReadIndex) -> list[IndexRow]:
        index = self.index.get(x.generation, {})
        found = sorted(bucket for bucket in index if x.above < bucket <= x.up_to)
        return [index[bucket] for bucket in found[: x.limit]]

    def _add_index(self, x: s.AddIndex) -> Outcome:
        dropped = self.index_dropped.get(x.generation, LOWEST)
        if x.generation not in self.generations_dropped and x.bucket > dropped:
            row = IndexRow(x.bucket, x.creator, x.due)
            self.index.setdefault(x.generation, {}).setdefault(x.bucket, row)
        return APPLIED

    def _drop_index(self, x: s.DropIndex) -> Outcome:
        index = self.index.get(x.generation, {})
        for bucket in [bucket for bucket in index if bucket <= x.up_to]:
            del index[bucket]
        self.index_dropped[x.generation] = max(self.index_dropped.get(x.generation, LOWEST), x.up_to)
        return APPLIED

    # -- buckets
    def _create_bucket(self, x: s.CreateBucket) -> Outcome:
        if (x.generation, x.bucket) in self.buckets:
            return REFUSED
        self.buckets[x.generation, x.bucket] = Kept("open", x.creator, x.born)
        return APPLIED

    def _move_bucket(self, x: s.MoveBucket) -> Outcome:
        bucket = self.buckets.get((x.generation, x.bucket))
        if bucket is None or bucket.state != x.old:
            return REFUSED
        bucket.state = x.new
        return APPLIED

    def _remove_bucket(self, x: s.RemoveBucket) -> Outcome:
        bucket = self.buckets.get((x.generation, x.bucket))
        if bucket is None or bucket.state != "done":
            return REFUSED
        del self.buckets[x.generation, x.bucket]
        return APPLIED

    def _put(self, x: s.Put) -> Outcome:
        bucket = self.buckets.get((x.generation, x.bucket))
        if bucket is None or bucket.state != "open":
            return REFUSED
        self._write(bucket, x)
        return APPLIED

    def _write(self, bucket: Kept, x: s.Put) -> None:
        for m in x.messages:
            row = bucket.rows.get(m.uid) or Row(m.uid, m.created, m.not_before)
            bucket.rows[m.uid] = _change(
                row, created=m.created, not_before=m.not_before, body=m.body, headers=m.headers
            )

    def _read_bucket(self, x: s.ReadBucket) -> Bucket | None:
        bucket = self.buckets.get((x.generation, x.bucket))
        if bucket is None:
            return None
        rows = [_change(row, body=None, headers=b"") for _, row in sorted(bucket.rows.items())]
        return Bucket(bucket.state, bucket.creator, bucket.born, rows)

    def _glance(self, x: s.Glance) -> Sums | None:
        bucket = self.buckets.get((x.generation, x.bucket))
        return bucket and summed(bucket.state, bucket.born, list(bucket.rows.values()))

    def _read_rows(self, x: s.ReadRows) -> Bucket | None:
        bucket = self.buckets.get((x.generation, x.bucket))
        if bucket is None:
            return None
        rows = [bucket.rows[uid] for uid in x.uids if uid in bucket.rows]
        if not x.bodies:
            rows = [_change(row, body=None, headers=b"") for row in rows]
        return Bucket(bucket.state, bucket.creator, bucket.born, rows)

    def _find_due(self, x: s.FindDue) -> Found | None:
        bucket = self.buckets.get((x.generation, x.bucket))
        return bucket and found_due(bucket.state, [row for _, row in sorted(bucket.rows.items())], x)

    def _count_rows(self, x: s.CountRows) -> Tally | None:
        bucket = self.buckets.get((x.generation, x.bucket))
        return bucket and tallied(bucket.state, list(bucket.rows.values()), x.now)

    def _take(self, x: s.Take) -> Outcome:
        bucket = self.buckets.get((x.generation, x.bucket))
        rows = bucket.rows if bucket is not None else {}
        for one in x.rows:
            row = rows.get(one.uid)
            if row is None or row.version != one.version or row.status != WAITING:
                return REFUSED
        for one in x.rows:
            rows[one.uid] = _change(
                rows[one.uid],
                version=one.version + 1,
                nonce=x.nonce,
                lease=x.lease,
                attempts=one.attempts,
                held=True,
            )
        return APPLIED

    def _held(
        self, x: s.Finish | s.Hold | s.Doom, change: Callable[[Row, s.Change], Row], *, free: bool = False
    ) -> Outcome:
        """Change rows if every one is as its holder says; `free`: a nonce of 0 is not compared."""
        bucket = self.buckets.get((x.generation, x.bucket))
        rows = bucket.rows if bucket is not None else {}
        for one in x.rows:
            row = rows.get(one.uid)
            if row is None or row.version != one.version or row.status != WAITING:
                return REFUSED
            if row.nonce != one.nonce and not (free and one.nonce == 0):
                return REFUSED
        for one in x.rows:
            rows[one.uid] = change(rows[one.uid], one)
        return APPLIED

    def _finish(self, x: s.Finish) -> Outcome:
        return self._held(
            x, lambda row, one: _change(row, status=ACKED, nonce=one.new_nonce, body=None, headers=b"")
        )

    def _hold(self, x: s.Hold) -> Outcome:
        return self._held(
            x,
            lambda row, one: _change(
                row,
                version=one.version + 1,
                nonce=one.new_nonce,
                lease=x.lease,
                attempts=one.attempts,
                held=x.held,
                error=x.error,
            ),
        )

    def _doom(self, x: s.Doom) -> Outcome:
        return self._held(
            x,
            lambda row, one: _change(
                row, version=one.version + 1, nonce=one.new_nonce, status=DYING, error=x.error
            ),
            free=True,
        )

    def _bury(self, x: s.Bury) -> Outcome:
        bucket = self.buckets.get((x.generation, x.bucket))
        row = bucket.rows.get(x.uid) if bucket is not None else None
        if bucket is None or row is None or row.status != DYING:
            return REFUSED
        bucket.rows[x.uid] = _change(row, status=DEAD, body=None, headers=b"")
        return APPLIED

    # -- dead letters
    def _add_dead(self, x: s.AddDead) -> Outcome:
        key = (x.generation, x.letter.uid)
        if key not in self.dead_dropped and x.generation not in self.generations_dropped:
            self.dead.setdefault(x.generation, {}).setdefault(x.letter.uid, x.letter)
        return APPLIED

    def _drop_dead(self, x: s.DropDead) -> Outcome:
        for uid in x.uids:
            self.dead.get(x.generation, {}).pop(uid, None)
            self.dead_dropped.add((x.generation, uid))
        return APPLIED

    def _drop_generation(self, x: s.DropGeneration) -> Outcome:
        self.generations_dropped.add(x.generation)
        self.index.pop(x.generation, None)
        self.dead.pop(x.generation, None)
        self.dead_dropped = {key for key in self.dead_dropped if key[0] != x.generation}
        return APPLIED

    def _read_dead(self, x: s.ReadDead) -> list[DeadLetter]:
        letters = self.dead.get(x.generation, {})
        return [letters[uid] for uid in sorted(uid for uid in letters if uid > x.after)[: x.limit]]

    def _count_dead(self, x: s.CountDead) -> int:
        return len(self.dead.get(x.generation, {}))

    # -- who repairs
    def _read_repairer(self, x: s.ReadRepairer) -> RepairLease:
        return self.repairers.get(x.name, RepairLease("", 0))

    def _beat(self, x: s.Beat) -> Outcome:
        if self._read_repairer(s.ReadRepairer(x.name)) != RepairLease(x.old_owner, x.old_beat):
            return REFUSED
        self.repairers[x.name] = RepairLease(x.owner, x.old_beat + 1)
        return APPLIED


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
