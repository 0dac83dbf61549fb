"""Fairway for event loops: `fairway.open` with `await`.

Guards: a waiting call is a future, not a thread, so ten thousand of them are cheap.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator
from typing import Any

from fairway.errors import Closed
from fairway.face.queue import AsyncQueue
from fairway.face.verbs import Verbs
from fairway.runtime.host import Host
from fairway.runtime.looping import LoopPort
from fairway.runtime.objects import ObstoreObjects
from fairway.runtime.opening import enter, writer

__all__ = ["AsyncQueue", "open"]


class _Opening:
    """A queue that is being opened: `async with` it, or await it."""

    def __init__(self, url: str | os.PathLike[str], queue: str, create: bool, forget_leases: bool) -> None:
        self._url = url
        self._queue = queue
        self._create = create
        self._forget_leases = forget_leases
        self._opened: AsyncQueue | None = None
        self._lock = threading.Lock()
        self._given_up = False
        self._entered: Callable[[], None] | None = None

    async def _open(self) -> AsyncQueue:
        opening = asyncio.create_task(asyncio.to_thread(self._enter))
        try:
            host, let_go = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread cannot be cancelled; what it opens is let go of, by it or, if it has opened already, here.
            opening.add_done_callback(lambda task: task.cancelled() or task.exception())
            with self._lock:
                self._given_up = True
            if self._entered is not None:
                await asyncio.to_thread(self._entered)
            raise
        return AsyncQueue(host.name, Verbs(ObstoreObjects(), writer, None), LoopPort(host, let_go))

    def _enter(self) -> tuple[Host, Callable[[], None]]:
        host, let_go = enter(self._url, self._queue, create=self._create, forget_leases=self._forget_leases)
        with self._lock:
            if not self._given_up:
                self._entered = let_go
                return host, let_go
        let_go()
        raise Closed

    def __await__(self) -> Generator[Any, None, AsyncQueue]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncQueue:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()


def open(
    url: str | os.PathLike[str], queue: str = "default", *, create: bool = True, forget_leases: bool = False
) -> _Opening:
    """Open a queue for the running event loop: `async with fairway.aio.open("work.db") as q:`."""
    return _Opening(url, queue, create, forget_leases)
