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
from fairway.runtime.looping import LoopPort
from fairway.runtime.objects import ObstoreObjects
from fairway.runtime.opening import enter, writer
from fairway.runtime.way import Member

__all__ = ["AsyncQueue", "open"]


def _task() -> int:
    """Which task asks, for as long as it lives."""
    return id(asyncio.current_task())


class _Opening:
    """A queue that is being opened: `async with` it, or await it."""

    def __init__(self, enter: Callable[[], tuple[Member, Callable[[], None]]]) -> None:
        self._open_member = enter
        self._opened: AsyncQueue | None = None
        self._lock = threading.Lock()
        self._given_up = False
        self._entered: Callable[[], None] | None = None

    async def _open(self) -> AsyncQueue:
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
        verbs = Verbs(ObstoreObjects(), writer, None, _task)
        return AsyncQueue(member.name, verbs, LoopPort(member, let_go))

    def _enter(self) -> tuple[Member, Callable[[], None]]:
        member, let_go = self._open_member()
        with self._lock:
            if not self._given_up:
                self._entered = let_go
                return member, let_go
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
    url: str | os.PathLike[str],
    queue: str = "default",
    *,
    create: bool = True,
    forget_leases: bool = False,
    host: bool = True,
) -> _Opening:
    """Open a queue for the running event loop: `async with fairway.aio.open("work.db") as q:`."""
    return _Opening(lambda: enter(url, queue, create=create, forget_leases=forget_leases, host=host))
