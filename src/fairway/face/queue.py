"""The two public forms of a queue, made from one text of the verbs."""

from __future__ import annotations

from fairway.face.forms import Awaiting, Blocking, awaiting, blocking, listing, streaming
from fairway.face.verbs import Verbs


class Queue(Blocking):
    """An open queue. Any number of threads may use it at once; close it, or use it as a context manager."""

    submit = blocking(Verbs.submit)
    submit_many = blocking(Verbs.submit_many)
    put = blocking(Verbs.put)
    put_many = blocking(Verbs.put_many)

    reserve = blocking(Verbs.reserve)
    complete = blocking(Verbs.complete)
    fail = blocking(Verbs.fail)
    renew = blocking(Verbs.renew)
    release = blocking(Verbs.release)
    trim = blocking(Verbs.trim)
    join = blocking(Verbs.join)
    finish = blocking(Verbs.finish)
    payload = blocking(Verbs.payload)

    submission = blocking(Verbs.submission)
    wait = blocking(Verbs.wait)
    read = blocking(Verbs.read)
    events_arrow = blocking(Verbs.events_arrow)
    stats = blocking(Verbs.stats)
    consumers = blocking(Verbs.consumers)
    explain = blocking(Verbs.explain)

    cancel = blocking(Verbs.cancel)
    redrive = blocking(Verbs.redrive)
    pause = blocking(Verbs.pause)
    resume = blocking(Verbs.resume)
    set_weight = blocking(Verbs.set_weight)
    configure = blocking(Verbs.configure)

    results = listing(Verbs.results)
    winners = listing(Verbs.winners)
    submissions = listing(Verbs.submissions)
    dead = listing(Verbs.dead)
    events = listing(Verbs.events)
    tenants = listing(Verbs.tenants)

    def close(self) -> None:
        """Wait for what is being stored, then let go of the queue. Closing again does nothing."""
        super().close()


class AsyncQueue(Awaiting):
    """An open queue for one event loop: the verbs of `Queue` with `await`, its iterators with `async for`."""

    submit = awaiting(Verbs.submit)
    submit_many = awaiting(Verbs.submit_many)
    put = awaiting(Verbs.put)
    put_many = awaiting(Verbs.put_many)

    reserve = awaiting(Verbs.reserve)
    complete = awaiting(Verbs.complete)
    fail = awaiting(Verbs.fail)
    renew = awaiting(Verbs.renew)
    release = awaiting(Verbs.release)
    trim = awaiting(Verbs.trim)
    join = awaiting(Verbs.join)
    finish = awaiting(Verbs.finish)
    payload = awaiting(Verbs.payload)

    submission = awaiting(Verbs.submission)
    wait = awaiting(Verbs.wait)
    read = awaiting(Verbs.read)
    events_arrow = awaiting(Verbs.events_arrow)
    stats = awaiting(Verbs.stats)
    consumers = awaiting(Verbs.consumers)
    explain = awaiting(Verbs.explain)

    cancel = awaiting(Verbs.cancel)
    redrive = awaiting(Verbs.redrive)
    pause = awaiting(Verbs.pause)
    resume = awaiting(Verbs.resume)
    set_weight = awaiting(Verbs.set_weight)
    configure = awaiting(Verbs.configure)

    results = streaming(Verbs.results)
    winners = streaming(Verbs.winners)
    submissions = streaming(Verbs.submissions)
    dead = streaming(Verbs.dead)
    events = streaming(Verbs.events)
    tenants = streaming(Verbs.tenants)
