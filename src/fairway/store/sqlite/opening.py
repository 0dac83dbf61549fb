"""Opening a file: whose it is, making a new one, bringing an old one to the present schema.

Guards: a file that is not Fairway's, or is newer than this Fairway, is never written to.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import apsw

from fairway.errors import (
    BadArgument,
    FairwayError,
    NotFairway,
    ReadOnly,
    SchemaNewer,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
)
from fairway.limits import BUSY_MILLISECONDS_MAX, CHECKED_FILE_BYTES_MAX, WRITER_CACHE_KIB
from fairway.store.sqlite.connections import close_quietly, connect, set_sync, transaction
from fairway.store.sqlite.doubt import write_log_again
from fairway.store.sqlite.log_end import begin_anew, warn_of_a_lost_end
from fairway.store.sqlite.translate import translate

APPLICATION_ID: Final = 0x46574159  # "FWAY"
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
# Before this SQLite a checkpoint beside a writer could, very rarely, corrupt the file (its "WAL-reset bug").
_SQLITE_MIN: Final = (3, 51, 3)
_REST_SECONDS: Final = 0.005

Path = str | os.PathLike[str]

_creating = threading.Lock()


def open_file(path: Path, vfs: str | None, steps: Sequence[str]) -> tuple[str, apsw.Connection]:
    """The absolute path of a file of the present schema, made if there was none, and a writing connection."""
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < _SQLITE_MIN:
        raise StoreFailed(f"SQLite {apsw.sqlite_lib_version()} is too old; install apsw 3.51.3 or newer.")
    full = _checked_path(path)
    _make_if_missing(full)
    inspect(full, vfs, len(steps))
    try:
        connection = connect(full, vfs, WRITER_CACHE_KIB)
    except apsw.Error as error:
        raise _cannot_open(full, error) from error
    try:
        broken_off = warn_of_a_lost_end(connection, full, vfs)
        _prepare(full, connection, steps)
        if broken_off:
            with suppress(apsw.BusyError):  # others who use it put that off
                write_log_again(connection, full, vfs)
                begin_anew(connection)
    except apsw.Error as error:
        close_quietly(connection)
        raise _cannot_open(full, error) from error
    except BaseException:
        close_quietly(connection)
        raise
    return full, connection


def _prepare(path: str, connection: apsw.Connection, steps: Sequence[str]) -> None:
    if connection.readonly("main"):
        raise ReadOnly(f"{path} cannot be written; mend its permissions.")
    set_sync(connection, True)
    if os.path.getsize(path) <= CHECKED_FILE_BYTES_MAX:
        check(path, connection)
    migrate(connection, steps)
    if share_log(connection) != "wal":
        raise StoreFailed(f"The file system of {path} cannot share SQLite's log; use a local one.")


def check(path: str, connection: apsw.Connection) -> None:
    """See to it that SQLite finds the file sound."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise StoreCorrupt(f"{path} is damaged ({found[0]}); restore a backup, and check the disk.")


def share_log(connection: apsw.Connection) -> str:
    """Turn the write-ahead log on; gives the mode the file is in."""
    until = time.monotonic() + BUSY_MILLISECONDS_MAX / 1000
    while True:
        try:
            return str(connection.pragma("journal_mode", "wal"))
        except apsw.BusyError:
            # SQLite does not wait by itself here: two who change the mode at once would wait for each other.
            if time.monotonic() > until:
                raise
            time.sleep(_REST_SECONDS)


def migrate(connection: apsw.Connection, steps: Sequence[str]) -> None:
    """Apply what is missing of the steps, each whole or not at all."""
    while (version := _version(connection)) < len(steps):
        with transaction(connection):
            # Read again under the lock: another process may have taken this step meanwhile.
            if _version(connection) == version:
                if version == 0 and int(connection.pragma("schema_version")):
                    raise NotFairway  # another program made it its own since it was inspected
                connection.execute(steps[version])
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version + 1)
    if version > len(steps):
        raise SchemaNewer()


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def _checked_path(path: Path) -> str:
    text = os.fspath(path)
    if text == ":memory:" or not text or "\x00" in text:
        raise BadArgument(f"path: {text!r} is not a file; fairway.store.memory keeps a queue in memory.")
    full = os.path.realpath(text)
    folder = os.path.dirname(full)
    if not os.path.isdir(folder):
        raise BadArgument(f"path: the folder {folder} does not exist; make it first.")
    try:
        mode = os.stat(full).st_mode
    except FileNotFoundError:
        return full
    except OSError as error:
        raise BadArgument(f"path: {full}: {error.strerror}.") from error
    if not stat.S_ISREG(mode):
        raise BadArgument(f"path: {full} is not a regular file.")
    return full


def _make_if_missing(path: str) -> None:
    """An empty file that only its owner may read; SQLite gives its companions the same mode."""
    # Closing a file drops every lock this process has on it, so nobody may open it with SQLite in between.
    with _creating:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        except PermissionError as error:
            raise ReadOnly(f"{path} cannot be made; mend the permissions of its folder.") from error
        except OSError as error:
            raise _cannot_make(path, error) from error


def inspect(path: str, vfs: str | None, version_max: int) -> None:
    """Look at the header without opening a database: that alone could write beside another program's file."""
    # Read through SQLite's own file layer: a plain close would drop the locks of other connections here.
    size = os.stat(path).st_size
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
    try:
        file = apsw.VFSFile(vfs or "", path, [flags, 0])
        try:
            header = file.xRead(_HEADER_BYTES, 0) if size >= _HEADER_BYTES else b""
        finally:
            file.xClose()
    except apsw.CantOpenError as error:
        if os.access(path, os.R_OK):
            raise translate(error) from error
        raise ReadOnly(f"{path} cannot be read; mend its permissions.") from error
    except apsw.Error as error:
        raise translate(error) from error
    if size == 0 or _cut_off_at_birth(path, header):
        return
    if not header.startswith(_MAGIC) or int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise NotFairway(f"{path} is not a Fairway queue; nothing was written to it. Give another path.")
    if int.from_bytes(header[60:64]) > version_max:
        raise SchemaNewer()
    if not os.access(path, os.W_OK):
        # Asked before SQLite would open it for reading and leave a log beside it.
        raise ReadOnly(f"{path} cannot be written; mend its permissions.")


def _cut_off_at_birth(path: str, header: bytes) -> bool:
    """Whether the first transaction of a file never ended: SQLite will roll it back, and then the file is empty."""
    if header.startswith(_MAGIC) and int.from_bytes(header[68:72]) == APPLICATION_ID:
        return False
    try:
        with open(path + "-journal", "rb") as journal:
            begun = journal.read(20)
    except OSError:
        return False
    return begun.startswith(_JOURNAL_MAGIC) and begun[16:20] == bytes(4)  # pages before the transaction


def _cannot_open(path: str, error: apsw.Error) -> FairwayError:
    """An open that failed: SQLite says the same of a folder it may not write and of a missing file."""
    if isinstance(error, apsw.CantOpenError) and not os.access(os.path.dirname(path), os.W_OK):
        return ReadOnly(f"The folder of {path} cannot be written; mend its permissions.")
    return translate(error)


def _cannot_make(path: str, error: OSError) -> FairwayError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull()
    if error.errno == errno.EROFS:
        return ReadOnly(f"{path} cannot be made: its file system is read-only.")
    return BadArgument(f"path: {path}: {error.strerror}.")
