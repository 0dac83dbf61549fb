"""Opening a bucket queue on a server.

Guards: what comes back has the verbs and the errors of a bucket queue in a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from fairway import limits
from fairway.client.address import Address
from fairway.client.buckets import FarBucketVerbs
from fairway.client.rest import Rest
from fairway.engine.commands import Reserved
from fairway.errors import NotFound, WrongKind
from fairway.face.bucket.queue import AsyncBucketQueue, BucketQueue
from fairway.face.queue import awaiting, blocking, listing, streaming


class _Kind(msgspec.Struct):
    kind: str = "fair"


class _Port:
    """For threads: a call happens in the caller's own."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def ask(self, command: Any) -> None:
        raise AssertionError("a bucket queue on a server asks for nothing else")

    def unreceived(self, reserved: Reserved) -> None:
        """Bucket queues never hand out a Reserved."""

    def close(self) -> None:
        self._rest.close()


class _LoopPort:
    """For event loops: a call, also one that waits, takes a thread."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._pool = ThreadPoolExecutor(limits.LANES_MAX, "fairway bucket")

    async def ask(self, command: Any) -> None:
        raise AssertionError("a bucket queue on a server asks for nothing else")

    async def do(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def unreceived(self, reserved: Reserved) -> None:
        """Bucket queues never hand out a Reserved."""

    async def close(self) -> None:
        await asyncio.to_thread(self._rest.close)
        self._pool.shutdown(wait=False)


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
    rest = _entered(address, create)
    verbs: Any = FarBucketVerbs(rest)
    return FarBucketQueue(address.queue, verbs, _Port(rest), (open_far_bucket, (address,)))


def open_far_bucket_async(address: Address, create: bool = False) -> FarAsyncBucketQueue:
    """A bucket queue on a server for an event loop; called beside it."""
    rest = _entered(address, create)
    verbs: Any = FarBucketVerbs(rest)
    return FarAsyncBucketQueue(address.queue, verbs, _LoopPort(rest))


def _entered(address: Address, create: bool) -> Rest:
    """Find the queue, or make it."""
    rest = Rest(address)
    try:
        found = _found(rest, create)
        if found.kind != "bucket":
            raise WrongKind(f"{address.queue!r} is a fair queue; take another name for a bucket queue")
    except BaseException:
        rest.close()
        raise
    return rest


def _found(rest: Rest, create: bool) -> _Kind:
    try:
        return rest.call("GET", "", None, _Kind)
    except NotFound:
        if not create:
            raise
        return rest.call("PUT", "", {"kind": "bucket"}, _Kind)
