"""Removing what a deleted queue held, in small steps that anybody may take and take again.

Guards: nothing is removed before the fence is closed for good; what a former owner writes late is older than its
removal, and so never seen. The closed fence stays: whoever comes to it later is told that the queue is deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from fairway.errors import StoreFailed
from fairway.limits import CASSANDRA_IN_FLIGHT_MAX, CASSANDRA_LEVEL_SHARDS, CASSANDRA_RUN_SHARDS
from fairway.model.stored import Kind
from fairway.store.cassandra.connection import Connection
from fairway.store.cassandra.fencing import DELETED, Fencing
from fairway.store.cassandra.lives import Write
from fairway.store.cassandra.places import DEAD, DEADLINE, DUE, EXPIRES, block, pair, time_shards
from fairway.store.cassandra.translate import translate

LAST: Final = 2**62  # the timestamp of these removals: above that of every group and page
_STEP_ROWS: Final = 200  # runs or keys that are looked at in one step

_unpack = msgspec.msgpack.Decoder().decode


def buried(connection: Connection) -> list[tuple[str, uuid.UUID]]:
    """The deleted queues of the realm of which something may be left, by the name of their mark."""
    found = connection.read("buried_queues", (connection.address.realm,))
    return [(name, queue) for name, queue in found if name is not None and name.startswith("/")]


def removal(connection: Connection) -> Iterator[None]:
    """Remove what every deleted queue held; each step takes well below a second."""
    for name, queue in buried(connection):
        yield from _Removal(connection, queue).steps()
        connection.conditional(("forget_buried", (connection.address.realm, name, queue)))


class _Removal:
    """One deleted queue."""

    def __init__(self, connection: Connection, queue: uuid.UUID) -> None:
        self._connection, self._queue = connection, queue

    def steps(self) -> Iterator[None]:
        fence = Fencing(self._connection, self._queue).read()
        if fence.range_id < DELETED:
            return  # its deletion goes on elsewhere, or is to be repeated
        yield self._logged()
        for shard in range(CASSANDRA_RUN_SHARDS):
            yield from self._runs(shard)
        yield from self._keys()
        whats = (DUE, DEADLINE, EXPIRES, DEAD)
        yield self._remove("remove_levels", ((shard,) for shard in range(CASSANDRA_LEVEL_SHARDS)))
        yield self._remove("remove_times", ((what, n) for what in whats for n in time_shards(what)))
        yield self._remove("remove_endings", ((shard,) for shard in range(CASSANDRA_LEVEL_SHARDS)))
        yield self._remove("remove_objects", ((int(kind),) for kind in Kind))
        yield self._remove("remove_journal", [()])
        blocks = range(block(fence.events_floor), block(fence.last) + 1)
        yield self._remove("remove_events", ((one,) for one in blocks))
        values = (self._queue, fence.range_id)
        self._connection.conditional(("empty_fence", values), ("end_log", (self._queue,)))

    def _logged(self) -> None:
        """Groups that may not be in the tables yet, and are still being written there by a former owner."""
        found: list[tuple[int, list[Write], list[tuple[int, int]]]] = []
        with suppress(
            StoreFailed
        ):  # the pages of a large one left with an earlier try, and so did what it names
            found = Fencing(self._connection, self._queue).logged(-1)
        writes = [write for _, some, _ in found for write in some]
        self._remove("remove_pairs", ((values[0],) for name, values in writes if name == "put_pair"))
        self._remove("remove_results", ((values[0],) for name, values in writes if name == "put_result"))
        self._remove("remove_keys", (values[:2] for name, values in writes if name == "put_key"))
        numbers = self._connection.read("logged", (self._queue, -1))
        self._remove("remove_bundle", ((range_id, number) for number, range_id, _, _ in numbers))

    def _runs(self, shard: int) -> Iterator[None]:
        some: list[Any] = []
        for row in self._connection.each("held_runs", (self._queue, shard)):
            some.append(row)
            if len(some) == _STEP_ROWS:
                yield self._held(some)
                some = []
        yield self._held(some)
        yield self._remove("remove_runs", [(shard,)])

    def _held(self, runs: list[Any]) -> None:
        """What lies elsewhere and is found by these runs alone, so it goes before them."""
        ids = [id for id, _, _, _ in runs]
        results = self._connection.read_many([("result_places", (self._queue, id)) for id in ids])
        pages = {(range_id, number) for rows in results for _, number, range_id, _, _ in rows if range_id}
        pages |= {(range_id, number) for _, _, range_id, number in runs if range_id}
        pairs = {
            pair(key, value)
            for _, metadata, _, _ in runs
            if metadata
            for key, value in _unpack(metadata).items()
        }
        self._remove("remove_bundle", pages)
        self._remove("remove_pairs", ((one,) for one in pairs))
        self._remove("remove_results", ((id,) for id in ids))

    def _keys(self) -> Iterator[None]:
        some: list[tuple[str, str]] = []
        for seen, (queue, tenant, key) in enumerate(self._connection.each("held_keys", ()), 1):
            if queue == self._queue:
                some.append((tenant, key))
            if seen % _STEP_ROWS == 0:
                yield self._remove("remove_keys", some)
                some = []
        yield self._remove("remove_keys", some)

    def _remove(self, name: str, wanted: Iterable[tuple[Any, ...]]) -> None:
        sent: list[Any] = []
        try:
            for values in wanted:
                if len(sent) >= CASSANDRA_IN_FLIGHT_MAX:
                    sent[-CASSANDRA_IN_FLIGHT_MAX].result()
                statement = self._connection.bound(name, (LAST, self._queue, *values))
                sent.append(self._connection.send(statement))
            for future in sent:
                future.result()
        except Exception as error:
            raise translate(error) from error
