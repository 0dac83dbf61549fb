"""Connections to one file: their settings, transactions on the writer's, a pool for readers.

Guards: a transaction ends committed or rolled back, and a reader never waits for the writer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import apsw

from fairway.errors import Closed
from fairway.limits import BUSY_MILLISECONDS_MAX, IDLE_READERS_MAX, READER_CACHE_KIB
from fairway.store.sqlite.seals import teach
from fairway.store.sqlite.translate import translate, translate_commit

_REST_SECONDS = 0.001  # a read takes less


def connect(path: str, vfs: str | None, cache_kib: int) -> apsw.Connection:
    """A connection that may write; the file exists already. It never copies the log by itself."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    with closed_if_it_fails(connection):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Else every query from a place on is planned anew with each place, which takes longer than to run it.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_timeout(BUSY_MILLISECONDS_MAX)
        connection.pragma("cache_size", -cache_kib)
        connection.wal_autocheckpoint(0)
        teach(connection)
    return connection


@contextmanager
def closed_if_it_fails(connection: apsw.Connection) -> Iterator[None]:
    """Prepare a new connection: one that nobody gets is not left to the collector."""
    try:
        yield
    except BaseException:
        close_quietly(connection)
        raise


def set_sync(connection: apsw.Connection, sync: bool) -> None:
    """Whether the next commits wait for the disk. A synced one makes all earlier ones durable too."""
    connection.pragma("synchronous", "FULL" if sync else "NORMAL")


def rows(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> list[Any]:
    """All rows of a query, read to the end so that no snapshot stays open."""
    return connection.execute(sql, values).fetchall()


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """All of the block is stored, or nothing; SQLite's errors come out as Fairway's."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
    except BaseException as error:
        roll_back(connection)
        if isinstance(error, apsw.Error):
            raise translate(error) from error
        raise
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        roll_back(connection)
        raise translate_commit(error) from error


def roll_back(connection: apsw.Connection) -> None:
    """End an open transaction, if SQLite has not done so by itself."""
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except apsw.Error:
            # The connection is useless now; closing it lets go of the lock, and the next use opens a new one.
            close_quietly(connection)


def close_quietly(connection: apsw.Connection) -> None:
    """Close a connection whose file may have failed; its log stays as it is."""
    with suppress(apsw.Error):
        connection.close(True)


def fold(connection: apsw.Connection) -> None:
    """Copy the log and close; who leaves last removes the log. Only for one who has seen that it is on the disk."""
    with suppress(apsw.Error):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    close_quietly(connection)


def leave(connection: apsw.Connection) -> None:
    """Close a connection that only read; who leaves last removes a log of which nothing is left to copy."""
    roll_back(connection)
    with suppress(apsw.Error):
        log, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        if log == copied:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    close_quietly(connection)


class Readers:
    """Reading connections, one per reader at a time, opened when needed."""

    def __init__(self, path: str, vfs: str | None) -> None:
        self._path, self._vfs = path, vfs
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._lent = 0
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[apsw.Connection]:
        """A connection for one read; it goes back, or away if the read failed."""
        with self._lock:
            if self._closed:
                raise Closed()
            connection = self._idle.pop() if self._idle else None
            self._lent += 1
        healthy = False
        try:
            connection = connection or self._open()
            yield connection
            healthy = True
        except GeneratorExit:
            healthy = True
            raise
        except apsw.Error as error:
            raise translate(error) from error
        finally:
            self._give_back(connection, healthy)

    def _open(self) -> apsw.Connection:
        connection = connect(self._path, self._vfs, READER_CACHE_KIB)
        with closed_if_it_fails(connection):
            connection.pragma("query_only", True)
        return connection

    def _give_back(self, connection: apsw.Connection | None, healthy: bool) -> None:
        with self._lock:
            self._lent -= 1
            if connection is None:
                return
            if healthy and not self._closed and len(self._idle) < IDLE_READERS_MAX:
                self._idle.append(connection)
                return
        leave(connection) if healthy else close_quietly(connection)

    def close(self) -> None:
        """Close what is idle; what is borrowed is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            leave(connection)

    def hold_still(self, seconds: float) -> bool:
        """Wait until nobody reads, and let nobody begin before `go_on`; False if that took too long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._lock.acquire()
            if not self._lent:
                return True
            self._lock.release()
            time.sleep(_REST_SECONDS)
        return False

    def go_on(self) -> None:
        self._lock.release()

    def leave_to_parent(self) -> list[apsw.Connection]:
        """In a forked child: no more reads; gives the connections that must be closed."""
        self._closed = True
        idle, self._idle = self._idle, []
        return idle
