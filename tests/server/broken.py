"""Calls that broke off: they were sent to a process of a server, and it died before it answered.

Guards: a kill of one of several processes counts only if a call broke off there; one that merely waited for work, or
was on its way to another process, is none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from fairway.client.blocking import HttpPort
from fairway.client.connections import LOST, Answer, Connections, NotConnected


class Broken:
    """When each call that broke off was sent, and when its caller learned it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.spans: list[tuple[float, float]] = []
        self._caller = threading.local()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While inside, the calls of all clients in this process are watched."""
        ask, call = HttpPort.ask, Connections.call

        def asking(port: HttpPort, command: Any) -> Any:
            self._caller.waits = bool(getattr(command, "wait_seconds", 0.0))
            return ask(port, command)

        def calling(connections: Connections, *given: Any) -> Answer:
            sent = self.now()
            try:
                return call(connections, *given)
            except NotConnected:
                raise
            except LOST:
                if not getattr(self._caller, "waits", False):
                    self.spans.append((sent, self.now()))
                raise

        with mock.patch.object(HttpPort, "ask", asking), mock.patch.object(Connections, "call", calling):
            yield

    def met_by(self, times: list[float]) -> int:
        """How many of these kills a call broke off at."""
        return sum(any(sent <= moment <= learned for sent, learned in self.spans) for moment in times)
