"""Fairway for event loops: `fairway.open` with `await`.

Guards: a waiting call is a future, not a thread, so ten thousand of them are cheap.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from fairway.client.address import Address
from fairway.errors import Closed
from fairway.face.bucket.queue import AsyncBucketQueue
from fairway.face.queue import AsyncQueue
from fairway.face.verbs import Verbs
from fairway.limits import WINDOW_ROWS
from fairway.opening import address_of, bucket_only
from fairway.runtime.asked import Asked, Kind, Transport, is_bucket
from fairway.runtime.looping import LoopPort
from fairway.runtime.objects import ObstoreObjects
from fairway.runtime.opening import enter, writer
from fairway.runtime.urls import Place
from fairway.runtime.way import Member

__all__ = ["AsyncBucketQueue", "AsyncQueue", "open"]


class _Closes(Protocol):
    async def close(self) -> None: ...


Q = TypeVar("Q", bound=_Closes)


class _Opening(Generic[Q]):
    """A queue that is being opened: `async with` it, or await it."""

    def __init__(self, begin: Callable[[], Awaitable[Q]]) -> None:
        self._begin = begin
        self._opened: Q | None = None

    def __await__(self) -> Generator[Any, None, Q]:
        return self._begin().__await__()

    async def __aenter__(self) -> Q:
        self._opened = await self._begin()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()


class _Entrance:
    """Enters a queue in a thread; whoever gives up meanwhile leaves nothing open."""

    def __init__(self, enter: Callable[[], tuple[Member, Callable[[], None]]]) -> None:
        self._open_member = enter
        self._lock = threading.Lock()
        self._given_up = False
        self._entered: Callable[[], None] | None = None

    async def open(self) -> AsyncQueue:
        opening = asyncio.create_task(asyncio.to_thread(self._enter))
        try:
            member, let_go = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread cannot be cancelled; what it opens is let go of, by it or, if it has opened already, here.
            opening.add_done_callback(lambda task: task.cancelled() or task.exception())
            with self._lock:
                self._given_up = True
            if self._entered is not None:
                await asyncio.to_thread(self._entered)
            raise
        return AsyncQueue(member.name, _verbs(), LoopPort(member, let_go))

    def _enter(self) -> tuple[Member, Callable[[], None]]:
        member, let_go = self._open_member()
        with self._lock:
            if not self._given_up:
                self._entered = let_go
                return member, let_go
        let_go()
        raise Closed


async def _open_bucket(url: Place, queue: str, address: Address | None, asked: Asked) -> AsyncBucketQueue:
    if address is not None:
        from fairway.client.bucket_queues import open_far_bucket_async

        return await open_far_bucket_async(address, asked.create)

    def begin() -> AsyncBucketQueue:
        from fairway.runtime.bucket.opening import open_bucket_async

        return open_bucket_async(url, queue, create=asked.create, options=asked.options)

    opening = asyncio.create_task(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # A thread cannot be cancelled: what it opens is closed when it is there.
        opening.add_done_callback(_close_unasked)
        raise


def _close_unasked(opening: asyncio.Task[AsyncBucketQueue]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        asyncio.get_running_loop().create_task(opening.result().close())


async def _open_address(address: Address, create: bool) -> AsyncQueue:
    from fairway.client.looping import AsyncHttpPort

    port = AsyncHttpPort(address)
    try:
        await port.enter(create)
    except BaseException:
        await port.close()
        raise
    return AsyncQueue(address.queue, _verbs(), port)


def _verbs() -> Verbs:
    return Verbs(ObstoreObjects(), writer, None, _task)


def _task() -> int:
    """Which task asks, for as long as it lives."""
    return id(asyncio.current_task())


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
) -> _Opening[AsyncQueue]: ...
@overload
def open(
    url: Place | Sequence[str],
    queue: str = "default",
    *,
    kind: Literal["bucket"],
    create: bool = True,
    token: str | None = None,
    options: Mapping[str, object] | None = None,
) -> _Opening[AsyncBucketQueue]: ...
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
) -> _Opening[AsyncQueue] | _Opening[AsyncBucketQueue]:
    """Open a queue for the running event loop: `async with fairway.aio.open("work.db") as q:`.

    It takes what `fairway.open` takes.
    """
    asked = Asked(create, forget_leases, host, window_rows, transport, standby, options)
    address = address_of(url, queue, token, asked)
    if is_bucket(kind):
        bucket_only(address, asked)
        return _Opening(lambda: _open_bucket(url, queue, address, asked))  # pyright: ignore[reportArgumentType]
    if address is not None:
        return _Opening(lambda: _open_address(address, create))
    return _Opening(_Entrance(lambda: enter(url, queue, asked)).open)  # pyright: ignore[reportArgumentType]
