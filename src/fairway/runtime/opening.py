"""Opening a queue by its URL.

Guards: a queue that cannot be opened leaves nothing behind: no thread, no lock, no connection.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from itertools import count
from urllib.parse import unquote, urlsplit

from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.face.verbs import Verbs
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.host import Host
from fairway.runtime.lockfile import LockFile
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.registry import registry
from fairway.runtime.running import Running
from fairway.store.port import Store

# Writers of result objects: no two processes and no two calls of one have the same number.
_writers = count(secrets.randbits(42) << 20)


def open(
    url: str | os.PathLike[str], queue: str = "default", *, create: bool = True, forget_leases: bool = False
) -> Queue:
    """Open a queue: a path or file: URL for a SQLite file, ":memory:" for a queue that lives in this process.

    `create=False` refuses a file that does not exist. `forget_leases=True` gives back every chunk that was leased
    when the queue was last open. Opening the same file and queue again in this process shares it.
    """
    host, let_go = enter(url, queue, create=create, forget_leases=forget_leases)
    return Queue(host.name, Verbs(ObstoreObjects(), writer, read), ThreadPort(host, let_go))


def enter(
    url: str | os.PathLike[str], queue: str, *, create: bool, forget_leases: bool
) -> tuple[Host, Callable[[], None]]:
    """The host of a queue and the function that ends its use."""
    name = checks.queue_name(queue)
    checks.flag("create", create)
    checks.flag("forget_leases", forget_leases)
    path = _path(url)
    if path is None:
        running = Running(name, _memory_store(name), None)
        return running.host, running.close
    full = os.path.realpath(path)
    return registry.enter((full, name), lambda: _start(full, name, create, forget_leases))


def writer() -> int:
    """A number for the writer of a result object."""
    return next(_writers)


def _path(url: object) -> str | None:
    """The path in a URL; None for memory."""
    if not isinstance(url, str | os.PathLike):
        checks.refuse("url", 'a path, a URL or ":memory:"', url)
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "\x00" in text:
        checks.refuse("url", 'a path, a URL or ":memory:"', url)
    if text == ":memory:":
        return None
    parts = urlsplit(text)
    if parts.scheme in ("http", "https", "cassandra"):
        raise BadArgument(f"url: {parts.scheme}:// comes later; give the path of a file", argument="url")
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            checks.refuse("url", "file: with a path and nothing else", url)
        return unquote(parts.path)
    if "://" in text:
        checks.refuse("url", 'a path, a file: URL or ":memory:"', url)
    return text


def _start(path: str, name: str, create: bool, forget_leases: bool) -> Running:
    if not create and not os.path.exists(path):
        raise NotFound(f"there is no file {path}; leave create=False out to make it")
    store = _sqlite_store(path, name)
    lock: LockFile | None = None
    try:
        lock = LockFile(f"{path}-{name}.lock")
        return Running(name, store, lock, forget_leases)
    except BaseException:
        store.close()
        if lock is not None:
            lock.release()
        raise


def _sqlite_store(path: str, name: str) -> Store:
    from fairway.store.sqlite import SqliteStore

    return SqliteStore.open(path, name)


def _memory_store(name: str) -> Store:
    from fairway.store.memory import MemoryStore

    return MemoryStore.open(name)
