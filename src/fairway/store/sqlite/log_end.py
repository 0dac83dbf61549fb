"""Whether a log went on beyond the place where SQLite takes it to end.

Guards: a log that was damaged in its middle is not taken for a shorter one in silence. Each frame's checksum continues
that of the frame before it, so a commit that fits its neighbour was once part of the log, whatever stands before both.
After a power cut such commits are ones that nobody was told of, and so is one that a process had written when it was
killed, if others had the file open: they write over it, and its end stays. After anything else the disk lost them.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass
from typing import Any, Final

import apsw

_HEADER: Final = struct.Struct(">8I")  # magic, version, page size, sequence, two salts, two sums
_FRAME: Final = struct.Struct(">6I")  # page, pages after a commit or 0, two salts, two sums
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}  # and the byte order of the sums
_log: Final = logging.getLogger("fairway")

Sums = tuple[int, int]


@dataclass(frozen=True)
class _Log:
    """The log as it lies on the disk."""

    file: Any
    size: int
    order: str
    page_bytes: int
    salts: Sums
    sums: Sums

    @property
    def frames(self) -> int:
        return (self.size - _HEADER.size) // (_FRAME.size + self.page_bytes)

    def _place(self, frame: int) -> int:
        return _HEADER.size + frame * (_FRAME.size + self.page_bytes)

    def head(self, frame: int) -> tuple[int, ...]:
        return _FRAME.unpack(self.file.xRead(_FRAME.size, self._place(frame)))

    def fits(self, frame: int) -> bool:
        """Whether a frame continues the one before it."""
        before = self.head(frame - 1)[4:] if frame else self.sums
        whole = self.file.xRead(_FRAME.size + self.page_bytes, self._place(frame))
        head = _FRAME.unpack(whole[: _FRAME.size])
        return _sums(self.order, whole[:8] + whole[_FRAME.size :], (before[0], before[1])) == head[4:]


def warn_of_a_lost_end(connection: apsw.Connection, path: str, vfs: str | None) -> bool:
    """Whether there are commits behind the end of the log; the warning says what that means."""
    try:
        file = apsw.VFSFile(vfs or "", path + "-wal", [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_WAL, 0])
    except apsw.CantOpenError:
        return False  # no log
    try:
        lost = _lost(file, _frames_seen(connection))
    finally:
        file.xClose()
    if lost is not None:
        _log.warning(
            "%s: its log breaks off %s. If a process was killed while others had the file open, the machine lost"
            " power or the disk reported errors, nobody was told that these were stored; if not, the disk has damaged"
            " the log: check it, and compare with a backup.",
            path,
            lost,
        )
    return lost is not None


def begin_anew(connection: apsw.Connection) -> None:
    """Copy the log and empty it, so that what is behind its end is told once."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def bytes_seen(connection: apsw.Connection) -> int:
    """How much of its log a connection takes for the log; what lies behind is older, or not whole."""
    frames = _frames_seen(connection)
    return _HEADER.size + frames * (_FRAME.size + int(connection.pragma("page_size"))) if frames else 0


def _frames_seen(connection: apsw.Connection) -> int:
    connection.pragma("schema_version")  # a read, so that SQLite looks for the end
    return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]  # it tells how long the log is


def _lost(file: Any, seen: int) -> str | None:
    """What there is of the log behind its end, in words."""
    size = file.xFileSize()
    if size < _HEADER.size:
        return None
    header = file.xRead(_HEADER.size, 0)
    magic, _, page_bytes, _, *numbers = _HEADER.unpack(header)
    if not any(header):
        return None  # a log that was never begun
    order = _MAGIC.get(magic)
    if order is None or _sums(order, header[:24], (0, 0)) != tuple(numbers[2:]):
        return "at its first byte"
    log = _Log(file, size, order, page_bytes, (numbers[0], numbers[1]), (numbers[2], numbers[3]))
    commits, whole = 0, True
    for frame in range(seen, log.frames):
        _, commit, *salts = log.head(frame)[:4]
        fits = tuple(salts) == log.salts and log.fits(frame)
        if whole and fits and commit:
            return None  # another process goes on with it now
        whole = whole and fits
        commits += bool(fits and commit)
    return f"before {commits} of its commits" if commits else None


def _sums(order: str, words: bytes, start: Sums) -> Sums:
    """SQLite's checksum of a log."""
    one, two = start
    for first, second in struct.iter_unpack(f"{order}2I", words):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
