"""Whether what is seen of the log is on the disk, and what is done about it.

Guards: nothing is acknowledged behind a part of the log that may not be on the disk, nor is such a part copied into the
file. After a failed sync the kernel takes what it could not write for written: reads show it, later syncs succeed, and
only a power cut tells. It tells this once, to the handles that are open; who opens the file later is not told.
So before a new connection is used, and after every fault, the log is written again, byte for byte, through a handle of
its own. At whatever point that is interrupted, each byte of the log is as it was.
And a file whose own sync failed is not written again: of what was copied before, SQLite will not copy any part twice
while somebody has the file open. Its log is kept, and copied from its beginning by who opens it next.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Final

import apsw

from fairway.errors import Closed, FairwayError
from fairway.store.sqlite.connections import (
    close_quietly,
    closed_if_it_fails,
    connect,
    fold,
    leave,
    roll_back,
    set_sync,
)
from fairway.store.sqlite.log_end import bytes_seen
from fairway.store.sqlite.translate import breaks_connection, translate

_log: Final = logging.getLogger("fairway")
_PIECE_BYTES: Final = 64 * 1024  # SQLite's file layer takes less than 128 KiB at a time


class Doubting(ABC):
    """What writes to a file through one connection, and believes in the file's log or not."""

    def __init__(self, path: str, vfs: str | None, cache_kib: int) -> None:
        self._path, self._vfs, self._cache_kib = path, vfs, cache_kib
        self._writer: apsw.Connection | None = None
        self._sync = True
        self._closed = False
        self._failed = False  # a call to the file failed: the connection is not used again
        self._copies = True  # no checkpoint has failed to sync
        # By identity: a thread beside the writer's may doubt while the log is written again.
        self._last_doubt: object = object()
        self._dispelled: object = None

    @property
    def _doubtful(self) -> bool:
        return self._dispelled is not self._last_doubt

    def _doubt(self) -> None:
        """A call to the file failed, whoever made it."""
        self._last_doubt = object()
        self._failed = True

    def _not_copied(self, error: apsw.Error) -> None:
        """A checkpoint failed; the group before it is stored, and the next one finds out whether the disk is well."""
        self._doubt()
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_FSYNC and self._copies:
            self._copies = False
            _log.warning(
                "%s: a sync failed while its log was copied, so the log is kept and grows. Check the disk; then end"
                " every process that has the file open, and open it again: the log is copied then.",
                self._path,
            )

    def _let_go(self, error: FairwayError) -> None:
        if isinstance(error.__cause__, apsw.Error) and breaks_connection(error.__cause__):
            self._doubt()
            self._drop_writer()

    # -- the writer's connection
    @abstractmethod
    def _prepare(self, connection: apsw.Connection) -> None:
        """What a new connection is told before its first use."""

    @abstractmethod
    def _before_belief(self) -> None:
        """Open what else works on the log, so that it is told of failures from now on."""

    def _connected(self) -> apsw.Connection:
        """The connection, a new one if the last was let go; the log may be doubtful."""
        if self._closed:
            raise Closed()
        try:
            if self._failed:
                self._drop_writer()
            return self._writer or self._adopt(connect(self._path, self._vfs, self._cache_kib))
        except apsw.Error as error:
            raise translate(error) from error

    def _ready(self, sync: bool) -> apsw.Connection:
        """The connection, with a log to go on with; its transactions end with a sync, or without."""
        writer = self._connected()
        try:
            if self._doubtful:
                self._dispel(writer)
            if sync != self._sync:
                set_sync(writer, sync)
                self._sync = sync
        except apsw.Error as error:
            raise translate(error) from error
        return writer

    def _adopt(self, connection: apsw.Connection) -> apsw.Connection:
        try:
            with closed_if_it_fails(connection):
                self._prepare(connection)
                set_sync(connection, True)
        except apsw.Error as error:
            raise translate(error) from error
        self._sync, self._writer, self._failed = True, connection, False
        self._last_doubt = object()  # nobody told it what happened before
        return connection

    def _dispel(self, writer: apsw.Connection) -> None:
        doubt = self._last_doubt
        try:
            self._before_belief()
            write_log_again(writer, self._path, self._vfs)
        except BaseException:
            self._failed = True
            raise
        self._dispelled = doubt

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        self._last_doubt = object()
        if writer is not None:
            close_quietly(writer)

    def _leave(self) -> None:
        """Close the connection, with the log copied if it is believed in: somebody may stay who must not copy it."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if self._failed:
            close_quietly(writer)
        elif self._doubtful or not self._copies:
            leave(writer)
        else:
            fold(writer)


def write_log_again(connection: apsw.Connection, path: str, vfs: str | None) -> None:
    """Put all of the log on the disk. The connection has no transaction."""
    if str(connection.pragma("journal_mode")) != "wal":
        return  # a backup that nobody has opened yet
    # What others add from here on they sync themselves, and if that fails this connection is told.
    size = bytes_seen(connection)
    connection.execute("BEGIN IMMEDIATE")  # nobody appends to the log, or begins it anew, meanwhile
    try:
        if size:
            _write_again(path + "-wal", vfs, size)
    finally:
        roll_back(connection)


def _write_again(log: str, vfs: str | None, size: int) -> None:
    file = apsw.VFSFile(vfs or "", log, [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL, 0])
    try:
        size = min(size, file.xFileSize())
        for start in range(0, size, _PIECE_BYTES):
            file.xWrite(file.xRead(min(_PIECE_BYTES, size - start), start), start)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
