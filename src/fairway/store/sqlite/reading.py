"""Every read of the store, each on a connection of its own while it lasts.

Guards: a read sees one moment of the file, and only its own queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from fairway.model.ids import queue_of
from fairway.model.stored import KeyRow, Kind, Meta, ResultPage, StoredRun, Time, until_bytes
from fairway.store.port import Level
from fairway.store.sqlite import seals
from fairway.store.sqlite.connections import Readers, rows
from fairway.store.sqlite.seals import unseal
from fairway.store.sqlite.statements import load
from fairway.store.sqlite.writing import json_list, places

_SQL: Final = load("read.sql")
_LAST: Final = (2**63 - 1, 2**63 - 1)  # above every level
_unpack = msgspec.msgpack.Decoder().decode


class Reading:
    """The reading half of the store: any thread may call it."""

    def __init__(self, readers: Readers, queue: int) -> None:
        self._readers = readers
        self._queue = queue

    @property
    def deletes_by_range(self) -> bool:
        return False  # an ended run's level leaves by its key

    def last_number(self) -> int:
        return self._all("last_number", (self._queue,))[0][0]

    def active(self) -> Iterator[StoredRun]:
        return (_active((*row, None)) for row in self._each("active", (self._queue,)))

    def objects(self, kind: Kind, key: int | None = None) -> Iterator[tuple[str | int, int, bytes]]:
        name, more = ("objects", ()) if key is None else ("objects_of", (key,))
        found = self._each(name, (self._queue, kind, *more))
        return ((key, part, unseal(body, seals.thing(kind, key, part))) for key, part, body in found)

    def journal(self) -> Iterator[tuple[int, bytes]]:
        start, end = places(self._queue)
        found = self._each("journal", (start, end))
        return ((place - start, unseal(body, seals.place(place))) for place, body in found)

    def run(self, id: int) -> StoredRun | None:
        if queue_of(id) != self._queue:
            return None
        found = self._all("run", (self._queue, id))
        if not found:
            return None
        *row, progress = found[0]
        run = _stored(row)
        return msgspec.structs.replace(run, progress=_progress(id, progress)) if progress else run

    def above(
        self,
        level: Level,
        limit: int,
        upto: Level | None = None,
        tenant: str | None = None,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        last = upto or _LAST
        found = self._each("above", (self._queue, *level, *last, tenant, limit))
        return list(until_bytes(map(_active, found), bytes_max))

    def listed(
        self,
        tenant: str | None,
        metadata: dict[str, str | int],
        after: int,
        limit: int,
        bytes_max: int | None = None,
    ) -> list[StoredRun]:
        if not metadata:
            found = self._each("listed", (self._queue, after, tenant, limit))
            return list(until_bytes(map(_active, found), bytes_max))
        (key, value), *others = metadata.items()
        found = self._each("listed_with", (self._queue, after, tenant, key, value))
        some = islice((row for row in found if _has(row[5], others)), limit)
        return list(until_bytes(map(_active, some), bytes_max))

    def times(self, what: str, after: Time, limit: int) -> list[Time]:
        name = "times_due" if what == "due" else "times_deadline"
        return self._all(name, (self._queue, *after, limit))

    def ended(
        self, state: str, tenant: str | None, metadata: dict[str, str | int], after: int, limit: int
    ) -> list[StoredRun]:
        if not metadata:
            found = self._all("ended", (self._queue, after, state, tenant, limit))
            return [_stored(row) for row in found]
        (key, value), *others = metadata.items()
        found = self._each("ended_with", (self._queue, after, state, tenant, key, value))
        return [_stored(row) for row in islice((row for row in found if _has(row[6], others)), limit)]

    def ended_before(self, at: float, limit: int, after: Time = (0.0, 0)) -> list[Time]:
        return self._all("ended_before", (self._queue, at, limit, *after))

    def ended_failed(self, after: int, limit: int) -> list[StoredRun]:
        return [_stored(row) for row in self._all("ended_failed", (self._queue, after, limit))]

    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None:
        found = self._all("object", (self._queue, kind, key, part))
        return unseal(found[0][0], seals.thing(kind, key, part)) if found else None

    def pages(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        own = [(id, page) for id, page in wanted if queue_of(id) == self._queue]
        found: dict[tuple[int, int], bytes] = {}
        with self._readers.borrow() as connection:
            first = json_list([id for id, page in own if page == 0])
            inside = rows(connection, _SQL["inline_pages"], (first,))
            found.update({(id, 0): body for id, body in inside})
            outside: Iterable[Any] = connection.executemany(
                _SQL["page"], [place for place in own if place not in found]
            )
            found.update({(id, page): body for id, page, body in outside})
        return found

    def results(self, id: int, first_min: int, limit: int, bytes_max: int | None = None) -> list[ResultPage]:
        if queue_of(id) != self._queue:
            return []
        found = self._each("results", (id, first_min, limit))
        return list(until_bytes((ResultPage(*row) for row in found), bytes_max))

    def key(self, tenant: str, key: str) -> KeyRow | None:
        found = self._all("key", (self._queue, tenant, key))
        return KeyRow(*found[0]) if found else None

    def keys_expired(self, at: float, limit: int) -> list[tuple[str, str]]:
        return self._all("keys_expired", (self._queue, at, limit))

    def events(self, after: int, limit: int) -> list[tuple[int, float, bytes]]:
        start, end = places(self._queue)
        found = self._all("events", (min(start + after, end), end, limit))
        return [(place - start, time, unseal(body, seals.place(place))) for place, time, body in found]

    def _all(self, name: str, values: Sequence[Any]) -> list[Any]:
        with self._readers.borrow() as connection:
            return rows(connection, _SQL[name], values)

    def _each(self, name: str, values: Sequence[Any]) -> Iterator[Any]:
        with self._readers.borrow() as connection:
            cursor = connection.cursor()
            try:
                yield from cursor.execute(_SQL[name], values)
            finally:
                cursor.close(True)  # else the connection would go back with its snapshot still open


def meta_of(queue: int, range_id: int, number: int, sealed: bytes) -> Meta:
    """The row of a queue."""
    return Meta(queue, range_id, number, unseal(sealed, seals.place(queue)))


def _stored(row: Sequence[Any]) -> StoredRun:
    id, pass_, tenant, body, state, end = row[:6]
    body = unseal(body, seals.run(id, tenant))
    if state is None:
        return StoredRun(id, pass_, tenant, body)
    return StoredRun(id, pass_, tenant, body, state, unseal(end, seals.run(id, state)))


def _active(row: Sequence[Any]) -> StoredRun:
    id, pass_, tenant, body, progress = row[:5]
    whose = seals.run(id, tenant)
    if body is None:
        raise seals.damaged(whose)  # its place is there, and it is not
    return StoredRun(
        id, pass_, tenant, unseal(body, whose), progress=_progress(id, progress) if progress else b""
    )


def _progress(id: int, sealed: bytes) -> bytes:
    return unseal(sealed, seals.thing(Kind.PROGRESS, id, 0))


def _has(packed: bytes, pairs: Sequence[tuple[str, str | int]]) -> bool:
    metadata = _unpack(packed)
    return all(type(metadata.get(key)) is type(value) and metadata[key] == value for key, value in pairs)
