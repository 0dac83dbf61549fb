"""A look at a file that nobody need have open: one moment of it, read and never written.

Guards: a look takes nothing over and changes no row, and all that it reads is of one and the same moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Final

import apsw

from fairway.errors import Closed, NoHost, NotFound
from fairway.limits import READER_CACHE_KIB
from fairway.store.sqlite.connections import Readers, connect, leave, rows
from fairway.store.sqlite.opening import inspect
from fairway.store.sqlite.reading import Reading, meta_of
from fairway.store.sqlite.statements import load, steps
from fairway.store.sqlite.translate import translate

_SQL: Final = load("read.sql")
_NAMES: Final = load("queues.sql")["names"]


class _Moment(Readers):
    """A reader that lends one connection, whose transaction holds the file's moment still."""

    def __init__(self, path: str) -> None:
        super().__init__(path, None)
        self._one: apsw.Connection | None = moment(path)
        self._using = RLock()

    @contextmanager
    def borrow(self) -> Iterator[apsw.Connection]:
        with self._using:
            if self._one is None:
                raise Closed()
            try:
                yield self._one
            except apsw.Error as error:
                raise translate(error) from error

    def close(self) -> None:
        with self._using:
            one, self._one = self._one, None
            if one is not None:
                leave(one)


class Look(Reading):
    """One moment of one queue of a file."""

    def __init__(self, path: str, name: str) -> None:
        moment_ = _Moment(path)
        try:
            with moment_.borrow() as connection:
                found = rows(connection, _SQL["meta"], (name,))
            if not found:
                raise NotFound(f"there is no queue {name!r} in {path}")
            self.meta = meta_of(*found[0])
        except BaseException:
            moment_.close()
            raise
        super().__init__(moment_, self.meta.queue_number)

    def close(self) -> None:
        """Let the moment go; idempotent."""
        self._readers.close()


def queue_names(path: str | os.PathLike[str]) -> list[str]:
    """The queues of a file, in the order they were made."""
    connection = moment(os.path.realpath(path))
    try:
        return [name for name, _ in sorted(rows(connection, _NAMES, ()), key=lambda row: row[1])]
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        leave(connection)


def moment(path: str) -> apsw.Connection:
    """A connection that reads a file of the present schema as it is now, until it is closed."""
    if not os.path.exists(path):
        raise NotFound(f"there is no file {path}")
    known = steps()
    inspect(path, None, len(known))
    try:
        connection = connect(path, None, READER_CACHE_KIB)
        try:
            connection.pragma("query_only", True)
            connection.execute("BEGIN")
            version = int(connection.pragma("user_version"))  # the first read: from here on nothing moves
        except BaseException:
            leave(connection)
            raise
    except apsw.Error as error:
        raise translate(error) from error
    if version < len(known):
        leave(connection)
        raise NoHost(f"{path} was made by an older Fairway, or is empty; open it once with host=True")
    return connection
