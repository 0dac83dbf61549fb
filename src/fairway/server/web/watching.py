"""Watching a queue: one task per queue and process looks, however many browsers are shown what it sees.

Guards: nothing is looked at that nobody watches; a look has bounds, whatever happens in the queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from fairway import limits
from fairway.engine.commands import QueueStats, TenantView
from fairway.errors import FairwayError, NotFound, OurError
from fairway.face.reads import Describe, ReadEvents
from fairway.model.event import Event, events_of
from fairway.model.ids import seconds_of
from fairway.server.queues import OpenQueue
from fairway.server.web.recent import Line, Point, Recent
from fairway.server.web.tail import Row, first_since

_log: Final = logging.getLogger("fairway.server")
Get = Callable[[str], Awaitable[OpenQueue]]


class View(msgspec.Struct, frozen=True):
    """What one look shows."""

    number: int  # of the look
    time: float
    stats: QueueStats
    tenants: list[Line]
    others: Line | None
    points: list[Point]
    handed: float | None  # per second
    completed: float | None
    fairness: float | None


class Watch:
    """Looks at one queue as long as somebody asks."""

    def __init__(self, name: str, get: Get) -> None:
        self.recent = Recent()
        self.drawn: dict[bool, tuple[int, bytes]] = {}  # the look as it was drawn, with buttons or without
        self._name, self._get = name, get
        self._after = -1  # of the event log; -1: not looked at yet
        self._known: OrderedDict[int, str] = OrderedDict()
        self._view: View | None = None
        self._error: FairwayError | None = None
        self._news = asyncio.Event()
        self._poked = asyncio.Event()
        self._until = 0.0
        self._waiting = 0  # viewers; a machine that stood still for long must not leave them without a look
        self._task: asyncio.Task[None] | None = None

    async def view(self, after: int = 0) -> View:
        """The latest look, or the first one after a number; the queue's error if it cannot be looked at."""
        while True:
            self._until = time.monotonic() + limits.DASHBOARD_LINGER_SECONDS
            if self._task is None or self._task.done():
                self._error = None
                self._task = asyncio.ensure_future(self._run())
            if self._view is not None and self._view.number > after:
                return self._view
            self._waiting += 1
            try:
                await self._news.wait()
            finally:
                self._waiting -= 1
            if self._error is not None:
                raise self._error

    @property
    def idle(self) -> bool:
        return self._task is None or self._task.done()

    def poke(self) -> None:
        """Look now: something was changed from here."""
        self._poked.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        self._after, self.recent = -1, Recent()
        try:
            while self._waiting or time.monotonic() < self._until:
                self._view = await self._look(await self._get(self._name))
                self._tell()
                crowded = self._view.stats.tenants > limits.DASHBOARD_TRACKED_TENANTS_MAX
                try:
                    async with asyncio.timeout(
                        limits.DASHBOARD_SLOW_SECONDS if crowded else limits.DASHBOARD_SECONDS
                    ):
                        await self._poked.wait()
                except TimeoutError:
                    pass
                self._poked.clear()
        except FairwayError as error:
            self._fail(error)
        except Exception:
            _log.exception("a queue cannot be watched")
            self._fail(OurError())

    def _fail(self, error: FairwayError) -> None:
        self._view, self._error = None, error
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _look(self, queue: OpenQueue) -> View:
        now = time.time()
        await self._read_log(queue, now)
        stats = await queue.queue.stats()
        tenants: list[TenantView] = [one async for one in queue.queue.tenants()]
        self.recent.look(now, stats, tenants)
        lines, others = self.recent.top()
        last = self.recent.points[-1]
        number = self._view.number + 1 if self._view else time.monotonic_ns()
        return View(
            number, now, stats, lines, others, list(self.recent.points), last.handed, last.completed, last.fairness
        )  # fmt: skip

    # -- the event log: the seconds before the first look, and how long chunks waited

    async def _read_log(self, queue: OpenQueue, now: float) -> None:
        async def read(after: int, limit: int) -> list[Row]:
            return await queue.port.ask(ReadEvents(after, limit))

        if self._after < 0:
            await self._seed(read, now)
        waited: list[Event] = []
        for _ in range(limits.DASHBOARD_READS_MAX):
            rows = await read(self._after, limits.DASHBOARD_GROUPS)
            for row in rows:
                waited += self._first_handed(row)
            self._after = rows[-1][0] if rows else self._after
            if len(rows) < limits.DASHBOARD_GROUPS:
                break
        else:
            self._after = await first_since(read, now)  # more happens than can be looked at
        await self._count(queue, waited)

    async def _seed(self, read: Callable[[int, int], Awaitable[list[Row]]], now: float) -> None:
        since = now - limits.DASHBOARD_HISTORY_SECONDS
        last = await first_since(read, float("inf"))
        after = await first_since(read, since)
        if last - after > limits.DASHBOARD_SEED_GROUPS:
            after = last - limits.DASHBOARD_SEED_GROUPS
            since = now
        handed: Counter[int] = Counter()
        completed: Counter[int] = Counter()
        while rows := await read(after, limits.DASHBOARD_GROUPS):
            for number, at, body in rows:
                since = min(since, at)
                for event in events_of(number, body):
                    self._note(event)
                    if event.what == "reserved":
                        handed[int(event.time)] += event.count
                    elif event.what == "completed":
                        completed[int(event.time)] += event.count
            after = rows[-1][0]
            if after >= last:
                break
        self._after = after
        self.recent.seed(now, handed, completed, since)

    def _first_handed(self, row: Row) -> list[Event]:
        """The events of a group in which chunks were handed out for the first time."""
        found: list[Event] = []
        for event in events_of(row[0], row[2]):
            self._note(event)
            if event.what == "reserved" and event.attempt == 1:
                found.append(event)
        return found

    def _note(self, event: Event) -> None:
        if event.what == "submitted":
            self._remember(event.submission, event.tenant)

    def _remember(self, submission: int, tenant: str) -> None:
        self._known[submission] = tenant
        self._known.move_to_end(submission)
        if len(self._known) > limits.DASHBOARD_KNOWN_ROWS:
            self._known.popitem(last=False)

    async def _count(self, queue: OpenQueue, waited: list[Event]) -> None:
        asked = 0
        for event in waited:
            tenant = self._known.get(event.submission)
            if tenant is None and asked < limits.DASHBOARD_LOOKUPS_MAX:
                asked += 1
                tenant = await _tenant_of(queue.port, event.submission)
                if tenant is not None:
                    self._remember(event.submission, tenant)
            if tenant is not None:
                seconds = max(0.0, event.time - seconds_of(event.submission))
                self.recent.waits.add(event.time, tenant, seconds, event.count)


async def _tenant_of(port: Any, submission: int) -> str | None:
    try:
        return (await port.ask(Describe(submission))).tenant
    except NotFound:
        return None  # its retention is over


class Watches:
    """The watched queues of one process."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._watches: dict[str, Watch] = {}

    def of(self, queue: str) -> Watch:
        """The watch of a queue; the caller has checked that it may be looked at."""
        for name in [name for name, watch in self._watches.items() if watch.idle and name != queue]:
            del self._watches[name]
        return self._watches.setdefault(queue, Watch(queue, self._get))

    def poke(self, queue: str) -> None:
        watch = self._watches.get(queue)
        if watch is not None:
            watch.poke()

    async def close(self) -> None:
        for watch in self._watches.values():
            await watch.close()
