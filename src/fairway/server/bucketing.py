"""REST of bucket queues: the same routes as of fair ones, as far as a queue without an owner has them.

Guards: what a bucket queue does not have is refused, never ignored; a caller that goes away leaves no lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from fairway.bucket.counting import BucketStats
from fairway.errors import BadArgument, QueueDeleted, WrongKind
from fairway.face.bucket.leases import BucketLease
from fairway.face.bucket.queue import AsyncBucketQueue
from fairway.face.driving import drive_async
from fairway.server import queue_views as qv
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.queues import OpenBucket


def is_bucket(ask: Ask) -> bool:
    return isinstance(ask.queue, OpenBucket)


def _q(ask: Ask) -> AsyncBucketQueue:
    assert isinstance(ask.queue, OpenBucket)
    return ask.queue.queue


async def carried(route: str, ask: Ask) -> Answer:
    """Carry a request out, or say that this kind of queue does not have it."""
    handler = HANDLERS.get(route)
    if handler is None:
        raise WrongKind(
            f"{ask.params['queue']!r} is a bucket queue and does not have this; use a fair queue for it",
            allow=[],
        )
    if ask.key is not None or ask.number is not None:
        raise BadArgument("a bucket queue has no keys and no numbered calls; leave the header out")
    try:
        answer = await handler(ask)
        if route in _BRINGS and isinstance(ask.queue, OpenBucket):
            ask.queue.line.wake()
        return answer
    except QueueDeleted:
        if isinstance(ask.queue, OpenBucket):
            ask.app.queues.forget_bucket(ask.queue)
        raise


def _only(body: Any, *names: str) -> None:
    """Refuse every field that is given and is not one of these."""
    for field in msgspec.structs.fields(body):
        value = getattr(body, field.name)
        usual = field.default_factory() if callable(field.default_factory) else field.default
        if field.name not in names and value != usual:
            raise BadArgument(
                f"{field.name}: a bucket queue does not have it; leave it out", argument=field.name
            )


async def put(ask: Ask) -> Answer:
    """Put messages; their `metadata` are the headers."""
    if isinstance(ask.body, bytes):
        _only(ask.query, "delay_seconds")
        items = [{"payload": ask.body, "delay_seconds": ask.query.delay_seconds or 0.0}]
        return Answer(v.Ids(await _q(ask).put_many(items)), 201)
    _only(ask.query)
    bodies: list[v.NewMessage] = ask.body if isinstance(ask.body, list) else [ask.body]
    for body in bodies:
        _only(body, "payload", "metadata", "delay_seconds")
    items = [
        {"payload": body.payload, "headers": body.metadata, "delay_seconds": body.delay_seconds or 0.0}
        for body in bodies
    ]
    return Answer(v.Ids(await _q(ask).put_many(items)), 201)


async def reserve(ask: Ask) -> Answer:
    """Lease messages, and wait for some if there are none."""
    body: v.Reserving = ask.body
    _only(body, "max", "lease_seconds", "wait_seconds")
    queue = ask.queue
    assert isinstance(queue, OpenBucket)
    found = await queue.line.reserve(body.max, body.lease_seconds, body.wait_seconds)
    if found and not ask.held.take(sum(len(lease.payload) for lease in found)):
        queue.give_back(found)
        ask.held.check()
    return Answer(v.Leases([_lease(lease) for lease in found]), unsent=lambda: queue.give_back(found))


def _lease(lease: BucketLease) -> v.LeaseView:
    return v.LeaseView(
        lease.receipt, lease.id, 0, lease.attempt, lease.deadline, "", lease.headers, b"", lease.payload, None, None,
        put_at=lease.put_at,
    )  # fmt: skip


async def complete(ask: Ask) -> Answer:
    """Complete leases; a bucket queue keeps no results."""
    body: v.Completing = ask.body
    _only(body, "leases")
    if any(one.result is not None for one in body.leases):
        raise BadArgument("result: a bucket queue keeps no results; leave it out", argument="result")
    return _told(await _q(ask).complete([one.receipt for one in body.leases]))


def _told(outcomes: Any) -> Answer:
    return Answer(v.Outcomes(outcomes))


async def fail(ask: Ask) -> Answer:
    """Fail leases: each comes back after a back-off, or is a dead letter after its last delivery."""
    body: v.Failing = ask.body
    told = await _q(ask).fail(body.receipts, body.error, retry=body.retry, delay_seconds=body.delay_seconds)
    return _told(told)


async def release(ask: Ask) -> Answer:
    """Give leases back untouched."""
    return _told(await _q(ask).release(ask.body.receipts))


async def renew(ask: Ask) -> Answer:
    """Hold leases for longer; each has a new receipt then."""
    body: v.Renewing = ask.body
    q = _q(ask)
    told = await drive_async(q._verbs.renewals([*body.receipts], body.seconds), q._port)
    fresh = [("", 0.0) if isinstance(one, str) else one for one in told]
    outcomes: Any = [one if isinstance(one, str) else "renewed" for one in told]
    deadline = max((until for _, until in fresh), default=0.0)
    return Answer(v.Outcomes(outcomes, deadline, [receipt for receipt, _ in fresh]))


async def dead(ask: Ask) -> Answer:
    """A page of dead letters. Payloads are for who works, here as elsewhere."""
    q, query = _q(ask), ask.query
    reads = ask.token.allows("work", q.name)
    if query.after[:1] in ("a", "e") and len(query.after) < 32:
        raise BadArgument("after: give the `next` of the page before", argument="after")
    page = await drive_async(q._verbs.dead_page(query.after, query.limit), q._port)
    shown = [
        v.DeadView(
            d.id, 0, "", d.attempts, d.error, d.died_at, d.payload if reads else None, d.headers, d.put_at,
            len(d.payload or b""),
        )
        for d in page
    ]  # fmt: skip
    return Answer(v.DeadChunks(shown, page[-1].id if len(page) == query.limit else None))


async def redrive(ask: Ask) -> Answer:
    """Put dead letters back as new messages."""
    return Answer(qv.Count(await _q(ask).redrive(ask.body.ids)))


async def purge(ask: Ask) -> Answer:
    """Remove dead letters for good."""
    return Answer(qv.Count(await _q(ask).purge(ask.body.ids)))


async def stats(ask: Ask) -> Answer:
    """The sizes of the queue; all of it is read."""
    return Answer(await _q(ask).stats())


async def show(ask: Ask) -> Answer:
    """The queue's settings and sizes."""
    q = _q(ask)
    return Answer(qv.BucketView(q.name, await q.configure(), await q.stats()))


async def make(ask: Ask) -> Answer:
    """Make the queue if there is none, and set what is given."""
    name = ask.params["queue"]
    made = name not in await ask.app.queues.bucket_names()
    ask.queue = await ask.app.queues.bucket(name, create=True)
    changes = v.words(ask.body) if ask.body is not None else {}
    changes.pop("kind", None)
    await _q(ask).configure(**changes)
    return Answer((await show(ask)).value, 201 if made else 200)


async def delete(ask: Ask) -> Answer:
    """Delete the queue with all that is in it."""
    assert isinstance(ask.queue, OpenBucket)
    await ask.queue.queue.delete()
    ask.app.queues.forget_bucket(ask.queue)
    return Answer(status=204)


async def redriven(ask: Ask) -> Answer:
    """Put dead letters of a bucket queue back as new messages."""
    raise WrongKind("a fair queue redrives submissions: POST submissions/{id}/redrive", allow=[])


async def purged(ask: Ask) -> Answer:
    """Remove dead letters of a bucket queue for good."""
    raise WrongKind(
        "a fair queue has no dead letters to purge; its dead chunks go with their submission", allow=[]
    )


# By the name of the route; a bucket queue does not have the others.
HANDLERS: Final[dict[str, Callable[[Ask], Awaitable[Answer]]]] = {
    "make_queue": make,
    "show_queue": show,
    "delete_queue": delete,
    "put": put,
    "reserve": reserve,
    "complete": complete,
    "fail": fail,
    "renew": renew,
    "release": release,
    "list_dead": dead,
    "redrive_letters": redrive,
    "purge_letters": purge,
    "show_stats": stats,
}
_BRINGS: Final = (
    "put",
    "fail",
    "release",
    "redrive_letters",
)  # after these there may be something to hand out
# What is another type than a fair queue's.
GIVES: Final[dict[str, Any]] = {
    "make_queue": qv.BucketView,
    "show_queue": qv.BucketView,
    "show_stats": BucketStats,
}
