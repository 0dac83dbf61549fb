"""Bucket queues in a SQLite file: any number of processes, no host, beside the fair queues in it.

Guards: a write is one immediate transaction; its outcome is unknown only if the commit itself could not say.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import apsw

from fairway.bucket.statements import APPLIED, REFUSED, UNKNOWN, Outcome, Read, Statement
from fairway.errors import FairwayError, GroupUnknown, StoreCorrupt
from fairway.limits import READER_CACHE_KIB, WAL_CHECKPOINT_PAGES
from fairway.store.sqlite.bucket_reading import READS
from fairway.store.sqlite.bucket_writing import UNSYNCED, WRITES, RefusedHere
from fairway.store.sqlite.connections import (
    Readers,
    transaction,
)
from fairway.store.sqlite.doubt import Doubting
from fairway.store.sqlite.opening import open_file
from fairway.store.sqlite.statements import steps


class SqliteBuckets(Doubting):
    """The bucket queues of one file."""

    def __init__(self, path: str, writer: apsw.Connection, vfs: str | None = None) -> None:
        super().__init__(path, vfs, READER_CACHE_KIB)
        self.path = path
        self._lock = threading.Lock()
        self._readers = Readers(path, vfs)
        self._wal_pages = 0
        self._adopt(writer)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, vfs: str | None = None) -> SqliteBuckets:
        """Open the file, or make it."""
        full, writer = open_file(path, vfs, steps())
        return cls(full, writer, vfs)

    def execute(self, statement: Statement) -> Any:
        try:
            if isinstance(statement, Read):
                return self._read(statement)
            with self._lock:
                return self._write(statement)
        except UnicodeDecodeError as error:
            raise StoreCorrupt("The file is damaged (a text is none); restore a backup.") from error

    def _read(self, statement: Read) -> Any:
        self._see_to_the_log()
        with self._readers.borrow() as connection:
            # One snapshot for all queries of the statement.
            connection.execute("BEGIN")
            try:
                return READS[type(statement)](connection, statement)
            finally:
                if connection.in_transaction:  # SQLite may have ended it where the disk failed
                    connection.execute("ROLLBACK")

    def _see_to_the_log(self) -> None:
        """After a fault, what a read shows may not be on the disk, and somebody answers by what he read."""
        if self._writer is None:
            with self._lock:
                self._ready(sync=True)

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
    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_wal_hook(self._grown)

    def _before_belief(self) -> None:
        """Nothing else works on the log here."""

    def _grown(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _shorten_wal(self) -> None:
        """Nobody hosts this file, so everybody who writes keeps the log short."""
        assert self._writer is not None
        if not self._copies:
            return
        # By hand: SQLite's own checkpoint after a commit would not say that a sync has failed.
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            return  # another checkpoint is under way
        except apsw.Error as error:
            self._not_copied(error)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._readers.close()
            self._leave()

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
                connection.close(True)
        self._writer = None
        self._lock = threading.Lock()
        self._readers = Readers(self.path, self._vfs)
