"""The two public forms of a queue, made from one text of the verbs.

Guards: `Queue` and `AsyncQueue` have the same verbs with the same arguments and docstrings.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from fairway.errors import BadArgument
from fairway.face.driving import AsyncPort, Port, drive, drive_async, iterate, iterate_async
from fairway.face.steps import Listing, Steps
from fairway.face.verbs import Verbs

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _told(call: Callable[..., Any], verb: Callable[..., Any], owner: str, shape: str = "{}") -> Any:
    """Give a made function the name, docstring and signature of its verb, and what it returns."""
    update_wrapper(call, verb)
    told = inspect.signature(verb)
    inner = str(told.return_annotation).partition("[")[2].removesuffix("]")
    call.__signature__ = told.replace(return_annotation=shape.format(inner))  # pyright: ignore[reportFunctionMemberAccess]
    call.__annotations__ = {**verb.__annotations__, "return": shape.format(inner)}
    call.__qualname__ = f"{owner}.{verb.__name__}"
    return call


def blocking(verb: Callable[Concatenate[Any, P], Steps[R]]) -> Callable[Concatenate[Any, P], R]:
    def call(self: Queue, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return drive(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "Queue")


def listing(verb: Callable[Concatenate[Any, P], Listing[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    def call(self: Queue, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "Queue", "Iterator[{}]")


def awaiting(verb: Callable[Concatenate[Any, P], Steps[R]]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    async def call(self: AsyncQueue, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await drive_async(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "AsyncQueue")


def streaming(
    verb: Callable[Concatenate[Any, P], Listing[T]],
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    def call(self: AsyncQueue, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return iterate_async(verb(self._verbs, *args, **kwargs), self._port)

    return _told(call, verb, "AsyncQueue", "AsyncIterator[{}]")


class Queue:
    """An open queue. Any number of threads may use it at once; close it, or use it as a context manager."""

    def __init__(
        self,
        name: str,
        verbs: Verbs,
        port: Port,
        again: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    ) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port
        self._again = again  # what opens it in another process

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
        return f"<fairway.Queue {self.name!r}>"


class AsyncQueue:
    """An open queue for one event loop: the verbs of `Queue` with `await`, its iterators with `async for`."""

    def __init__(self, name: str, verbs: Verbs, port: AsyncPort) -> None:
        self.name = name
        self._verbs = verbs
        self._port = port

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

    async def close(self) -> None:
        """Wait for what is being stored, then let go of the queue. Closing again does nothing."""
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
        return f"<fairway.AsyncQueue {self.name!r}>"
