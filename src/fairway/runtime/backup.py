"""Backing a file up while its queues are at work.

Guards: under the name that was asked for there is a whole copy that every queue was loaded from, or what was there
before: a backup that is killed or fails leaves at most a file that ends in `.part`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress

import msgspec

from fairway.engine.commands import QueueStats
from fairway.errors import BadArgument, StoreFailed
from fairway.runtime.looking import look
from fairway.store.sqlite.copying import copy
from fairway.store.sqlite.looking import queue_names


class BackedUp(msgspec.Struct, frozen=True):
    """A backup that was made and read again."""

    path: str
    bytes: int
    queues: list[QueueStats]


def back_up(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> BackedUp:
    """Copy all queues of a file, as they are at one moment, into another file; `replace` allows one that is there."""
    source, target = os.path.realpath(path), os.path.realpath(to)
    _check(source, target, replace)
    part = _part(target)
    try:
        copy(source, part, tell)
        queues = [_loaded(part, name) for name in queue_names(part)]
        size = os.stat(part).st_size
        _publish(part, target, replace)
    except OSError as error:
        raise StoreFailed(f"{target} cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
    return BackedUp(target, size, queues)


def _check(source: str, target: str, replace: bool) -> None:
    if source == target:
        raise BadArgument("to: a file cannot be its own backup; give another path", argument="to")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise BadArgument(f"to: the folder {folder} does not exist; make it first", argument="to")
    if os.path.exists(target) and not replace:
        raise BadArgument(f"to: {target} is there already; give another path, or replace it", argument="to")
    if os.path.exists(f"{target}-wal"):
        # Its log would be read into the backup.
        raise BadArgument(f"to: {target} is a queue that is in use; give another path", argument="to")


def _part(target: str) -> str:
    """An empty file beside the target that only its owner may read."""
    try:
        fd, part = tempfile.mkstemp(".part", os.path.basename(target) + ".", os.path.dirname(target))
    except OSError as error:
        raise StoreFailed(f"nothing can be written beside {target}: {error.strerror}") from error
    os.close(fd)
    return part


def _loaded(path: str, name: str) -> QueueStats:
    """A backup is worth what can be loaded from it."""
    with look(path, name) as queue:
        return queue.stats()


def _publish(part: str, target: str, replace: bool) -> None:
    if replace:
        os.replace(part, target)
    else:
        try:
            os.link(part, target)  # unlike a rename it never replaces
        except FileExistsError:
            raise BadArgument(f"to: {target} appeared meanwhile; give another path", argument="to") from None
        except OSError:
            os.rename(part, target)  # a file system without links
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
