"""Bucket queues in a SQLite file: any number of processes, no host, beside the fair queues in it.

Guards: a write is one immediate transaction; its outcome is unknown only if the commit itself could not say.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import apsw

from fairway.bucket.statements import APPLIED, REFUSED, UNKNOWN, Outcome, Read, Statement
from fairway.errors import Closed, FairwayError, GroupUnknown
from fairway.limits import READER_CACHE_KIB, WAL_CHECKPOINT_PAGES
from fairway.store.sqlite.bucket_reading import READS
from fairway.store.sqlite.bucket_writing import UNSYNCED, WRITES, RefusedHere
from fairway.store.sqlite.connections import (
    Readers,
    closed_if_it_fails,
    connect,
    set_sync,
    transaction,
)
from fairway.store.sqlite.doubt import Doubting
from fairway.store.sqlite.opening import open_file
from fairway.store.sqlite.statements import steps
from fairway.store.sqlite.translate import translate


class SqliteBuckets(Doubting):
    """The bucket queues of one file."""

    def __init__(self, path: str, writer: apsw.Connection, vfs: str | None = None) -> None:
        super().__init__(path, vfs)
        self.path = path
        self._lock = threading.Lock()
        self._readers = Readers(path, vfs)
        self._sync = True
        self._closed = False
        self._wal_pages = 0
        self._adopt(writer)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, vfs: str | None = None) -> SqliteBuckets:
        """Open the file, or make it."""
        full, writer = open_file(path, vfs, steps())
        return cls(full, writer, vfs)

    def execute(self, statement: Statement) -> Any:
        if isinstance(statement, Read):
            with self._readers.borrow() as connection:
                # One snapshot for all queries of the statement.
                connection.execute("BEGIN")
                try:
                    return READS[type(statement)](connection, statement)
                finally:
                    connection.execute("ROLLBACK")
        with self._lock:
            return self._write(statement)

    def _write(self, statement: Statement) -> Outcome:
        try:
            with transaction(self._ready(not isinstance(statement, UNSYNCED))) as connection:
                WRITES[type(statement)](connection, statement)
        except RefusedHere:
            return REFUSED
        except GroupUnknown as error:
            self._let_go(error)
            return UNKNOWN
        except FairwayError as error:
            self._let_go(error)
            raise
        if self._wal_pages >= WAL_CHECKPOINT_PAGES:
            self._shorten_wal()
        return APPLIED

    # -- the writer's connection
    def _ready(self, sync: bool) -> apsw.Connection:
        if self._closed:
            raise Closed()
        try:
            if self._doubtful:
                self._drop_writer()
            if self._writer is None:
                self._adopt(connect(self._path, self._vfs, READER_CACHE_KIB))
            assert self._writer is not None
            if self._doubtful:
                self._believe_again(self._writer)
            if sync != self._sync:
                set_sync(self._writer, sync)
                self._sync = sync
        except apsw.Error as error:
            raise translate(error) from error
        return self._writer

    def _adopt(self, connection: apsw.Connection) -> None:
        with closed_if_it_fails(connection):
            connection.set_wal_hook(self._grown)
            set_sync(connection, True)
        self._sync, self._writer = True, connection

    def _grown(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _shorten_wal(self) -> None:
        """Nobody hosts this file, so everybody who writes keeps the log short."""
        assert self._writer is not None
        # By hand: SQLite's own checkpoint after a commit would not say that a sync has failed.
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            return  # another checkpoint is under way
        except apsw.Error:
            self._doubtful = True

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._readers.close()
            self._drop_writer()

    # -- fork
    def hold_still(self, seconds: float) -> bool:
        """Before a fork: no statement runs from here to `go_on`. False: it did not come to rest in time."""
        if not self._lock.acquire(timeout=seconds):
            return False
        if self._readers.hold_still(seconds):
            return True
        self._lock.release()
        return False

    def go_on(self) -> None:
        """In the parent, after the fork."""
        self._readers.go_on()
        self._lock.release()

    def leave_to_parent(self) -> None:
        """In the child, after the fork: the connections are the parent's; the next statement opens new ones."""
        for connection in (*self._readers.leave_to_parent(), self._writer):
            if connection is not None:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close(True)
        self._writer = None
        self._lock = threading.Lock()
        self._readers = Readers(self.path, self._vfs)
