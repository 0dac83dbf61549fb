"""What a store on Cassandra sends for its groups, and how often it waits for an answer before it goes on.

Guards: requests that are sent together are one round trip; a wait is counted whether or not the answer is there
already, so the count does not depend on how busy the machine is. Left out is what no group asks for: the owner's
heartbeat, and its look at the fence when it has stored nothing for a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairway.limits import CASSANDRA_IN_FLIGHT_MAX
from fairway.store.cassandra import CassandraStore

_PAGES_AT_ONCE = 4


class Trips:
    """Counts, until it is told to stop. `requests` by what they are, `rows` that they write, `waits` for answers."""

    def __init__(self, store: CassandraStore) -> None:
        self.requests, self.rows, self.waits = Counter[str](), Counter[str](), 0
        self._undo: list[Callable[[], None]] = []
        connection: Any = store.connection
        fencing, tables = store._fencing, store._tables  # pyright: ignore[reportPrivateUsage]
        self._wrap(connection, "conditional", self._conditional)
        self._wrap(connection, "read", self._read)
        self._wrap(connection, "each", self._read)
        self._wrap(connection, "read_many", self._read_many)
        self._wrap(connection, "send", self._send)
        self._wrap(connection, "bound", self._bound)
        self._wrap(tables, "finish", self._wait)
        self._wrap(tables, "finish_pages", self._wait)
        self._wrap(tables, "_write_all", self._wait)
        self._wrap(fencing, "_write_pages", self._pages)

    def stop(self) -> None:
        for undo in self._undo:
            undo()

    def _wrap(self, owner: Any, name: str, seen: Callable[..., tuple[Any, ...]]) -> None:
        real = getattr(owner, name)

        def call(*values: Any, **given: Any) -> Any:
            return real(*seen(*values), **given)

        setattr(owner, name, call)
        self._undo.append(lambda: delattr(owner, name))

    def _conditional(self, *parts: Any) -> tuple[Any, ...]:
        if parts[0][0] != "beat":
            self.requests["conditional"] += 1
            self.waits += 1
        return parts

    def _read(self, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
        if name != "fence":
            self.requests["read"] += 1
            self.waits += 1
        return name, values

    def _read_many(self, wanted: Iterable[Any]) -> tuple[Any, ...]:
        some = list(wanted)
        self.requests["read"] += len(some)
        self.waits += -(-len(some) // CASSANDRA_IN_FLIGHT_MAX)
        return (some,)

    def _send(self, statement: Any) -> tuple[Any, ...]:
        self.requests["write"] += 1
        return (statement,)

    def _bound(self, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
        if name != "beat":
            self.rows[name] += len(values[-1]) if name == "put_lives" else 1
        return name, values

    def _wait(self, *values: Any) -> tuple[Any, ...]:
        self.waits += 1
        return values

    def _pages(self, range_id: int, number: int, pages: list[Any]) -> tuple[Any, ...]:
        self.waits += -(-len(pages) // _PAGES_AT_ONCE)
        return range_id, number, pages
