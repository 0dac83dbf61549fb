"""Attending: the calls that wait, until they are answered or nobody may have their answer any more.

Guards: a wait is over when its caller goes away, when his token is revoked or expires, and when the server ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from fairway.client import wire
from fairway.engine.commands import Reserve, Wait
from fairway.errors import Busy, OwnerGone, Unauthorized
from fairway.limits import TOKEN_LOOK_SECONDS
from fairway.server import bucketing
from fairway.server.asking import Answer, Ask, NumberedPort
from fairway.server.bodies import Gone
from fairway.server.exchange import Exchange
from fairway.server.looking import Waiting
from fairway.server.routes import Route
from fairway.server.views import Reserving

if TYPE_CHECKING:
    from fairway.server.app import App

# Who shows this header, for this right on this queue; None: the callers of other nodes, who look at their tokens.
_Caller = tuple[bytes | None, str | None, str | None] | None


class Attending:
    """The waits of one event loop."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._waiting: dict[
            _Caller, dict[asyncio.Task[Any], Ask]
        ] = {}  # so that a look costs as much as callers
        self._look_due: asyncio.TimerHandle | None = None

    async def attended(self, route: Route, ask: Ask, exchange: Exchange) -> Answer:
        """Carry out what may wait, for as long as there is somebody who may have the answer."""
        task = asyncio.current_task()
        assert task is not None
        if exchange.gone:
            raise Gone
        if self._app.stopping:  # since its head came: nobody would end its wait
            if ask.queue is not None and not ask.queue.here:
                raise Busy("this node is ending; ask another one")
            _hasten(ask)
        exchange.on_gone = task.cancel
        caller = self._enter(task, ask)
        try:
            return await self._app.carried(route, ask)
        except asyncio.CancelledError:
            if not (exchange.gone or self._app.stopping or ask.over):
                raise
            task.uncancel()
        finally:
            exchange.on_gone = None
            self._leave(caller, task)
        if exchange.gone:
            raise Gone
        if ask.over:
            self._app.check_caller(ask)
            raise Unauthorized("this token ended while the call waited")
        return await self._ended(route, ask)

    async def _ended(self, route: Route, ask: Ask) -> Answer:
        """The server ends while a call waits."""
        assert ask.queue is not None
        if not ask.queue.here:
            raise Busy("this node is ending; ask another one")
        if _takes_numbered(ask):
            # It may have been carried out, and its leases have gone back: asked again under its number it would bring
            # them all the same. Who hears this repeats it and has its leases confirmed.
            raise OwnerGone("the server is ending; repeat the call under its number")
        _hasten(ask)
        if ask.number is not None:
            ask.port = NumberedPort(ask.queue.port, *ask.number)
        return await (bucketing.carried(route.name, ask) if bucketing.is_bucket(ask) else route.handler(ask))

    def stop(self) -> None:
        """The server ends, and with it every wait."""
        for tasks in self._waiting.values():
            for task in tasks:
                task.cancel()

    # -- tokens that end

    def _enter(self, task: asyncio.Task[Any], ask: Ask) -> _Caller:
        caller = None if ask.handed else (ask.authorization, ask.right, ask.params.get("queue"))
        self._waiting.setdefault(caller, {})[task] = ask
        if self._look_due is None:
            self._plan()
        return caller

    def _leave(self, caller: _Caller, task: asyncio.Task[Any]) -> None:
        tasks = self._waiting[caller]
        del tasks[task]
        if not tasks:
            del self._waiting[caller]

    def _plan(self) -> None:
        self._look_due = asyncio.get_running_loop().call_later(TOKEN_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """End the waits of callers whose token is over: they hold room, and their turn would bring work to nobody."""
        self._look_due = None
        for caller, tasks in self._waiting.items():
            if caller is None or self._app.still_allowed(next(iter(tasks.values()))):
                continue
            for task, ask in tasks.items():
                if not ask.over:
                    ask.over = True
                    task.cancel()
        if self._waiting:
            self._plan()


def _takes_numbered(ask: Ask) -> bool:
    """Whether it is a reserve with a number and no name, whose leases go back if its caller does not get them."""
    body = ask.body.command if isinstance(ask.body, wire.Asked) else ask.body
    numbered = bool(ask.body.client) if isinstance(ask.body, wire.Asked) else ask.number is not None
    return numbered and isinstance(body, Reserve | Reserving) and not body.consumer


def _hasten(ask: Ask) -> None:
    """The server ends: what is there now is told, and the caller asks another one."""
    ask.query = Waiting() if isinstance(ask.query, Waiting) else ask.query
    ask.body = _at_once(ask.body)


def _at_once(body: Any) -> Any:
    """A body that asks the same without waiting."""
    if isinstance(body, wire.Asked):
        command = body.command
        if isinstance(command, Reserve):
            command = msgspec.structs.replace(command, wait_seconds=0.0)
        elif isinstance(command, Wait):
            command = Wait(command.id, 0.0)
        return msgspec.structs.replace(body, command=command)
    if hasattr(body, "wait_seconds"):
        return msgspec.structs.replace(body, wait_seconds=0.0)
    return body
