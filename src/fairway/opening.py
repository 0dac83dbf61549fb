"""Opening a queue by its URL: a file, a cluster or memory by the runtime, a server by the client.

Guards: whichever it is, what comes back is the same `Queue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Literal, overload

from fairway.client.address import Address, is_http
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.face.bucket.queue import BucketQueue
from fairway.face.queue import Queue
from fairway.face.verbs import Verbs
from fairway.limits import WINDOW_ROWS
from fairway.runtime.asked import Asked, Kind, Transport, is_bucket
from fairway.runtime.objects import ObstoreObjects, read
from fairway.runtime.opening import open_queue, writer
from fairway.runtime.urls import Place


@overload
def open(
    url: Place | Sequence[str],
    queue: str = "default",
    *,
    kind: Literal["fair"] = "fair",
    create: bool = True,
    host: bool = True,
    forget_leases: bool = False,
    token: str | None = None,
    standby: bool = False,
    options: Mapping[str, object] | None = None,
    transport: Transport | None = None,
    window_rows: int = WINDOW_ROWS,
) -> Queue: ...
@overload
def open(
    url: Place | Sequence[str],
    queue: str = "default",
    *,
    kind: Literal["bucket"],
    create: bool = True,
    token: str | None = None,
    options: Mapping[str, object] | None = None,
) -> BucketQueue: ...
def open(
    url: Place | Sequence[str],
    queue: str = "default",
    *,
    kind: Kind = "fair",
    create: bool = True,
    host: bool = True,
    forget_leases: bool = False,
    token: str | None = None,
    standby: bool = False,
    options: Mapping[str, object] | None = None,
    transport: Transport | None = None,
    window_rows: int = WINDOW_ROWS,
) -> Queue | BucketQueue:
    """Open a queue: a path or file: URL for a SQLite file; http://host:7420 (or a list of such nodes) for a server;
    cassandra://user@host1,host2/keyspace for a cluster; ":memory:" for a queue that lives in this process.

    `kind="bucket"` opens a bucket queue: no process hosts it, it delivers at least once and in no promised order.
    `create=False` refuses what does not exist. `forget_leases=True` gives back every chunk that was leased when the
    queue was last open. Opening the same queue again in this process shares it.

    A file: many processes may open it. One hosts the queue, the others work through it, and when it goes away another
    takes its place. `host=False` never hosts: it raises NoHost if no other process does. `transport` is how this
    process talks to the one that hosts: "socket", or "ring" through shared memory; FAIRWAY_TRANSPORT by default.
    A server: `token` is its key; FAIRWAY_TOKEN by default.
    A cluster: one process owns a queue at a time. Others get NotOwner, or with `standby=True` a queue whose calls wait
    until it is their turn. Settings (password, dc, tls, ca, consistency) stand in the URL after "?", in the environment
    (FAIRWAY_CASSANDRA_PASSWORD) or in `options`.

    `window_rows` is how many submissions that can be handed out the owner keeps in memory; the rest stays stored.
    """
    asked = Asked(create, forget_leases, host, window_rows, transport, standby, options)
    address = address_of(url, queue, token, asked)
    if is_bucket(kind):
        return _open_bucket(url, queue, address, asked)
    if address is not None:
        return open_address(address, create)
    return open_queue(url, queue, asked)  # pyright: ignore[reportArgumentType]


def _open_bucket(url: object, queue: str, address: Address | None, asked: Asked) -> BucketQueue:
    bucket_only(address, asked)
    if address is not None:
        from fairway.client.bucket_queues import open_far_bucket

        return open_far_bucket(address, asked.create)
    from fairway.runtime.bucket.opening import open_bucket

    return open_bucket(url, queue, create=asked.create, options=asked.options)  # pyright: ignore[reportArgumentType]


def bucket_only(address: Address | None, asked: Asked) -> None:
    """Refuse what a bucket queue does not have."""
    if address is None or not asked.host:
        asked.only("nobody hosts a bucket queue", "create", "options")


def open_address(address: Address, create: bool = False) -> Queue:
    """A queue on a server; also what opens one that was sent to another process."""
    from fairway.client.blocking import HttpPort

    port = HttpPort(address)
    try:
        port.enter(create)
    except BaseException:
        port.close()
        raise
    verbs = Verbs(ObstoreObjects(), writer, read, get_ident)
    return Queue(address.queue, verbs, port, (open_address, (address,)))


def address_of(url: object, queue: str, token: str | None, asked: Asked) -> Address | None:
    """The address of a queue on a server; None: it is not on one."""
    if not is_http(url):
        if token is not None:
            raise BadArgument("token goes with a server; a file needs none", argument="token")
        if isinstance(url, list | tuple):
            checks.refuse("url", "a path, a URL, or a list of http:// nodes", url)
        return None
    if asked.forget_leases:
        raise BadArgument("forget_leases: leases on a server belong to others too", argument="forget_leases")
    asked.only("a queue on a server does not have it", "create", "host")
    return Address.of(url, queue, token)  # pyright: ignore[reportArgumentType]
