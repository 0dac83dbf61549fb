"""The two public forms of a bucket queue, made from one text of the verbs.

Guards: a verb that only fair queues have says so, by a typed error, in both forms.
"""

from __future__ import annotations

from typing import NoReturn

from fairway.errors import WrongKind
from fairway.face.bucket.desk import Desk
from fairway.face.bucket.steering import SteerVerbs
from fairway.face.bucket.working import WorkVerbs
from fairway.face.forms import Awaiting, Blocking, awaiting, blocking, listing, streaming
from fairway.face.queue import Queue


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


class BucketQueue(_Kind, Blocking):
    """An open bucket queue. Any number of threads may use it at once; close it, or use it as a context manager."""

    _verbs: BucketVerbs

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
        super().close()


class AsyncBucketQueue(_Kind, Awaiting):
    """An open bucket queue for one event loop: the verbs of `BucketQueue` with `await`."""

    _verbs: BucketVerbs

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
