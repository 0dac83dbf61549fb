"""The port of awaiting queues on a server: one pool of connections for one event loop.

Guards: a cancelled caller's connection is closed, so that the server gives back what it was just handing out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

from fairway import limits
from fairway.client import wire
from fairway.client.address import Address
from fairway.client.core import Client, Core, Exchange, Heard, Lost, Send
from fairway.client.rest import Call
from fairway.engine.commands import Command, Part, Release, Reserved
from fairway.errors import Closed, FairwayError, NeedMissing
from fairway.face.reads import Read

try:
    import httpx2
except ModuleNotFoundError as missing:
    if missing.name != "httpx2":
        raise
    raise NeedMissing(
        "an event loop calls a server through httpx2: pip install 'fairway[client]'"
    ) from missing

_THREADS = 8  # for objects, which block
_POOL = httpx2.Limits(max_connections=None, max_keepalive_connections=limits.LANES_MAX)


class AsyncHttpPort:
    """One open queue on a server, for one event loop."""

    def __init__(self, address: Address, client: Callable[[Address], Client] = Core.of) -> None:
        self._address = address
        self._closed = False
        self._core = client(address)
        self._kept: WeakKeyDictionary[Any, wire.Pages] = WeakKeyDictionary()
        self._turns = asyncio.Semaphore(limits.LANES_MAX)
        self._http = httpx2.AsyncClient(limits=_POOL, **address.options())
        self._pool = ThreadPoolExecutor(_THREADS, f"fairway http {address.queue}")
        self._returning: set[asyncio.Task[Any]] = set()

    async def enter(self, create: bool) -> None:
        """Find the queue, or make it."""
        await self._run(self._core.enter(create))

    async def ask(self, command: Command | Read | Call) -> Any:
        if self._closed:
            raise Closed
        waits = getattr(command, "wait_seconds", 0.0) or getattr(command, "seconds", 0.0)
        kept = self._kept.setdefault(asyncio.current_task(), {})
        async with nullcontext() if waits else self._turns:
            return await self._run(self._core.ask(command, kept))

    async def _run(self, exchange: Exchange[Any]) -> Any:
        try:
            step = next(exchange)
            while True:
                heard = None
                try:
                    if isinstance(step, Send):
                        heard = await self._send(step)
                    else:
                        await asyncio.sleep(step.seconds)
                except BaseException as error:
                    step = exchange.throw(error)
                else:
                    step = exchange.send(heard)
        except StopIteration as end:
            return end.value

    async def _send(self, step: Send) -> Heard | Lost:
        timeout = httpx2.Timeout(step.seconds, connect=limits.CONNECT_SECONDS, pool=None)
        url = self._address.nodes[step.node] + self._address.path_of(step.path)
        try:
            answer = await self._http.request(step.method, url, content=step.body, timeout=timeout)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return Lost(f"{type(error).__name__}: {error}".rstrip(": "), sent=False)
        except (httpx2.TransportError, OSError) as error:
            return Lost(f"{type(error).__name__}: {error}".rstrip(": "))
        media, after = answer.headers.get("content-type", ""), wire.seconds_after(answer.headers)
        return Heard(answer.status_code, media, answer.content, after)

    async def do(self, function: Callable[[], Any]) -> Any:
        """Run what blocks in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def unreceived(self, reserved: Reserved) -> None:
        """Leases whose receiver failed before it could return them go back uncounted."""
        task = asyncio.ensure_future(self._give_back(reserved))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _give_back(self, reserved: Reserved) -> None:
        spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
        release = Release([Part(reserved.epoch, reserved.count, reserved.seal, spans)])
        with suppress(FairwayError):  # then they end by themselves, at their deadline
            await self._run(self._core.ask(release, {}))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._returning:
            await asyncio.wait(self._returning)
        await self._run(self._farewell())
        await self._http.aclose()
        self._pool.shutdown(wait=False)

    def _farewell(self) -> Exchange[None]:
        """Goodbyes are a courtesy: the first that is not answered is the last."""
        for step in self._core.goodbye():
            heard = yield step
            if not isinstance(heard, Heard):
                return
