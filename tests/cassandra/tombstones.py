"""What the nodes say of tombstones: every read of a connection is traced.

Guards: a read whose trace says nothing of tombstones is an error here, not a zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cassandra.query import TraceUnavailable

from fairway.runtime.clock import Clock
from fairway.runtime.loading import load
from fairway.store.cassandra import Address, CassandraStore, Connection

_WAIT_SECONDS = 10.0  # a trace is written behind the read
_TRIES = 10


class Traced:
    """Stands in the place of a connection's session."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._reads: list[tuple[str, Any, Callable[[], Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute(self, query: Any, values: Any = None, **given: Any) -> Any:
        return self.execute_async(query, values, **given).result()

    def execute_async(self, query: Any, values: Any = None, **given: Any) -> Any:
        text = getattr(query, "query_string", "")
        if not text.startswith("SELECT"):
            return self._session.execute_async(query, values, **given)

        def ask() -> Any:
            return self._session.execute_async(query, values, trace=True, **given)

        future = ask()
        self._reads.append((text, future, ask))
        return future

    def met(self) -> dict[str, int]:
        """The tombstones that each kind of read met since the last time, by its text."""
        found: dict[str, int] = {}
        for text, future, ask in self._reads:
            found[text] = found.get(text, 0) + _met(future, ask)
        self._reads.clear()
        return found


def _met(future: Any, ask: Callable[[], Any]) -> int:
    """What a node says in the trace of a read. A busy node loses traces: then it is read again."""
    for _ in range(_TRIES):
        future.result()
        try:
            traces = future.get_all_query_traces(max_wait_per=_WAIT_SECONDS)
        except TraceUnavailable:
            traces = []
        told = [
            re.findall(r"and (\d+) tombstone", " ".join(event.description for event in trace.events))
            for trace in traces
        ]
        if told and all(told):
            return sum(int(many) for one in told for many in one)
        future = ask()
    raise AssertionError([event.description for trace in traces for event in trace.events])


def meets(connection: Connection, read: Callable[[], object]) -> dict[str, int]:
    """The tombstones that reads through a connection meet, by the text of the read."""
    real: Any = connection.session
    traced = Traced(real)
    connection.session = traced  # type: ignore[assignment]
    try:
        read()
    finally:
        connection.session = real
    return traced.met()


def reload_meets(url: str, queue: str = "default") -> dict[str, int]:
    """The tombstones that a new owner's load meets, if it did not cover what was left before it reads."""
    connection = Connection.open(Address.parse(url))
    try:
        store = CassandraStore.open(connection, queue)
        store._tables.clear_front = lambda number: None  # type: ignore[method-assign]
        found = meets(connection, lambda: load(queue, store, Clock()))
        store._fence = None  # so that it covers nothing at its end either
        store.close()
        return found
    finally:
        connection.close()
