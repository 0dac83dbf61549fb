"""A lock file: one process at a time has a queue open.

Guards: the lock dies with its process, however that ends, and is not inherited by its children.
"""

from __future__ import annotations

import errno
import fcntl
import os

from fairway.errors import BadArgument, QueueHeld, ReadOnly, StoreFailed, StoreFull


class LockFile:
    """A held lock on `path`. The file stays when the lock is let go: removing it would race with others."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = _open(path)
        try:
            # A POSIX lock belongs to the process; one by flock would live on in a forked child.
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip()
            os.close(self._fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise QueueHeld(
                    f"process {holder or 'unknown'} has this queue open; close it there, or share it from there",
                    pid=holder,
                ) from None
            raise _translated(path, error) from error

    def release(self) -> None:
        """Let go; idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _translated(path, error) from error


def _translated(path: str, error: OSError) -> Exception:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(f"the lock file {path} cannot be written; mend the permissions of its folder")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return BadArgument(f"url: the folder of {path} does not exist; make it first", argument="url")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull()
    return StoreFailed(f"the lock file {path} cannot be used: {error.strerror}")
