"""The line before a bucket queue: who waits for messages in this process, first come first served.

Guards: one looks for all, so that waiting costs a process the same for one caller and for ten thousand; what was taken
for a caller who is gone goes back.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from fairway import limits
from fairway.face.bucket.leases import BucketLease
from fairway.face.bucket.queue import AsyncBucketQueue

Taken = list[BucketLease]


@dataclass(eq=False)
class _Waiter:
    """One call that waits; `told` are its leases, or none when its time is over."""

    max: int
    lease_seconds: float | None
    told: asyncio.Future[Taken] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def tell(self, leases: Taken) -> bool:
        """False: it has had its answer, or does not want one any more."""
        if self.told.done():
            return False
        self.told.set_result(leases)
        return True


class Line:
    """Those who wait for one bucket queue, in one event loop. `give_back` takes leases that reached nobody."""

    def __init__(self, queue: AsyncBucketQueue, give_back: Callable[[Taken], None]) -> None:
        self._queue = queue
        self._give_back = give_back
        self._waiting: OrderedDict[_Waiter, None] = OrderedDict()
        self._news = asyncio.Event()
        self._looker: asyncio.Task[None] | None = None
        self._ending: BaseException | None = None

    async def reserve(self, max: int, lease_seconds: float | None, wait_seconds: float) -> Taken:
        """Up to `max` messages; with none, those that come first within the time to wait."""
        until = time.monotonic() + wait_seconds
        if not self._waiting or wait_seconds <= 0:  # else somebody has just looked, and is before this one
            found = await self._look(max, lease_seconds)
            if found or until <= time.monotonic():
                return found
        if self._ending is not None:
            raise self._ending
        waiter = _Waiter(max, lease_seconds)
        timer = asyncio.get_running_loop().call_later(until - time.monotonic(), waiter.tell, [])
        self._waiting[waiter] = None
        if self._looker is None:
            self._looker = asyncio.ensure_future(self._look_for_all())
        try:
            return await waiter.told
        except asyncio.CancelledError:
            if waiter.told.done() and not waiter.told.cancelled() and waiter.told.exception() is None:
                self._give_back(waiter.told.result())
            raise
        finally:
            timer.cancel()
            self._waiting.pop(waiter, None)
            if not self._waiting:
                self._news.set()

    def wake(self) -> None:
        """Something was put through this process: nobody need wait for the next look."""
        self._news.set()

    async def end(self, why: BaseException) -> None:
        """Nobody waits any more."""
        self._ending = why
        self._fail([*self._waiting], why)
        self._news.set()
        if self._looker is not None:
            await asyncio.wait((self._looker,))

    # -- looking

    async def _look(self, max: int, lease_seconds: float | None) -> Taken:
        """One look that is carried to its end: what it takes for a caller who is gone goes back."""
        look = asyncio.ensure_future(self._queue.reserve(max, lease_seconds=lease_seconds))
        try:
            return await asyncio.shield(look)
        except asyncio.CancelledError:
            look.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, look: asyncio.Task[Taken]) -> None:
        if not look.cancelled() and look.exception() is None:
            self._give_back(look.result())

    async def _look_for_all(self) -> None:
        try:
            while first := self._first():
                self._news.clear()
                try:
                    found = await self._queue.reserve(self._wanted(first), lease_seconds=first.lease_seconds)
                except Exception as error:
                    self._fail(self._like(first), error)
                    continue
                if found:
                    self._hand_out(found, first.lease_seconds)
                else:
                    await self._rest()
        finally:
            self._looker = None

    def _first(self) -> _Waiter | None:
        return next((one for one in self._waiting if not one.told.done()), None)

    def _like(self, first: _Waiter) -> list[_Waiter]:
        """Who wants leases of the same length as the first one, in order; a look is for them together."""
        return [
            one for one in self._waiting if one.lease_seconds == first.lease_seconds and not one.told.done()
        ]

    def _wanted(self, first: _Waiter) -> int:
        most, wanted = max(first.max, limits.LINE_MESSAGES_MAX), 0
        for one in self._waiting:
            if one.lease_seconds == first.lease_seconds and not one.told.done():
                wanted += one.max
            if wanted >= most:
                return most
        return wanted

    def _hand_out(self, found: Taken, lease_seconds: float | None) -> None:
        for one in [*self._waiting]:
            if not found:
                return
            if one.lease_seconds == lease_seconds and one.tell(found[: one.max]):
                found = found[one.max :]
                self._waiting.pop(one, None)
        self._give_back(found)

    def _fail(self, waiters: list[_Waiter], error: BaseException) -> None:
        for one in waiters:
            if not one.told.done():
                one.told.set_exception(error)
            self._waiting.pop(one, None)

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), limits.BUCKET_POLL_SECONDS_MAX)
