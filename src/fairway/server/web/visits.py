"""A visit: one request of a browser as a page's handler sees it, and what the handler gives back.

Guards: a handler is called only for who may look at, or steer, the queue of its address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from fairway.server.asking import Ask
from fairway.server.rights import Right
from fairway.server.web.sessions import Session


@dataclass(frozen=True)
class Shown:
    """What a handler gives: a page or fragment, a word about what was done, a stream, or another address."""

    template: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    done: str = ""
    stream: AsyncIterator[bytes] | None = None
    to: str = ""
    session: Session | None = None  # the browser is given its cookie


@dataclass
class Visit:
    """One request. `ask` is what the handlers of REST take."""

    ask: Ask
    session: Session
    headers: dict[bytes, bytes]
    form: dict[str, str] = field(default_factory=dict)

    @property
    def steers(self) -> bool:
        """Whether buttons are shown."""
        return self.ask.token.allows("operate", self.ask.params.get("queue"))


Handler = Callable[[Visit], Awaitable[Shown]]


@dataclass(frozen=True)
class Page:
    """One address of the dashboard."""

    method: str
    path: str
    name: str
    handler: Handler
    right: Right | None = None
    query: Any = None
    anybody: bool = False  # also for who has not logged in
    bucket: bool = False  # of a bucket queue
