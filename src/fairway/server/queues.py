"""The queues that an HTTP process has open, each for its event loop.

Guards: a queue that does not exist is never made by asking for it; one that was deleted and made again is opened anew;
none is said to be missing before the engine's process has made those that are to be there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from fairway.errors import Closed, FairwayError, NoHost, NotFound, QueueHeld
from fairway.face.bucket.leases import BucketLease
from fairway.face.bucket.queue import AsyncBucketQueue
from fairway.face.keeping import KeptPages
from fairway.face.queue import AsyncQueue
from fairway.face.verbs import Verbs
from fairway.limits import HOST_WAIT_SECONDS, READY_SECONDS
from fairway.runtime.looping import LoopPort
from fairway.runtime.objects import ObstoreObjects
from fairway.runtime.opening import writer
from fairway.server.desk import Desk
from fairway.server.hosting import no_queue
from fairway.server.line import Line
from fairway.server.places import FilePlace, Place

_NAMES_SECONDS = 1.0  # how old a list of names may be
_MISSED_SECONDS = 0.1  # and one that does not have what is asked for: another process may just have made it
_POLL_SECONDS = 0.05

T = TypeVar("T")


class OpenQueue:
    """One queue: its verbs for REST, its port for clients that send commands."""

    def __init__(self, name: str, number: int, port: LoopPort, kept: KeptPages, member: Any = None) -> None:
        self.name = name
        self.number = number
        self._member = member
        self.port = port
        self.kept = kept
        self.verbs = Verbs(ObstoreObjects(), writer, None, _task)
        self.queue = AsyncQueue(name, self.verbs, port)

    @property
    def here(self) -> bool:
        """Whether calls can be carried out by this node now."""
        return getattr(self._member, "here", True)

    @property
    def elsewhere(self) -> str:
        """The address of the node that owns the queue; "": this one, or unknown."""
        return getattr(self._member, "elsewhere", "")

    def numbered(self, port: Any) -> AsyncQueue:
        """The same queue over a port that gives its calls the caller's number."""
        return AsyncQueue(self.name, self.verbs, port)


class OpenBucket:
    """One bucket queue: every process that has it open is as good as any other."""

    here, elsewhere = True, ""
    port: Any = None

    def __init__(self, queue: AsyncBucketQueue) -> None:
        self.name = queue.name
        self.queue = queue
        self.line = Line(queue, self.give_back)
        self._returning: set[asyncio.Task[Any]] = set()

    def give_back(self, leases: list[BucketLease]) -> None:
        """Leases that reached nobody; if that fails they end by themselves."""
        if leases:
            task = asyncio.ensure_future(self._release([lease.receipt for lease in leases]))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _release(self, receipts: list[str]) -> None:
        with suppress(FairwayError):
            await self.queue.release(receipts)
            self.line.wake()

    async def close(self) -> None:
        await self.line.end(Closed())
        if self._returning:
            await asyncio.wait(self._returning)
        await self.queue.close()


class OpenQueues:
    """Open queues by name, for one event loop."""

    def __init__(self, place: Place | str, desk: Desk, host: bool) -> None:
        self._place: Place = FilePlace(place) if isinstance(place, str) else place
        self._desk = desk
        self._host = host  # whether engines run in this process
        self._open: dict[str, OpenQueue] = {}
        # For all of them: a submission's id is that of no other queue, not of one deleted either.
        self._kept = KeptPages()
        self._opening: dict[str, asyncio.Task[OpenQueue]] = {}
        self._names: dict[str, int] = {}
        self._names_until = 0.0
        self._begun: asyncio.Task[bool] | None = None  # once it has an answer: names are worth reading
        self._answering: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[Any]] = set()
        self._buckets: dict[str, OpenBucket] = {}
        self._finding = asyncio.Lock()
        self.closed = False

    async def find(self, name: str) -> OpenQueue | OpenBucket:
        """A queue of either kind, opened if it is the first use; NotFound if there is none."""
        known = self._buckets.get(name)
        if known is not None:
            return known
        try:
            return await self.get(name)
        except NotFound:
            return await self.bucket(name, create=False)

    async def bucket(self, name: str, create: bool) -> OpenBucket:
        """A bucket queue; NotFound if there is none and it is not to be made."""
        async with self._finding:
            if name not in self._buckets:
                try:
                    opened = await asyncio.to_thread(self._place.bucket, name, create)
                except NotFound:
                    raise no_queue(name) from None
                self._buckets[name] = OpenBucket(opened)
            return self._buckets[name]

    async def bucket_names(self) -> list[str]:
        return await asyncio.to_thread(self._place.buckets)

    def forget_bucket(self, found: OpenBucket) -> None:
        """It was deleted: whoever asks for it next finds another of its name, or none."""
        if self._buckets.get(found.name) is found:  # and not that other one, which somebody has opened since
            del self._buckets[found.name]
            self._close(found.close())

    async def get(self, name: str) -> OpenQueue:
        """A fair queue, opened if it is the first use; NotFound if there is none."""
        found = self._open.get(name)
        if found is not None and time.monotonic() < self._names_until:
            return found
        number = (await self.names()).get(name)
        if number is None and time.monotonic() > self._names_until - _NAMES_SECONDS + _MISSED_SECONDS:
            self._names_until = 0.0
            number = (await self.names()).get(name)
        found = self._open.get(name)
        if found is not None and found.number == number:
            return found
        if found is not None:
            self._forget(name)
        if number is None:
            raise no_queue(name)
        task = self._opening.get(name)
        if task is None:
            task = self._opening[name] = asyncio.ensure_future(self._enter(name, number))
            task.add_done_callback(lambda _: self._opening.pop(name, None))
        return await asyncio.shield(task)

    async def names(self) -> dict[str, int]:
        """The queues, as they were a moment ago."""
        await self._begin()
        if time.monotonic() >= self._names_until:
            self._names = await asyncio.to_thread(self._place.names)
            self._names_until = time.monotonic() + _NAMES_SECONDS
        return self._names

    async def _begin(self) -> None:
        """Until the engine's process has begun, once; who comes meanwhile waits for the same answer."""
        if self._begun is None or (
            self._begun.done() and (self._begun.cancelled() or self._begun.exception())
        ):
            self._begun = asyncio.ensure_future(self._patiently(lambda: self._desk.ask("begin")))
        if not self._begun.done():
            await asyncio.shield(self._begun)

    async def ready(self) -> None:
        """That the engine's process answers now, or NoHost; it is asked once for all who want to know meanwhile."""
        await self.names()
        if self._answering is None or self._answering.done():
            self._answering = asyncio.ensure_future(self._answers())
        await asyncio.shield(self._answering)

    async def _answers(self) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._desk.ask("begin")
        except TimeoutError as error:
            raise NoHost("the engine's process does not answer; try again") from error

    async def make(self, name: str) -> bool:
        """See to it that there is such a queue; True if it is new."""
        made = await self._desk.ask("make", name)
        self._names_until = 0.0
        return made

    async def drop(self, name: str) -> None:
        """Delete a queue."""
        found = self._open.pop(name, None)
        if found is not None:
            await found.port.close()
        try:
            await self._desk.ask("drop", name)
        finally:
            self._names_until = 0.0

    async def close(self) -> None:
        self.closed = True
        for task in (self._begun, self._answering, *self._opening.values()):
            if task is not None:
                task.cancel()
        for name in list(self._open):
            self._forget(name)
        for found in list(self._buckets.values()):
            self.forget_bucket(found)
        if self._closing:
            await asyncio.wait(self._closing)

    def _forget(self, name: str) -> None:
        self._close(self._open.pop(name).port.close())

    def _close(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _enter(self, name: str, number: int) -> OpenQueue:
        async def enter() -> tuple[Any, Callable[[], None]]:
            await self._desk.ask("host", name)
            try:
                return await asyncio.to_thread(self._place.enter, name, False, self._host)
            except NotFound:
                raise no_queue(name) from None  # it was deleted a moment ago; the error names the file

        return self._opened(name, number, *await self._patiently(enter))

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The engine's process may have died since it was asked and be started again, or have too much to do to answer:
        nobody else holds a queue of this server, so it is asked once more."""
        until = time.monotonic() + HOST_WAIT_SECONDS
        while True:
            try:
                return await ask()
            except (NoHost, QueueHeld) as error:
                if time.monotonic() > until:
                    raise NoHost("the engine's process does not answer; try again") from error
                await asyncio.sleep(_POLL_SECONDS)

    def _opened(self, name: str, number: int, member: Any, let_go: Callable[[], None]) -> OpenQueue:
        if self.closed:
            let_go()
            raise Closed
        self._open[name] = OpenQueue(name, number, LoopPort(member, let_go), self._kept, member)
        return self._open[name]


def _task() -> int:
    """Which task asks, for as long as it lives."""
    return id(asyncio.current_task())
