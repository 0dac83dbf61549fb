"""Queues as the processes of a Spark job open them: once per process, attached, never hosting.

Guards: no planner, driver-side worker or executor ever becomes the host of a queue; nobody goes on with a file that
was removed, whatever was made in its place.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import fairway
from fairway.errors import NoHost, NotFound
from fairway.face.queue import Queue
from fairway.runtime.urls import Place
from fairway.spark.settings import located, path_of

_File = (
    tuple[int, int] | None
)  # a device and an inode, which no other file has while a queue holds this one open
_Key = tuple[int, str, str, _File]  # the process, URL, queue, and which file it was
_lock = threading.Lock()
_open: dict[_Key, Queue] = {}
_kept: dict[_Key, Queue] = {}


def attached(url: str, queue: str) -> Queue:
    """The queue, opened once in this process: Spark ends its workers as it likes."""
    key = _key(url, queue)
    with _lock:
        _close_removed(_open, key)
        found = _open.get(key)
        if found is None:
            found = _open[key] = _attach(url, queue)
    return found


def _key(url: str, queue: str) -> _Key:
    path = path_of(url)
    file = None
    if path is not None:
        with suppress(OSError):
            found = os.stat(path)
            file = found.st_dev, found.st_ino
    return os.getpid(), url, queue, file


def _close_removed(known: dict[_Key, Queue], now: _Key) -> None:
    """Close what this process has of a file that was where there is another or none now: it would hide that one."""
    for key in [key for key in known if key[:2] == now[:2] and key[3] != now[3]]:
        known.pop(key).close()


def _attach(url: str, queue: str) -> Queue:
    if path_of(url) is None:
        return fairway.open(url, queue)
    try:
        return fairway.open(url, queue, create=False, host=False)
    except NoHost:
        raise NoHost(
            f"no process hosts the queue {queue!r} of {url}: keep it open in the program that starts the job"
            " (`with fairway.open(...)`), or let fairway.spark.process do it"
        ) from None


def hosted(url: Place, queue: str = "default", create: bool = True) -> Queue:
    """The queue open in the caller's program, for as long as the caller keeps it open."""
    url = located(url)
    with _lock:
        _close_removed(_kept, _key(url, queue))
    try:
        return fairway.open(url, queue, create=create)
    except NotFound:
        if path_of(url) is None:
            raise
        raise NotFound(f"there is no queue at {url}; give the path of its file") from None


@contextmanager
def hosting(url: Place, queue: str = "default", *, create: bool = True) -> Iterator[Queue]:
    """Keep a queue open in this program, so that the processes of Spark find it.

    `create=False` refuses what does not exist.
    """
    with hosted(url, queue, create) as q:
        yield q


def keep(url: Place, queue: str) -> None:
    """Keep a queue that is there open until the program ends or `release` is called: Spark reads when it likes."""
    url = located(url)
    key, found = _key(url, queue), hosted(url, queue, create=False)
    with _lock:
        kept = _kept.setdefault(key, found)
    if kept is not found:
        found.close()


def release() -> None:
    """Close the queues that lazily read DataFrames kept open; those DataFrames can no longer be read."""
    with _lock:
        kept = list(_kept.values())
        _kept.clear()
    for queue in kept:
        queue.close()


atexit.register(release)
