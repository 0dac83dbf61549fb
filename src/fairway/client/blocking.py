"""The port of blocking queues on a server: one pool of connections for all threads.

Guards: an interrupted caller's connection is closed, so that the server gives back what it was just handing out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from typing import Any

from fairway import limits
from fairway.client import wire
from fairway.client.address import Address
from fairway.client.connections import LOST, Connections, NotConnected
from fairway.client.core import Client, Core, Exchange, Heard, Lost, Rest, Send
from fairway.client.forking import OwnProcess
from fairway.client.rest import Call
from fairway.engine.commands import Command, Part, Release, Reserved
from fairway.errors import FairwayError
from fairway.face.reads import Read


class HttpPort(OwnProcess):
    """One open queue on a server, for threads. A forked child has connections and numbers of its own."""

    def __init__(self, address: Address, client: Callable[[Address], Client] = Core.of) -> None:
        self._address = address
        self._client = client
        super().__init__()

    def _begin(self) -> None:
        self._core = self._client(self._address)
        self._kept = threading.local()
        self._turns = threading.BoundedSemaphore(limits.LANES_MAX)
        self._http = Connections(self._address)

    def enter(self, create: bool) -> None:
        """Find the queue, or make it."""
        self._run(self._core.enter(create))

    def ask(self, command: Command | Read | Call) -> Any:
        self._own()
        waits = getattr(command, "wait_seconds", 0.0) or getattr(command, "seconds", 0.0)
        with nullcontext() if waits else self._turns:
            return self._run(self._core.ask(command, self._pages()))

    def _pages(self) -> wire.Pages:
        try:
            return self._kept.pages
        except AttributeError:
            self._kept.pages = {}
            return self._kept.pages

    def _run(self, exchange: Exchange[Any]) -> Any:
        try:
            step = next(exchange)
            while True:
                step = self._after(exchange, step)
        except StopIteration as end:
            return end.value

    def _after(self, exchange: Generator[Any, Any, Any], step: Send | Rest) -> Send | Rest:
        heard = None
        try:
            if isinstance(step, Send):
                heard = self._send(step)
            else:
                time.sleep(step.seconds)
        except BaseException as error:
            return exchange.throw(error)
        return exchange.send(heard)

    def _send(self, step: Send) -> Heard | Lost:
        path = self._address.path_of(step.path)
        try:
            answer = self._http.call(step.node, step.method, path, step.body, step.seconds)
        except NotConnected as error:
            return Lost(str(error), sent=False)
        except LOST as error:
            return Lost(f"{type(error).__name__}: {error}".rstrip(": "))
        media, after = answer.headers.get("content-type", ""), wire.seconds_after(answer.headers)
        return Heard(answer.status, media, answer.body, after)

    def unreceived(self, reserved: Reserved) -> None:
        """Leases whose receiver failed before it could return them go back uncounted."""
        spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
        with suppress(FairwayError):  # then they end by themselves, at their deadline
            self.ask(Release([Part(reserved.epoch, reserved.count, reserved.seal, spans)]))

    def close(self) -> None:
        if self._ended():
            self._run(self._farewell())
            self._http.close()

    def _farewell(self) -> Exchange[None]:
        """Goodbyes are a courtesy: the first that is not answered is the last."""
        steps = self._core.goodbye()
        for step in steps:
            heard = yield step
            if not isinstance(heard, Heard):
                return
