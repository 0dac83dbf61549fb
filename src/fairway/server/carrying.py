"""Carrying out: a request is done here, or by the node that owns its queue.

Guards: a request that was handed on is never handed on again; one that may have been carried out is sent again only
if that has no second effect.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from fairway.client import wire
from fairway.client.lanes import Lanes
from fairway.engine.commands import Call, Command, Part, Release, Reserve
from fairway.errors import Busy, FairwayError, NotOwner, OwnerGone
from fairway.face.reads import Read
from fairway.limits import NODE_PATIENCE_SECONDS
from fairway.server.asking import Answer, Ask, NumberedPort, Sent
from fairway.server.handing import Handing, NoAnswer, NotArrived, leases_in
from fairway.server.routes import ROUTES, Route

if TYPE_CHECKING:
    from fairway.server.app import App

_POLL_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 0.5  # between two looks at who owns, while an answer is waited for
_CALL: Final = next(route for route in ROUTES if route.name == "call")
_log: Final = logging.getLogger("fairway.server")


class WatchedPort:
    """A port that knows whether something was done through it."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.changed = False
        self.do = port.do
        self.unreceived = port.unreceived

    async def ask(self, command: Command | Read, call: Call | None = None) -> Any:
        reply = await (self._port.ask(command) if call is None else self._port.ask(command, call))
        self.changed = self.changed or (not isinstance(command, Read) and Lanes.needed(command))
        return reply

    async def close(self) -> None:
        """The queue stays open for others."""


class Carrier:
    """Carries requests out for one event loop of a node."""

    def __init__(self, app: App, handing: Handing) -> None:
        self._app = app
        self._handing = handing
        self._returning: set[asyncio.Task[Any]] = set()

    async def carry(self, route: Route, ask: Ask) -> Answer:
        """Do it where it can be done; while the owner changes, wait for the next one."""
        until = time.monotonic() + NODE_PATIENCE_SECONDS
        lost = False
        while True:
            where = await self._where(ask, until, lost)
            try:
                if not where:
                    return await self._here(route, ask)
                return await self._there(where, route, ask)
            except NotOwner:
                if ask.handed:
                    raise
            except NotArrived as error:
                _log.info("%s", error)
            except NoAnswer as error:
                if not repeatable(route, ask):
                    raise OwnerGone from error
                lost = True
            await asyncio.sleep(_POLL_SECONDS)

    async def _where(self, ask: Ask, until: float, lost: bool) -> str:
        """The node that owns the queue; "": this one."""
        assert ask.queue is not None
        while True:
            if ask.queue.here:
                return ""
            where = ask.queue.elsewhere
            if where and ask.handed:
                raise NotOwner("this node does not own the queue any more")
            if time.monotonic() > until and lost:
                raise OwnerGone
            if time.monotonic() > until:
                raise Busy("no node answers for this queue now; repeat the call in a moment")
            if where:
                return where
            await asyncio.sleep(_POLL_SECONDS)

    async def _there(self, where: str, route: Route, ask: Ask) -> Answer:
        """The answer of the owner. One that was replaced can answer nothing any more, so nobody waits for it."""
        assert ask.queue is not None
        sending = self._handing.send(where, route, ask, lambda: self._app.still_allowed(ask))
        task = asyncio.ensure_future(sending)
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=_LOOK_SECONDS)
                if done:
                    return task.result()
                if ask.queue.here or (ask.queue.elsewhere and ask.queue.elsewhere != where):
                    raise NoAnswer(f"{where} was replaced")
        except (asyncio.CancelledError, NoAnswer):
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled() and task.exception() is None:  # it came all the same
                self.give_back(ask, leases_in(route, ask, task.result()))
            raise

    async def _here(self, route: Route, ask: Ask) -> Answer:
        assert ask.queue is not None
        watched = WatchedPort(ask.queue.port)
        ask.port = watched if ask.number is None else NumberedPort(watched, *ask.number)
        try:
            return await route.handler(ask)
        except NotOwner as error:
            if watched.changed and not repeatable(route, ask):
                raise OwnerGone from error
            raise

    # -- leases that reached nobody

    def give_back(self, ask: Ask, parts: list[Part]) -> None:
        """Release leases, wherever their queue is by now."""
        if parts:
            task = asyncio.ensure_future(self._release(ask, parts))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _release(self, ask: Ask, parts: list[Part]) -> None:
        asked = wire.Asked(Release(parts))
        path = f"/v1/queues/{ask.params['queue']}/call"
        sent = Sent("POST", path, b"", {b"content-type": wire.MSGPACK.encode()}, wire.asking(asked))
        mine = Ask(
            self._app, ask.token, ask.params, wire.MSGPACK, wire.MSGPACK, ask.queue, body=asked, sent=sent
        )
        try:
            await self.carry(_CALL, mine)
        except FairwayError as error:
            _log.info("leases that reached nobody end at their deadline: %s", error)
        finally:
            mine.held.now(0)

    async def close(self) -> None:
        if self._returning:
            await asyncio.wait(self._returning)
        await self._handing.close()


def repeatable(route: Route, ask: Ask) -> bool:
    """Whether sending it again has no second effect. A reserve has none, but its leases may have been given back."""
    if route.method in ("GET", "PUT"):
        return True
    if route.name == "call":
        command = ask.body.command
        return not isinstance(command, Reserve) and (bool(ask.body.client) or not Lanes.needed(command))
    return route.name == "register_client" or (ask.number is not None and route.name != "reserve")
