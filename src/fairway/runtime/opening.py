"""Opening a queue by its URL.

Guards: a queue that cannot be opened leaves nothing behind: no thread, no lock, no connection.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from itertools import count
from threading import get_ident
from urllib.parse import unquote, urlsplit

from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.face.verbs import Verbs
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.member import Member
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.registry import registry
from fairway.runtime.running import Running
from fairway.store.port import Store

# Writers of result objects: no two processes and no two calls of one have the same number.
_writers = count(secrets.randbits(42) << 20)


def open(
    url: str | os.PathLike[str],
    queue: str = "default",
    *,
    create: bool = True,
    forget_leases: bool = False,
    host: bool = True,
) -> Queue:
    """Open a queue: a path or file: URL for a SQLite file, ":memory:" for a queue that lives in this process.

    Many processes may open one file: one hosts the queue, the others work through it, and when it goes away another
    takes its place. `host=False` never hosts: it raises NoHost if no other process does. `create=False` refuses a
    file that does not exist. `forget_leases=True` gives back every chunk that was leased when the queue was last
    open. Opening the same file and queue again in this process shares it.
    """
    member, let_go = enter(url, queue, create=create, forget_leases=forget_leases, host=host)
    again = (reopen, (member.path, member.name, host)) if isinstance(member, Member) else None
    return Queue(
        member.name, Verbs(ObstoreObjects(), writer, read, get_ident), ThreadPort(member, let_go), again
    )


def reopen(path: str, queue: str, host: bool) -> Queue:
    """A queue that was sent to another process."""
    return open(path, queue, create=False, host=host)


def enter(
    url: str | os.PathLike[str], queue: str, *, create: bool, forget_leases: bool, host: bool
) -> tuple[Member | Running, Callable[[], None]]:
    """What ports stand on, and the function that ends its use."""
    name = checks.queue_name(queue)
    checks.flag("create", create)
    checks.flag("forget_leases", forget_leases)
    checks.flag("host", host)
    path = _path(url)
    if path is None:
        if not host:
            raise BadArgument("host: a queue in memory is always hosted here", argument="host")
        running = Running(name, _memory_store(name))
        return running, running.close
    full = os.path.realpath(path)
    return registry.enter((full, name), host, lambda: _member(full, name, create, forget_leases))


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


def _member(path: str, name: str, create: bool, forget_leases: bool) -> Member:
    if not create and not os.path.exists(path):
        raise NotFound(f"there is no file {path}; leave create=False out to make it")
    return Member(path, name, forget_leases)


def _memory_store(name: str) -> Store:
    from fairway.store.memory import MemoryStore

    return MemoryStore.open(name)
