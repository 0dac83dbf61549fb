"""The two public forms of a bucket queue, made from one text of the verbs.

Guards: a verb that only fair queues have says so, by a typed error, in both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

from fairway.errors import BadArgument, WrongKind
from fairway.face.bucket.desk import Desk
from fairway.face.bucket.steering import SteerVerbs
from fairway.face.bucket.working import WorkVerbs
from fairway.face.driving import AsyncPort, Port
from fairway.face.queue import Queue, awaiting, blocking, listing, streaming


class BucketVerbs(WorkVerbs, SteerVerbs):
    """The verbs of one open bucket queue."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk


class _Kind:
    """What both forms share: the name, and the verbs of the other kind."""

    name: str

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(Queue, name):
            raise WrongKind(
                f"a bucket queue has no {name}; open {self.name!r} under another name with kind='fair' for it",
                verb=name,
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class BucketQueue(_Kind):
    """An open bucket queue. Any number of threads may use it at once; close it, or use it as a context manager."""

    def __init__(
        self,
        name: str,
        verbs: BucketVerbs,
        port: Port,
        again: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    ) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port
        self._again = again  # what opens it in another process

    put = blocking(BucketVerbs.put)
    put_many = blocking(BucketVerbs.put_many)
    reserve = blocking(BucketVerbs.reserve)
    complete = blocking(BucketVerbs.complete)
    fail = blocking(BucketVerbs.fail)
    renew = blocking(BucketVerbs.renew)
    release = blocking(BucketVerbs.release)
    dead = listing(BucketVerbs.dead)
    redrive = blocking(BucketVerbs.redrive)
    purge = blocking(BucketVerbs.purge)
    stats = blocking(BucketVerbs.stats)
    configure = blocking(BucketVerbs.configure)
    delete = blocking(BucketVerbs.delete)

    def close(self) -> None:
        """Let go of the queue. Closing again does nothing."""
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Sent to another process, a queue is opened there."""
        if self._again is None:
            raise BadArgument("a queue in memory cannot be sent to another process; use a file")
        return self._again

    def __repr__(self) -> str:
        return f"<fairway.BucketQueue {self.name!r}>"


class AsyncBucketQueue(_Kind):
    """An open bucket queue for one event loop: the verbs of `BucketQueue` with `await`."""

    def __init__(self, name: str, verbs: BucketVerbs, port: AsyncPort) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port

    put = awaiting(BucketVerbs.put)
    put_many = awaiting(BucketVerbs.put_many)
    reserve = awaiting(BucketVerbs.reserve)
    complete = awaiting(BucketVerbs.complete)
    fail = awaiting(BucketVerbs.fail)
    renew = awaiting(BucketVerbs.renew)
    release = awaiting(BucketVerbs.release)
    dead = streaming(BucketVerbs.dead)
    redrive = awaiting(BucketVerbs.redrive)
    purge = awaiting(BucketVerbs.purge)
    stats = awaiting(BucketVerbs.stats)
    configure = awaiting(BucketVerbs.configure)
    delete = awaiting(BucketVerbs.delete)

    async def close(self) -> None:
        """Let go of the queue. Closing again does nothing."""
        await self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __reduce__(self) -> NoReturn:
        raise BadArgument(
            "a queue of an event loop cannot be sent to another process; send its path and open it there"
        )

    def __repr__(self) -> str:
        return f"<fairway.AsyncBucketQueue {self.name!r}>"
