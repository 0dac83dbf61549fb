"""What is done about a log whose sync failed.

Guards: nothing is acknowledged behind a part of the log that may not be on the disk. After a failed sync the kernel
takes what it could not write for written: reads show it, later syncs succeed, and only a power cut tells.
So the log is written again, byte for byte, through a handle of its own. At whatever point that is interrupted, each
byte of the log is as it was.
"""

from __future__ import annotations

from typing import Final

import apsw

from fairway.errors import FairwayError
from fairway.store.sqlite.connections import close_as_it_is, close_quietly, roll_back
from fairway.store.sqlite.translate import breaks_connection

_PIECE_BYTES: Final = 64 * 1024  # SQLite's file layer takes less than 128 KiB at a time


class Doubting:
    """What writes to a file through one connection, and what it does when the file has failed it."""

    def __init__(self, path: str, vfs: str | None) -> None:
        self._path, self._vfs = path, vfs
        self._writer: apsw.Connection | None = None
        self._doubtful = False  # a call to the file failed: what is seen of its log may not be on the disk

    def _let_go(self, error: FairwayError) -> None:
        if isinstance(error.__cause__, apsw.Error) and breaks_connection(error.__cause__):
            self._doubtful = True
            self._drop_writer()

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and self._doubtful:
            close_as_it_is(writer)
        elif writer is not None:
            close_quietly(writer)

    def _believe_again(self, writer: apsw.Connection) -> None:
        self._doubtful = False  # first: another thread may doubt it meanwhile
        try:
            write_log_again(writer, self._path, self._vfs)
        except BaseException:
            self._doubtful = True
            raise


def write_log_again(connection: apsw.Connection, path: str, vfs: str | None) -> None:
    """Put all of the log on the disk. The connection is a new one, with no transaction."""
    connection.execute("BEGIN IMMEDIATE")  # nobody appends to the log, or begins it anew, meanwhile
    try:
        _write_again(path + "-wal", vfs)
    finally:
        roll_back(connection)


def _write_again(log: str, vfs: str | None) -> None:
    file = apsw.VFSFile(vfs or "", log, [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL, 0])
    try:
        size = file.xFileSize()
        for start in range(0, size, _PIECE_BYTES):
            file.xWrite(file.xRead(min(_PIECE_BYTES, size - start), start), start)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
