"""The door of a queue: a lock file that says who hosts it, and lets one process at a time change that.

Guards: locks die with their process, however that ends, and a forked child has none of them. They decide when
somebody tries to own the queue; who may write is decided by the store's fence alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from fairway.errors import BadArgument, FairwayError, HostStuck, QueueHeld, ReadOnly, StoreFailed, StoreFull
from fairway.limits import DOOR_SECONDS

_DOOR_BYTE = 0
_HOST_BYTE = 1000  # plus the generation
_RECORD_BYTES = 1024  # a file name and three numbers
_POLL_SECONDS = 0.01
_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of Linux


class Record(msgspec.Struct, array_like=True, frozen=True):
    """Who hosts, as the lock file says; whether it still does is told by its byte."""

    generation: int
    pid: int
    socket: str  # a name in the folder of the lock file
    version: int  # of the protocol it speaks


class Door:
    """One descriptor of one lock file: closing a second one would drop the locks of the first.

    The file stays when everybody has left: removing it would race with those who come.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._mine: set[int] = set()  # generations that this process holds
        self._entering = threading.Lock()
        self._fd = _open(path)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Alone in the door, among all processes; nothing slow may be done there."""
        with self._entering:
            until = time.monotonic() + DOOR_SECONDS
            while not self._lock(_DOOR_BYTE):
                if time.monotonic() > until:
                    raise _held(self._holder())
                time.sleep(_POLL_SECONDS)
            try:
                yield
            finally:
                self._unlock(_DOOR_BYTE)

    # -- inside the door

    def read(self) -> Record | None:
        """Who hosts or was the last to; None: nobody yet."""
        body = os.pread(self._fd, _RECORD_BYTES, 0)
        try:
            return msgspec.msgpack.decode(body[2 : 2 + int.from_bytes(body[:2], "little")], type=Record)
        except msgspec.DecodeError:
            return None  # empty, or of a Fairway that wrote other files

    def write(self, record: Record) -> None:
        body = msgspec.msgpack.encode(record)
        try:
            os.pwrite(self._fd, len(body).to_bytes(2, "little") + body, 0)
        except OSError as error:
            raise _translated(self.path, error) from error

    def held(self, generation: int) -> bool:
        """Whether another process hosts this generation, or believes it does."""
        if generation in self._mine:
            return False
        if not self._lock(_HOST_BYTE + generation):
            return True
        self._unlock(_HOST_BYTE + generation)
        return False

    def hold(self, generation: int) -> bool:
        """Host this generation, until `free` or the end of this process; False: another has it."""
        if not self._lock(_HOST_BYTE + generation):
            return False
        self._mine.add(generation)
        return True

    # -- anywhere

    def free(self, generation: int) -> None:
        """No longer host it; idempotent."""
        if generation in self._mine:
            self._mine.discard(generation)
            self._unlock(_HOST_BYTE + generation)

    def close(self) -> None:
        """Let go of all of it; idempotent."""
        fd, self._fd = self._fd, -1
        self._mine.clear()
        if fd >= 0:
            os.close(fd)

    def forked(self) -> None:
        """In a forked child: the locks are the parent's, so are those who held `_entering`."""
        self._entering = threading.Lock()
        self.close()
        with suppress(FairwayError):  # then the next to enter hears of it
            self._fd = _open(self.path)

    def _lock(self, byte: int) -> bool:
        try:
            # A POSIX lock belongs to the process; one by flock would live on in a forked child.
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise _translated(self.path, error) from error
        return True

    def _unlock(self, byte: int) -> None:
        if self._fd >= 0:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, byte)

    def _holder(self) -> int:
        """The process that stands in the door; 0 if that cannot be told."""
        if not sys.platform.startswith("linux"):
            return 0
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _DOOR_BYTE, 1, 0)
        told = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_GETLK, asked))
        return told[4] if told[0] != fcntl.F_UNLCK else 0


def _held(pid: int) -> FairwayError:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            stopped = file.read().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        stopped = False
    if stopped:
        return HostStuck(f"process {pid} is stopped while it opens this queue; continue or end it", pid=pid)
    return QueueHeld(
        f"process {pid or 'unknown'} holds this queue and cannot share it; close it there", pid=pid
    )


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _translated(path, error) from error


def _translated(path: str, error: OSError) -> FairwayError:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(f"the lock file {path} cannot be written; mend the permissions of its folder")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return BadArgument(f"url: the folder of {path} does not exist; make it first", argument="url")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull()
    return StoreFailed(f"the lock file {path} cannot be used: {error.strerror}")
