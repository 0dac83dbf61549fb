"""Opening a bucket queue on a server.

Guards: what comes back has the verbs and the errors of a bucket queue in a file.
"""

from __future__ import annotations

from typing import Any

from fairway.client.address import Address
from fairway.client.blocking import HttpPort
from fairway.client.buckets import FarBucketVerbs
from fairway.client.rest import RestCore
from fairway.face.bucket.queue import AsyncBucketQueue, BucketQueue
from fairway.face.queue import awaiting, blocking, listing, streaming


class FarBucketQueue(BucketQueue):
    """A bucket queue on a server, for threads."""

    put = blocking(FarBucketVerbs.put)
    put_many = blocking(FarBucketVerbs.put_many)
    reserve = blocking(FarBucketVerbs.reserve)
    complete = blocking(FarBucketVerbs.complete)
    fail = blocking(FarBucketVerbs.fail)
    renew = blocking(FarBucketVerbs.renew)
    release = blocking(FarBucketVerbs.release)
    dead = listing(FarBucketVerbs.dead)
    redrive = blocking(FarBucketVerbs.redrive)
    purge = blocking(FarBucketVerbs.purge)
    stats = blocking(FarBucketVerbs.stats)
    configure = blocking(FarBucketVerbs.configure)
    delete = blocking(FarBucketVerbs.delete)


class FarAsyncBucketQueue(AsyncBucketQueue):
    """A bucket queue on a server, for one event loop."""

    put = awaiting(FarBucketVerbs.put)
    put_many = awaiting(FarBucketVerbs.put_many)
    reserve = awaiting(FarBucketVerbs.reserve)
    complete = awaiting(FarBucketVerbs.complete)
    fail = awaiting(FarBucketVerbs.fail)
    renew = awaiting(FarBucketVerbs.renew)
    release = awaiting(FarBucketVerbs.release)
    dead = streaming(FarBucketVerbs.dead)
    redrive = awaiting(FarBucketVerbs.redrive)
    purge = awaiting(FarBucketVerbs.purge)
    stats = awaiting(FarBucketVerbs.stats)
    configure = awaiting(FarBucketVerbs.configure)
    delete = awaiting(FarBucketVerbs.delete)


def open_far_bucket(address: Address, create: bool = False) -> FarBucketQueue:
    """A bucket queue on a server; also what opens one that was sent to another process."""
    port = HttpPort(address, RestCore)
    try:
        port.enter(create)
    except BaseException:
        port.close()
        raise
    verbs: Any = FarBucketVerbs()
    return FarBucketQueue(address.queue, verbs, port, (open_far_bucket, (address,)))


async def open_far_bucket_async(address: Address, create: bool = False) -> FarAsyncBucketQueue:
    """A bucket queue on a server for an event loop."""
    from fairway.client.looping import AsyncHttpPort

    port = AsyncHttpPort(address, RestCore)
    try:
        await port.enter(create)
    except BaseException:
        await port.close()
        raise
    verbs: Any = FarBucketVerbs()
    return FarAsyncBucketQueue(address.queue, verbs, port)
