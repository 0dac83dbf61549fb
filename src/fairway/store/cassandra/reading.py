"""Every read of the store.

Guards: a read sees every group that this handle has stored, and only its own queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec

from fairway.errors import Closed
from fairway.limits import CASSANDRA_LEVEL_SHARDS, CASSANDRA_RUN_SHARDS
from fairway.model.stored import KeyRow, Kind, ResultPage, StoredRun, Time, until_bytes
from fairway.store.cassandra.connection import Connection, Row
from fairway.store.cassandra.endings import unpacked
from fairway.store.cassandra.fencing import Fencing
from fairway.store.cassandra.lives import StoredRow
from fairway.store.cassandra.places import (
    DEAD,
    DEADLINE,
    DUE,
    EXPIRES,
    HIGHEST,
    IN_ROWS,
    LOWEST,
    block,
    object_key,
    pair,
    time_shards,
)
from fairway.store.cassandra.planning import Planner, by_shard, in_lists
from fairway.store.cassandra.tables import Tables
from fairway.store.port import Level

_SOME: Final = 500  # rows of one partition in one read of a listing
_ALL: Final = 2**31 - 1
_PAGES: Final = 8  # of 64 KiB in one read

_unpack = msgspec.msgpack.Decoder().decode
Where = tuple[int, int]


class Reading:
    """The reading half of the store: any thread may call it."""

    def __init__(
        self, connection: Connection, queue: UUID, number: int, tables: Tables, fencing: Fencing
    ) -> None:
        self._connection, self._queue, self._number = connection, queue, number
        self._tables, self._fencing = tables, fencing
        self._runs = Planner(connection, queue, number)
        self._closed = False

    @property
    def connection(self) -> Connection:
        return self._connection

    @property
    def queue(self) -> UUID:
        """The key of the queue in every table."""
        return self._queue

    @property
    def deletes_by_range(self) -> bool:
        """A place leaves with its own key; where many have left, `Tables.clear` covers them by range."""
        return False

    # -- the fence
    def last_number(self) -> int:
        return self._source()._fencing.read().last

    def owns(self, range_id: int) -> bool:
        if self._closed:
            raise Closed()
        return self._fencing.read().range_id == range_id

    def size_bytes(self) -> int:
        return max(0, self._source()._fencing.read().size)

    # -- read at a start
    def active(self) -> Iterator[StoredRun]:
        for pass_, id, tenant, body in self._levels((LOWEST, LOWEST), None, _ALL):
            yield StoredRun(id, pass_, tenant, body)

    def objects(self, kind: Kind, key: int | None = None) -> Iterator[tuple[str | int, int, bytes]]:
        connection = self._source()._connection
        if key is not None:
            yield from connection.each("objects_of", (self._queue, kind, [key]))
            return
        for text_key, number, name, part, body in connection.each("objects", (self._queue, kind)):
            yield name if text_key else number, part, body

    def journal(self) -> Iterator[tuple[int, bytes]]:
        floor = self._source()._fencing.read().journal_floor
        yield from self._connection.each("journal", (self._queue, floor))

    # -- for the window
    def above(
        self,
        level: Level,
        limit: int,
        upto: Level | None = None,
        tenant: str | None = None,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        rows = self._levels(level, upto, limit if tenant is None else _ALL)
        mine = (row for row in rows if tenant in (None, row[2]))
        found = (StoredRun(id, pass_, its, body) for pass_, id, its, body in islice(mine, limit))
        return self._with_progress(list(until_bytes(found, bytes_max)))

    def listed(
        self,
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        found = self._listing(lambda state: state == "active", tenant, metadata, after, limit)
        return self._with_progress(list(until_bytes(found, bytes_max)))

    def times(self, what: str, after: Time, limit: int) -> list[Time]:
        kind = DUE if what == "due" else DEADLINE
        rows = self._source()._connection.read("times_after", (self._queue, kind, 0, *after, limit))
        return [(at, id) for at, id, _, _ in rows]

    # -- read at any time
    def run(self, id: int) -> StoredRun | None:
        row = self._source()._runs.runs([id]).get(id)
        return None if row is None else self._with_progress([_stored(row)])[0]

    def ended(
        self, state: str, tenant: str | None, metadata: dict[str, str | int], after: int, limit: int
    ) -> list[StoredRun]:
        return self._listing(
            lambda its: its != "active" and state in ("", its), tenant, metadata, after, limit
        )

    def ended_before(self, at: float, limit: int, after: Time = (0.0, 0)) -> list[Time]:
        shards = range(CASSANDRA_LEVEL_SHARDS)
        found = [one for shard in shards for one in self._ended(shard, at, limit, after)]
        return sorted(found)[:limit]

    def ended_failed(self, after: int, limit: int) -> list[StoredRun]:
        values = (self._queue, DEAD, 0, 0.0, after, limit)
        ids = [row[1] for row in self._source()._connection.read("times_after", values)]
        found = self._runs.runs(ids)
        return [_stored(found[id]) for id in ids if id in found]

    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None:
        found = self._source()._connection.read("object", (self._queue, kind, *object_key(key), part))
        return found[0][0] if found else None

    def pages(self, wanted: Sequence[Where]) -> dict[Where, bytes]:
        found: dict[Where, bytes] = {}
        outside: dict[tuple[int, int], dict[int, Where]] = {}
        known = {}
        runs = by_shard("first_pages", self._queue, {id for id, _ in wanted})
        for rows in self._source(pages_only=True)._connection.read_many(runs):
            known.update({row[0]: row[1:] for row in rows})
        for where in wanted:
            id, page = where
            if id not in known or not 0 <= page < known[id][1]:
                continue
            first, _, range_id, number, start = known[id]
            if first is not None and page == 0:
                found[where] = first
            else:
                outside.setdefault((range_id, number), {})[start + page - (first is not None)] = where
        for bundle, places in outside.items():
            found.update({places[page]: body for page, body in self._pages(bundle, sorted(places))})
        return found

    def results(self, id: int, first_min: int, limit: int, bytes_max: int | None = None) -> list[ResultPage]:
        rows = self._source()._connection.read("results", (self._queue, id, first_min, limit))
        if bytes_max is not None:
            rows = rows[: _upto(bytes_max, [row[5] for row in rows])]
        outside: dict[tuple[int, int], list[int]] = {}
        for _, number, _, range_id, page, _ in rows:
            if range_id:
                outside.setdefault((range_id, number), []).append(page)
        bodies = {
            (*bundle, page): body
            for bundle, pages in outside.items()
            for page, body in self._pages(bundle, sorted(pages))
        }
        return [
            ResultPage(id, first, bodies[range_id, number, page] if range_id else body or b"")
            for first, number, body, range_id, page, _ in rows
        ]

    def key(self, tenant: str, key: str) -> KeyRow | None:
        return self._source()._runs.keys([(tenant, key)])[0]

    def keys_expired(self, at: float, limit: int) -> list[tuple[str, str]]:
        return [(tenant, key) for _, _, tenant, key in self._timed(EXPIRES, at, limit)]

    def events(self, after: int, limit: int) -> list[tuple[int, float, bytes]]:
        # Later groups may be there already while those before them are on their way.
        whole = self._source()._tables.finish()
        fence = self._fencing.read()
        upto = fence.last if whole is None else whole
        found: list[Row] = []
        for where in range(block(max(after + 1, fence.events_floor)), block(upto) + 1):
            values = (self._queue, where, max(after, fence.events_floor - 1), upto, limit - len(found))
            found += self._connection.read("events", values)
            if len(found) >= limit:
                break
        return [(number, at, body) for number, at, body in found]

    # -- how
    def _source(self, pages_only: bool = False) -> Reading:
        """Itself, when everything it has stored can be read, or all payload pages of it."""
        if self._closed:
            raise Closed()
        if pages_only:
            self._tables.finish_pages()
        else:
            self._tables.finish()
        return self

    def _levels(self, level: Level, upto: Level | None, limit: int) -> Iterator[Row]:
        bounds = (*level, *(upto or (HIGHEST, HIGHEST)), limit)
        each = self._source()._connection.each
        shards = [
            each("levels_above", (self._queue, shard, *bounds)) for shard in range(CASSANDRA_LEVEL_SHARDS)
        ]
        return islice(merge(*shards, key=lambda row: row[:2]), limit)

    def _timed(self, what: int, before: float, limit: int) -> list[Row]:
        wanted = [("times_before", (self._queue, what, shard, before, limit)) for shard in time_shards(what)]
        return sorted(row for rows in self._source()._connection.read_many(wanted) for row in rows)[:limit]

    def _ended(self, shard: int, before: float, limit: int, after: Time) -> list[Time]:
        """The first that ended, at least so many; those of one time are all among them or none is."""
        found: list[Time] = []
        rows = self._source()._connection.each("endings_before", (self._queue, shard, after[0], before))
        for at, ids in rows:
            if len(found) >= limit and at > found[-1][0]:
                break
            found += [(at, id) for id in unpacked(ids) if (at, id) > after]
        return found

    def _listing(
        self,
        wanted: Callable[[str], bool],
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
    ) -> list[StoredRun]:
        rows = self._with_pairs(metadata, after) if metadata else self._all_after(after, limit)
        return list(
            islice((run for run in rows if wanted(run.state) and tenant in (None, run.tenant)), limit)
        )

    def _all_after(self, after: int, limit: int) -> Iterator[StoredRun]:
        """Every run in id order: the partitions merged, each read a part at a time."""
        some = min(_SOME, limit + 1)
        wanted = [("runs_after", (self._queue, shard, after, some)) for shard in range(CASSANDRA_RUN_SHARDS)]
        first = self._source()._connection.read_many(wanted)
        rows = merge(
            *(self._on(shard, part, some) for shard, part in enumerate(first)), key=lambda row: row[0]
        )
        return (StoredRun(*row) if row[4] != "active" else StoredRun(*row[:4]) for row in rows)

    def _on(self, shard: int, rows: list[Row], some: int) -> Iterator[Row]:
        while rows:
            yield from rows
            if len(rows) < some:
                return
            some = _SOME
            rows = self._connection.read("runs_after", (self._queue, shard, rows[-1][0], some))

    def _with_pairs(self, metadata: dict[str, str | int], after: int) -> Iterator[StoredRun]:
        """Runs that have every pair, in id order, found by the first."""
        (key, value), *others = metadata.items()
        while True:
            values = (self._queue, pair(key, value), after, IN_ROWS)
            ids = [id for (id,) in self._source()._connection.read("pairs_after", values)]
            found = self._runs.runs(ids)
            yield from (_stored(found[id]) for id in ids if id in found and _has(found[id], others))
            if len(ids) < IN_ROWS:
                return
            after = ids[-1]

    def _with_progress(self, runs: list[StoredRun]) -> list[StoredRun]:
        active = [run.id for run in runs if run.state == "active"]
        if not active:
            return runs
        wanted = in_lists("objects_of", (self._queue, int(Kind.PROGRESS)), active)
        progress = {
            id: body for rows in self._connection.read_many(wanted) for id, part, body in rows if not part
        }
        return [
            msgspec.structs.replace(run, progress=progress[run.id])
            if run.state == "active" and run.id in progress
            else run
            for run in runs
        ]

    def _pages(self, bundle: tuple[int, int], pages: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        parts = [list(pages[at : at + _PAGES]) for at in range(0, len(pages), _PAGES)]
        wanted = [("pages_of", (self._queue, *bundle, part)) for part in parts]
        return [row for rows in self._connection.read_many(wanted) for row in rows]


def _upto(bytes_max: int, sizes: Iterable[int]) -> int:
    """How many of these come before so many bytes are reached, and the one that reaches them."""
    many = 0
    for size in sizes:
        many += 1
        bytes_max -= size
        if bytes_max <= 0:
            break
    return many


def _stored(row: StoredRow) -> StoredRun:
    run = StoredRun(row.id, row.pass_, row.tenant, row.body)
    return run if row.active else msgspec.structs.replace(run, state=row.state, end=row.end)


def _has(row: StoredRow, pairs: Sequence[tuple[str, str | int]]) -> bool:
    metadata = _unpack(row.metadata) if row.metadata else {}
    return all(type(metadata.get(key)) is type(value) and metadata[key] == value for key, value in pairs)
