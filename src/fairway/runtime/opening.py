"""Opening a fair queue by its URL, in this process or beside the one that hosts it.

Guards: a queue that cannot be opened leaves nothing behind: no thread, no lock, no connection.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from itertools import count
from threading import get_ident
from typing import TYPE_CHECKING

from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.face.verbs import Verbs
from fairway.runtime.asked import Asked
from fairway.runtime.blocking import ThreadPort
from fairway.runtime.member import Member
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.registry import Member as Sharing
from fairway.runtime.registry import registry
from fairway.runtime.transport.choosing import transport_of
from fairway.runtime.urls import Place, on_cassandra, path_of
from fairway.store.port import Store
from fairway.store.sqlite import queues

if TYPE_CHECKING:
    from fairway.runtime.running import Running

# Writers of result objects: no two processes and no two calls of one have the same number.
_writers = count(secrets.randbits(42) << 20)


def open_queue(url: Place, queue: str, asked: Asked) -> Queue:
    """A queue for threads."""
    member, let_go = enter(url, queue, asked)
    again = None
    if isinstance(member, Member):
        again = (reopen, (member.path, member.name, asked.host, member.transport))
    return Queue(
        member.name, Verbs(ObstoreObjects(), writer, read, get_ident), ThreadPort(member, let_go), again
    )


def reopen(path: str, queue: str, host: bool, transport: str) -> Queue:
    """A queue that was sent to another process."""
    return open_queue(path, queue, Asked(create=False, host=host, transport=transport))  # pyright: ignore[reportArgumentType]


def enter(url: Place, queue: str, asked: Asked) -> tuple[Sharing | Running, Callable[[], None]]:
    """What ports stand on, and the function that ends its use."""
    name = checks.queue_name(queue)
    if on_cassandra(url):
        if not asked.host:
            raise BadArgument(
                "host: on Cassandra there is no host to attach to; leave host=False out", argument="host"
            )
        why = "a queue on Cassandra does not have it"
        asked.only(why, "create", "forget_leases", "window_rows", "standby", "options")
        from fairway.runtime.clusters import enter_cluster

        return enter_cluster(os.fspath(url), name, asked)
    if asked.standby or asked.options:
        raise BadArgument("standby, options: these are for cassandra:// only", argument="standby")
    path = path_of(url)
    if path is None:
        if not asked.host:
            raise BadArgument("host: a queue in memory is always hosted here", argument="host")
        from fairway.runtime.running import Running

        running = Running(name, _memory_store(name), window_rows=asked.window_rows)
        return running, running.close
    transport = transport_of(asked.transport)
    full = os.path.realpath(path)
    return registry.enter((full, name), asked.host, lambda: _member(full, name, asked, transport))


def writer() -> int:
    """A number for the writer of a result object."""
    return next(_writers)


def _member(path: str, name: str, asked: Asked, transport: str) -> Member:
    if not asked.create:
        if not os.path.exists(path):
            raise NotFound(f"there is no file {path}; leave create=False out to make it")
        # One of the other kind is there, and is refused as what it is.
        if name not in queues.check_file(path) and name not in queues.bucket_names(path):
            raise NotFound(f"there is no queue {name!r} in {path}; leave create=False out to make it")
    return Member(path, name, asked.forget_leases, asked.window_rows, transport)


def _memory_store(name: str) -> Store:
    from fairway.store.memory import MemoryStore

    return MemoryStore.open(name)
