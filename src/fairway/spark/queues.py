"""Queues as the processes of a Spark job open them: once per process, attached, never hosting.

Guards: no planner, driver-side worker or executor ever becomes the host of a queue.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import fairway
from fairway.errors import NoHost
from fairway.face.queue import Queue
from fairway.spark.settings import located, path_of

_lock = threading.Lock()
_open: dict[tuple[int, str, str], Queue] = {}
_kept: dict[tuple[str, str], Queue] = {}


def attached(url: str, queue: str) -> Queue:
    """The queue, opened once in this process and never closed: Spark ends its workers as it likes."""
    key = (os.getpid(), url, queue)
    with _lock:
        found = _open.get(key)
        if found is None:
            found = _open[key] = _attach(url, queue)
    return found


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


def hosted(url: str, queue: str = "default") -> Queue:
    """The queue open in the caller's program, for as long as the caller keeps it open."""
    return fairway.open(located(url), queue)


@contextmanager
def hosting(url: str, queue: str = "default") -> Iterator[Queue]:
    """Keep a queue open in this program, so that the processes of Spark find it."""
    with hosted(url, queue) as q:
        yield q


def keep(url: str, queue: str) -> None:
    """Keep a queue open until the program ends or `release` is called: DataFrames are read when Spark likes."""
    key = (located(url), queue)
    with _lock:
        if key not in _kept:
            _kept[key] = hosted(url, queue)


def release() -> None:
    """Close the queues that lazily read DataFrames kept open; those DataFrames can no longer be read."""
    with _lock:
        kept = list(_kept.values())
        _kept.clear()
    for queue in kept:
        queue.close()


atexit.register(release)
