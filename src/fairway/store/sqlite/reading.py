"""Every read of the store, each on a connection of its own while it lasts.

Guards: a read sees one moment of the file, and only its own queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from fairway.model.ids import queue_of
from fairway.model.stored import KeyRow, Kind, ResultPage, StoredRun
from fairway.store.sqlite.connections import Readers, rows
from fairway.store.sqlite.statements import load
from fairway.store.sqlite.writing import json_list, places

_SQL: Final = load("read.sql")
_unpack = msgspec.msgpack.Decoder().decode


class Reading:
    """The reading half of the store: any thread may call it."""

    def __init__(self, readers: Readers, queue: int) -> None:
        self._readers = readers
        self._queue = queue

    def last_number(self) -> int:
        return self._all("last_number", (self._queue,))[0][0]

    def active(self) -> Iterator[StoredRun]:
        return (StoredRun(*row) for row in self._each("active", (self._queue,)))

    def objects(self, kind: Kind) -> Iterator[tuple[str | int, int, bytes]]:
        return self._each("objects", (self._queue, kind))

    def journal(self) -> Iterator[tuple[int, bytes]]:
        start, end = places(self._queue)
        return ((place - start, body) for place, body in self._each("journal", (start, end)))

    def run(self, id: int) -> StoredRun | None:
        if queue_of(id) != self._queue:
            return None
        found = self._all("run", (self._queue, id))
        return _stored(found[0]) if found else None

    def ended(
        self, state: str, tenant: str | None, metadata: dict[str, str | int], after: int, limit: int
    ) -> list[StoredRun]:
        if not metadata:
            found = self._all("ended", (self._queue, after, state, tenant, limit))
            return [_stored(row) for row in found]
        (key, value), *others = metadata.items()
        found = self._each("ended_with", (self._queue, after, state, tenant, key, value))
        return [_stored(row) for row in islice((row for row in found if _has(row[6], others)), limit)]

    def ended_before(self, at: float, limit: int) -> list[int]:
        return [id for (id,) in self._all("ended_before", (self._queue, at, limit))]

    def ended_failed(self, after: int, limit: int) -> list[StoredRun]:
        return [_stored(row) for row in self._all("ended_failed", (self._queue, after, limit))]

    def object(self, kind: Kind, key: str | int, part: int) -> bytes | None:
        found = self._all("object", (self._queue, kind, key, part))
        return found[0][0] if found else None

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

    def results(self, id: int, first_min: int, limit: int) -> list[ResultPage]:
        if queue_of(id) != self._queue:
            return []
        return [ResultPage(*row) for row in self._all("results", (id, first_min, limit))]

    def key(self, tenant: str, key: str) -> KeyRow | None:
        found = self._all("key", (self._queue, tenant, key))
        return KeyRow(*found[0]) if found else None

    def keys_expired(self, at: float, limit: int) -> list[tuple[str, str]]:
        return self._all("keys_expired", (self._queue, at, limit))

    def events(self, after: int, limit: int) -> list[tuple[int, float, bytes]]:
        start, end = places(self._queue)
        found = self._all("events", (start + after, end, limit))
        return [(place - start, time, body) for place, time, body in found]

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


def _stored(row: Sequence[Any]) -> StoredRun:
    id, pass_, tenant, body, state, end = row[:6]
    if state is None:
        return StoredRun(id, pass_, tenant, body)
    return StoredRun(id, pass_, tenant, body, state, end)


def _has(packed: bytes, pairs: Sequence[tuple[str, str | int]]) -> bool:
    metadata = _unpack(packed)
    return all(type(metadata.get(key)) is type(value) and metadata[key] == value for key, value in pairs)
