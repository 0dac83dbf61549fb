"""What a group does to runs, as the rows that are different after it.

Guards: only the outcome of a group is written, one write per row, so the order of writes does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairway.limits import CASSANDRA_BATCH_BYTES, CASSANDRA_LIVES_IDS, INLINE_PAGE_BYTES_MAX
from fairway.model.ids import queue_of
from fairway.model.stored import End, Group, Move, Row
from fairway.store.cassandra.places import DEAD, DEADLINE, DUE, level_shard, pair, run_shard, time_of
from fairway.store.lives import folded, misfit

Write = tuple[str, tuple[Any, ...]]

ROW_BYTES: Final = 64  # about what a row weighs beside its values

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A run as it lies in the table."""

    id: int
    pass_: int
    tenant: str
    due: float
    deadline: float
    metadata: bytes | None
    body: bytes
    page: bytes | None
    pages: int
    from_range: int
    from_number: int
    from_page: int
    state: str
    at: float
    failed: int
    end: bytes
    size: int

    @classmethod
    def of(cls, columns: Sequence[Any]) -> StoredRow:
        """From what was read: a column that was not written is as usual."""
        given = (usual if value is None else value for value, usual in zip(columns, _USUAL, strict=True))
        return cls(*given)

    @property
    def active(self) -> bool:
        return self.state == "active"


_USUAL: Final[tuple[Any, ...]] = (0, 0, "", 0.0, 0.0, None, b"", None, 0, 0, 0, 0, "active", 0.0, 0, b"", 0)


class Place(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of an active run: enough to end it without looking it up."""

    pass_: int
    due: float
    deadline: float


class Lives:
    """The runs of one group, before and after it. `known` are active runs, `stored` what was looked up."""

    def __init__(
        self, group: Group, queue: int, known: Mapping[int, Place], stored: Mapping[int, StoredRow]
    ) -> None:
        self._known, self._stored = known, stored
        self.rows = {row.id: row for row in group.rows}
        if len(self.rows) != len(group.rows) or any(id in stored or id in known for id in self.rows):
            raise misfit("a run is stored twice")
        if any(queue_of(id) != queue for id in self.rows):
            raise misfit("a run has an id of another queue")
        moves, ends = folded(group, self._where)
        self.moves: dict[int, Move] = {move.id: move for move in moves}
        self.ends: dict[int, End] = {end.id: end for end in ends}
        self._check()
        self.purged = {id for id in group.purge if self._over(id)}

    def _where(self, id: int) -> tuple[int, bool] | None:
        place = self._known.get(id)
        if place is not None:
            return place.pass_, True
        row = self._stored.get(id)
        return None if row is None else (row.pass_, row.active)

    def _check(self) -> None:
        """Every move and end fits where its run stands."""
        for id, move in self.moves.items():
            where = (self.rows[id].pass_, True) if id in self.rows else self._where(id)
            if where is None or (where[1] and where[0] != move.old_pass):
                raise misfit("a moved run is not in its old place")
        for id, end in self.ends.items():
            where = (self.rows[id].pass_, True) if id in self.rows else self._where(id)
            if id in self.moves:
                where = (self.moves[id].pass_, True)
            if where != (end.pass_, True):
                raise misfit("an ended run is not active in its place")

    def _over(self, id: int) -> bool:
        if id in self.ends:
            return True
        where = self._where(id)
        return id not in self.rows and id not in self.moves and where is not None and not where[1]

    # -- what is different afterwards

    def places(self) -> Iterator[tuple[int, Place | None]]:
        """The active runs that are new or elsewhere, and None for those that are no longer active."""
        for id, row in self.rows.items():
            pass_ = self.moves[id].pass_ if id in self.moves else row.pass_
            if id not in self.ends:
                yield id, Place(pass_, row.due, row.deadline)
        for id, move in self.moves.items():
            if id not in self.rows and id not in self.ends:
                yield id, Place(move.pass_, *self._times(id))
        for id in self.ends.keys() | self.purged:
            yield id, None

    def ended(self) -> dict[float, list[int]]:
        """Who ended in this group and is still there after it, by when."""
        found: dict[float, list[int]] = {}
        for id, end in self.ends.items():
            if id not in self.purged:
                found.setdefault(end.at, []).append(id)
        return found

    def left(self) -> dict[float, set[int]]:
        """Who had ended in an earlier group, and lives again, ended anew or is gone, by when it had ended."""
        found: dict[float, set[int]] = {}
        for id, row in self._stored.items():
            if not row.active and (id in self.moves or id in self.purged):
                found.setdefault(row.at, set()).add(id)
        return found

    def writes(self, bundled: Mapping[int, tuple[int, int, int]]) -> Iterator[Write]:
        """The rows that are different. `bundled` says where the large pages of new runs are."""
        for id, row in self.rows.items():
            if id not in self.purged:
                yield from self._new(row, bundled.get(id, (None, None, None)))
        alike: dict[tuple[Any, ...], list[int]] = {}
        for id in sorted((self.moves.keys() | self.ends.keys()) - self.rows.keys() - self.purged):
            yield from self._changed(id, alike)
        for (shard, *life), ids in alike.items():
            many = max(1, min(CASSANDRA_LIVES_IDS, CASSANDRA_BATCH_BYTES // (ROW_BYTES + len(life[-1]))))
            for start in range(0, len(ids), many):
                yield "put_lives", (shard, ids[start : start + many], *life)
        for id in sorted(self.purged - self.rows.keys()):
            yield from self._gone(id)

    def _new(self, row: Row, where: tuple[int | None, int | None, int | None]) -> Iterator[Write]:
        id, end = row.id, self.ends.get(row.id)
        pass_ = self.moves[id].pass_ if id in self.moves else row.pass_
        page = row.pages[0] if inline(row) else None
        packed = _pack(dict(row.metadata)) if row.metadata else None
        size = len(row.body) + sum(map(len, row.pages))
        # What is as usual is not written: a message has half as many cells, and they are what a node works with.
        life = ("active", None, None, None) if end is None else (end.state, end.at, end.failed, end.body)
        yield "put_run", (run_shard(id), id, pass_, row.tenant, row.due or None, row.deadline or None, packed,
                          row.body, page, len(row.pages), *where, *life, size)  # fmt: skip
        for key, value in row.metadata.items():
            yield "put_pair", (pair(key, value), id)
        if end is None:
            yield "put_level", (level_shard(id), pass_, id, row.tenant, row.body)
            yield from _timed("put_time", id, row.due, row.deadline)
        elif end.failed:
            yield "put_time", time_of(DEAD, 0.0, id)

    def _changed(self, id: int, alike: dict[tuple[Any, ...], list[int]]) -> Iterator[Write]:
        """What is different for one run; those that end alike, where they stand, are gathered."""
        row, known = self._stored.get(id), self._known.get(id)
        end, move = self.ends.get(id), self.moves.get(id)
        was = known.pass_ if known is not None else row.pass_ if row is not None and row.active else None
        pass_ = move.pass_ if move is not None else was
        life = ("active", 0.0, 0, b"") if end is None else (end.state, end.at, end.failed, end.body)
        if end is not None and move is None and was is not None:
            alike.setdefault((run_shard(id), *life), []).append(id)
        else:
            yield "put_life", (run_shard(id), id, pass_, *life)
        if was is not None and (end is not None or pass_ != was):
            yield "drop_level", (level_shard(id), was, id)
        if end is None and pass_ != was:
            assert row is not None, "a moved run is looked up"
            yield "put_level", (level_shard(id), pass_, id, row.tenant, row.body)
        if row is not None and row.failed and (end is None or not end.failed):
            yield "drop_time", time_of(DEAD, 0.0, id)
        if end is not None and end.failed:
            yield "put_time", time_of(DEAD, 0.0, id)
        if (was is None) != (end is not None):
            yield from _timed("put_time" if end is None else "drop_time", id, *self._times(id))

    def _gone(self, id: int) -> Iterator[Write]:
        """A run that leaves for good; its results, objects and pages are the planner's."""
        row = self._stored[id]
        yield "drop_run", (run_shard(id), id)
        if row.active:
            yield "drop_level", (level_shard(id), row.pass_, id)
            yield from _timed("drop_time", id, row.due, row.deadline)
        elif row.failed:
            yield "drop_time", time_of(DEAD, 0.0, id)
        for key, value in (_unpack(row.metadata) if row.metadata else {}).items():
            yield "drop_pair", (pair(key, value), id)

    def _times(self, id: int) -> tuple[float, float]:
        found = self._known.get(id) or self._stored[id]
        return found.due, found.deadline


def inline(row: Row) -> bool:
    """Whether a run's first payload page lies in its row."""
    return bool(row.pages) and len(row.pages[0]) <= INLINE_PAGE_BYTES_MAX


def _timed(name: str, id: int, due: float, deadline: float) -> Iterator[Write]:
    if due > 0:
        yield name, time_of(DUE, due, id)
    if deadline > 0:
        yield name, time_of(DEADLINE, deadline, id)
