"""Where rings lie: a name in shared memory, or a path in any file system.

Guards: a ring appears whole or not at all, all of its memory is there, only its user may open it, and no link leads
anywhere else.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from fairway.errors import BadArgument, NotFound, NotRing, ReadOnly, StoreFull
from fairway.limits import RING_BYTES_MAX, RING_BYTES_MIN

SHARED_MEMORY = "/dev/shm"
_PAGE = 4096
_SLOT_BYTES = 256 * 64
_IN_MEMORY = {"tmpfs", "ramfs"}


def full_path(path: str | os.PathLike[str]) -> str:
    """The path of a ring; a name without a slash lies in shared memory."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\x00" in text:
        raise BadArgument(f"path: give a name or a path, not {path!r}", argument="path")
    return text if "/" in text else os.path.join(SHARED_MEMORY, text)


def size_of(size: object) -> int:
    """A ring's size, checked."""
    if type(size) is not int or not RING_BYTES_MIN <= size <= RING_BYTES_MAX or size & (size - 1):
        raise BadArgument(
            f"size: give a power of two from {RING_BYTES_MIN} to {RING_BYTES_MAX} bytes, not {size!r}",
            argument="size",
        )
    return size


def file_bytes(size: int) -> int:
    """How long the file of a ring of this size is."""
    index_end = _PAGE + _SLOT_BYTES + size // 64 * 8
    return (index_end + _PAGE - 1) // _PAGE * _PAGE + size


def fill(fd: int, size: int) -> None:
    """Give a new file all its memory now: a hole that cannot be filled later would be a SIGBUS."""
    try:
        os.posix_fallocate(fd, 0, file_bytes(size))
    except OSError as error:
        raise _told(error, "the ring") from error


def open_new(path: str, size: int) -> tuple[int, str]:
    """A file without its name yet, and how to reach it; `appear` gives it the name."""
    folder = os.path.dirname(path) or "."
    flags, temporary = os.O_RDWR | os.O_CLOEXEC, ""
    try:
        try:
            fd = os.open(folder, os.O_TMPFILE | flags, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
            temporary = f"{path}.{os.getpid()}.new"
            fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | flags, 0o600)
    except FileNotFoundError as error:
        raise NotFound(f"there is no folder {folder} for the ring; make it first") from error
    except OSError as error:
        raise _told(error, folder) from error
    try:
        fill(fd, size)
    except BaseException:
        close_new(fd, temporary)
        raise
    return fd, temporary


def close_new(fd: int, temporary: str) -> None:
    """Let go of a new file; without a name it is gone."""
    os.close(fd)
    if temporary:
        os.unlink(temporary)


def appear(fd: int, temporary: str, path: str) -> None:
    """Give a finished ring its name. Raises BadArgument if the name is taken."""
    try:
        # With a folder's descriptor, though the path needs none: only then does Python follow the link.
        os.link(temporary or f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
    except FileExistsError as error:
        raise BadArgument(
            f"path: {path} is there already; attach to it, or remove it", argument="path"
        ) from error
    except OSError as error:
        raise _told(error, path) from error


def open_old(path: str) -> int:
    """A ring that is there; whether it is a ring is seen later."""
    try:
        # A FIFO of that name must not block, and a link not lead to another's file.
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _told(error, path) from error


def in_memory(path: str) -> bool:
    """Whether a power cut takes all of it, so that nothing can be half written."""
    best, kind = "", ""
    with suppress(OSError), open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        real = os.path.realpath(path)
        for line in mounts:
            _, place, found, *_ = line.split(" ")
            inside = real == place or real.startswith(place.rstrip("/") + "/")
            if inside and len(place) >= len(best):
                best, kind = place, found
    return kind in _IN_MEMORY


def _told(error: OSError, what: str) -> Exception:
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"there is no ring at {what}; create it first")
        case errno.ENOSPC | errno.EDQUOT | errno.ENOMEM | errno.EFBIG:
            return StoreFull(
                f"there is no room for the ring ({error.strerror}); free some, or make it smaller"
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ReadOnly(f"{what} cannot be written ({error.strerror}); mend its permissions")
        case errno.ELOOP | errno.EISDIR | errno.ENXIO | errno.ENODEV | errno.ENOTDIR:
            return NotRing(f"{what} is not a file that can be a ring ({error.strerror}); give another path")
        case errno.EOPNOTSUPP | errno.EINVAL:
            return BadArgument(
                f"path: no ring can lie in the file system of {what}; use /dev/shm", argument="path"
            )
        case _:
            return error
