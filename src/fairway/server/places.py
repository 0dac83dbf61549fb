"""Places: where the queues of a server are kept, as the server sees it.

Guards: a file's queues are hosted by one process; those of a cluster are stood by for by every node, and owned by one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from fairway.errors import NotFound
from fairway.face.bucket.queue import AsyncBucketQueue
from fairway.limits import SWEEP_SLICE_SECONDS, WINDOW_ROWS
from fairway.runtime.asked import Asked
from fairway.runtime.bucket.opening import bucket_in, open_bucket_async
from fairway.runtime.opening import enter
from fairway.runtime.urls import on_cassandra
from fairway.store.sqlite import queues as file

if TYPE_CHECKING:
    from fairway.server.settings import Settings

Entered = tuple[Any, Callable[[], None]]


class Place(Protocol):
    """Every method blocks; any thread may call them."""

    shared: bool  # whether other nodes make and delete queues there too

    def names(self) -> dict[str, int]:
        """The fair queues by name, with numbers that are never given twice."""
        ...

    def enter(self, name: str, create: bool, host: bool) -> Entered:
        """What ports stand on, and the function that ends its use."""
        ...

    def bury(self, name: str) -> bool:
        """Delete a queue; False if there is none."""
        ...

    def buckets(self) -> list[str]:
        """The names of the bucket queues."""
        ...

    def bucket(self, name: str, create: bool) -> AsyncBucketQueue:
        """A bucket queue; NotFound if there is none and it is not to be made."""
        ...

    def sweep(self) -> None:
        """Remove what deleted queues left."""
        ...

    def close(self) -> None: ...


class FilePlace:
    """A SQLite file."""

    shared = False

    def __init__(self, path: str, transport: str | None = None, window_rows: int = WINDOW_ROWS) -> None:
        self.path = path
        self._window_rows = window_rows
        self._transport: Any = transport  # to the process that hosts, if that is another

    def names(self) -> dict[str, int]:
        return file.names(self.path)

    def enter(self, name: str, create: bool, host: bool) -> Entered:
        asked = Asked(create=create, host=host, transport=self._transport, window_rows=self._window_rows)
        return enter(self.path, name, asked)

    def bury(self, name: str) -> bool:
        return file.bury(self.path, name)

    def buckets(self) -> list[str]:
        return file.bucket_names(self.path)

    def bucket(self, name: str, create: bool) -> AsyncBucketQueue:
        if not create and name not in self.buckets():
            raise NotFound(
                f"there is no bucket queue {name!r}"
            )  # nothing is opened for a name that is made up
        return open_bucket_async(self.path, name, create=create)

    def sweep(self) -> None:
        if os.path.exists(self.path):
            file.sweep(self.path)

    def close(self) -> None:
        """Nothing is held."""


class ClusterPlace:
    """A realm of a Cassandra keyspace; `node` is where this server takes the calls of others."""

    shared = True

    def __init__(self, url: str, node: str, window_rows: int = WINDOW_ROWS) -> None:
        from fairway.runtime.clusters import Address, Node
        from fairway.store.cassandra import Connection
        from fairway.store.cassandra.opening import prepare

        self._url, self._window_rows = url, window_rows
        self._connection = Connection.open(Address.parse(url))
        try:
            prepare(self._connection, create=True)
        except BaseException:
            self._connection.close()
            raise
        self._node = Node(node, self._connection)
        self._sweeping = threading.Lock()
        self._removal: Iterator[None] | None = None

    def names(self) -> dict[str, int]:
        from fairway.store.cassandra.opening import queue_names

        return queue_names(self._connection)

    def enter(self, name: str, create: bool, host: bool) -> Entered:
        from fairway.runtime.clusters import enter_cluster

        asked = Asked(create=create, standby=True, window_rows=self._window_rows)
        return enter_cluster(self._url, name, asked, self._node)

    def bury(self, name: str) -> bool:
        from fairway.store.cassandra.removing import bury

        return bury(self._connection, name)

    def buckets(self) -> list[str]:
        from fairway.store.cassandra.bucket_session import BucketSession
        from fairway.store.cassandra.opening import prepare

        prepare(self._connection, True, "bucket_schema.cql")
        found = BucketSession(self._connection).read("read_names", ())
        realm = self._connection.address.realm
        return sorted(name for of, name, current in found if of == realm and current is not None)

    def bucket(self, name: str, create: bool) -> AsyncBucketQueue:
        from fairway.store.cassandra.buckets import CassandraBuckets
        from fairway.store.cassandra.opening import prepare

        prepare(self._connection, True, "bucket_schema.cql")
        realm = self._connection.address.realm
        return bucket_in(CassandraBuckets(self._connection.share(), realm), name, create)

    def sweep(self) -> None:
        """Go on removing what deleted queues held, for a moment; any node does, and it may be done twice."""
        from fairway.store.cassandra.sweeping import removal

        if not self._sweeping.acquire(blocking=False):
            return
        try:
            self._removal = self._removal or removal(self._connection)
            until = time.monotonic() + SWEEP_SLICE_SECONDS
            for _ in self._removal:
                if time.monotonic() > until:
                    return
            self._removal = None
        except BaseException:
            self._removal = None  # the next try begins anew
            raise
        finally:
            self._sweeping.release()

    def close(self) -> None:
        self._connection.close()


def place_of(settings: Settings, node: str) -> Place:
    """Where a server's settings say that its queues are."""
    if on_cassandra(settings.store):
        return ClusterPlace(settings.store, node, settings.window_rows)
    return file_place(settings)


def file_place(settings: Settings) -> FilePlace:
    """The file that a server's settings name."""
    return FilePlace(settings.store, settings.transport, settings.window_rows)
