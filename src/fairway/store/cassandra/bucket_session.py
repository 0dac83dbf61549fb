"""The statements of bucket queues, prepared on a driver session.

Guards: what decides is read at serial consistency, and nothing is taken for refused or applied that may be otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cassandra import InvalidRequest, Unauthorized
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement, BatchType, PreparedStatement, Statement

from fairway.bucket.statements import APPLIED, REFUSED, UNKNOWN, Outcome
from fairway.store.cassandra.connection import Connection, Row, Wanted, serial_of, statements
from fairway.store.cassandra.translate import translate

_DECIDED: Final = (
    "read_name",
    "read_queue",
    "read_state",
    "read_bucket",
    "read_rows",
    "read_repairer",
)
_WRONG: Final = (InvalidRequest, SyntaxException, Unauthorized)


class Unanswered(Exception):
    """A read that failed; it tells nothing."""


class BucketSession:
    """A connection with the statements of bucket queues; it counts its conditional writes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._texts = statements("buckets.cql")
        self._prepared: dict[str, PreparedStatement] = {}
        self._serial = serial_of(connection.address)
        self.conditional_writes = 0

    def read(self, name: str, values: Sequence[Any]) -> list[Row]:
        """All rows of one statement. Raises Unanswered."""
        try:
            return list(self._connection.session.execute(self._ready(name), values))
        except _WRONG as error:
            raise translate(error) from error
        except Exception as error:
            raise Unanswered from error

    def conditional(self, *parts: Wanted) -> Outcome:
        """One conditional write, of several statements of one partition if need be."""
        self.conditional_writes += 1
        try:
            statement = self._together(parts)
            answer = self._connection.session.execute(statement).one()
        except _WRONG as error:
            raise translate(error) from error
        except Exception:
            # Whatever may have reached a coordinator is unknown; and what did not may be called so.
            return UNKNOWN
        return APPLIED if answer[0] else REFUSED

    def plain(self, *parts: Wanted) -> Outcome:
        """Writes that do no harm when they are carried out twice."""
        try:
            for name, values in parts:
                self._connection.session.execute(self._ready(name), values)
        except _WRONG as error:
            raise translate(error) from error
        except Exception:
            return UNKNOWN
        return APPLIED

    def _together(self, parts: Sequence[Wanted]) -> Statement:
        if len(parts) == 1:
            return self._ready(parts[0][0]).bind(parts[0][1])
        batch = BatchStatement(BatchType.UNLOGGED, serial_consistency_level=self._serial)
        for name, values in parts:
            batch.add(self._ready(name).bind(values))
        return batch

    def _ready(self, name: str) -> PreparedStatement:
        known = self._prepared.get(name)
        if known is None:
            keyspace = self._connection.address.keyspace
            statement: Any = self._connection.session.prepare(self._texts[name], keyspace=keyspace)
            if name in _DECIDED:
                statement.consistency_level = self._serial
            statement.serial_consistency_level = self._serial
            known = self._prepared[name] = statement
        return known

    def close(self) -> None:
        self._connection.close()
