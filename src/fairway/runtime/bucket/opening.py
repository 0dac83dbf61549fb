"""Opening a bucket queue by its URL.

Guards: a queue that cannot be opened leaves nothing behind: no thread, no connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from fairway.bucket import naming
from fairway.bucket.config import BucketConfig
from fairway.bucket.port import BucketStorage
from fairway.bucket.rows import QueueRow
from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.bucket.queue import AsyncBucketQueue, BucketQueue, BucketVerbs
from fairway.runtime.bucket.office import Office
from fairway.runtime.bucket.ports import LoopOfficePort, OfficePort
from fairway.runtime.bucket.running import run
from fairway.runtime.urls import on_cassandra, path_of

URL = str | os.PathLike[str]
Options = Mapping[str, object]


def open_bucket(url: URL, queue: str, *, create: bool = True, options: Options | None = None) -> BucketQueue:
    """A bucket queue for threads."""
    office = enter(url, queue, create=create, options=options)
    path = None if on_cassandra(url) else path_of(url)
    where = os.fspath(url) if on_cassandra(url) else path and os.path.realpath(path)
    again = None if where is None else (reopen, (where, office.name))
    return BucketQueue(office.name, BucketVerbs(office), OfficePort(office), again)


def open_bucket_async(
    url: URL, queue: str, *, create: bool = True, options: Options | None = None
) -> AsyncBucketQueue:
    """A bucket queue for an event loop; called beside it."""
    office = enter(url, queue, create=create, options=options)
    return AsyncBucketQueue(office.name, BucketVerbs(office), LoopOfficePort(office))


def reopen(url: str, queue: str) -> BucketQueue:
    """A queue that was sent to another process."""
    return open_bucket(url, queue, create=False)


def enter(url: URL, queue: str, *, create: bool, options: Options | None = None) -> Office:
    """The storage of a URL, and the live generation of the name in it, made if need be."""
    return _office(checks.queue_name(queue), _storage(url, create, options), create)


def bucket_in(storage: BucketStorage, queue: str, create: bool) -> AsyncBucketQueue:
    """A bucket queue of a storage, for an event loop; it closes the storage."""
    office = _office(queue, storage, create)
    return AsyncBucketQueue(office.name, BucketVerbs(office), LoopOfficePort(office))


def _office(name: str, storage: BucketStorage, create: bool) -> Office:
    try:
        return Office(name, _found(name, storage, create), storage)
    except BaseException:
        storage.close()
        raise


def _found(name: str, storage: BucketStorage, create: bool) -> QueueRow:
    found = run(naming.find_queue(name), storage)
    if found is None and not create:
        raise NotFound(f"there is no bucket queue {name!r}; leave create=False out to make it")
    return found or run(naming.create_queue(name, BucketConfig()), storage)


def _storage(url: URL, create: bool, options: Options | None) -> BucketStorage:
    if on_cassandra(url):
        from fairway.store.cassandra.address import Address
        from fairway.store.cassandra.buckets import CassandraBuckets

        return CassandraBuckets.open(Address.parse(os.fspath(url), options), create=create)
    if options:
        raise BadArgument("options: they are the settings of a cluster; a file has none", argument="options")
    path = path_of(url)
    if path is None:
        from fairway.store.memory.buckets import MemoryBuckets

        return MemoryBuckets()
    if not create and not os.path.exists(path):
        raise NotFound(f"there is no file {path}; leave create=False out to make it")
    from fairway.store.sqlite.buckets import SqliteBuckets

    return SqliteBuckets.open(path)
