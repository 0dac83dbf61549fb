"""A request as a handler sees it, and what the handler gives back.

Guards: a handler never sees a body, a query or a queue that was not checked, or that its caller may not use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairway.client.lanes import Lanes
from fairway.client.wire import JSON, Asked
from fairway.engine.commands import Call, Command, Fail, Join, Reserved
from fairway.errors import TooLarge
from fairway.face.keeping import KeptPages
from fairway.face.queue import AsyncQueue
from fairway.face.reads import Read
from fairway.server.held import Held
from fairway.server.queues import OpenBucket, OpenQueue
from fairway.server.rights import Right
from fairway.server.tokens import Token

if TYPE_CHECKING:
    from fairway.server.app import App


@dataclass(frozen=True)
class Answer:
    """What a handler gives: a value to be encoded, bytes as they are, or a stream."""

    value: Any = None
    status: int = 200
    media: str = ""  # "": as the caller accepts
    headers: tuple[tuple[bytes, bytes], ...] = ()
    stream: AsyncIterator[bytes] | None = None
    reserved: Reserved | None = None  # leases in it that go back if the caller is gone before it is sent
    handed: bool = False  # another node made it
    unsent: Callable[[], None] | None = None  # what is done if the caller is gone before it is sent


class Cut(Exception):
    """A stream ends before its end: the connection is closed, so that nobody takes what came for the whole."""


@dataclass(frozen=True)
class Sent:
    """A request as it came, for the node that it is handed on to."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass
class Ask:
    """One request."""

    app: App
    token: Token
    params: dict[str, str]
    accepts: str = JSON
    media: str = JSON  # of the body
    queue: OpenQueue | OpenBucket | None = None
    query: Any = None
    body: Any = None
    number: tuple[int, int, int] | None = None  # (client, number, received)
    worker: int = 0  # who reserves, for limits that are a share of the consumers
    authorization: bytes | None = field(default=None, repr=False)  # looked at again by what lasts long
    right: Right | None = None  # that is needed; None: any
    over: bool = False  # the token ended while the call waited
    key: str | None = None  # of the header Idempotency-Key
    port: Any = field(default=None, repr=False)  # of the queue, with the caller's number if there is one
    handed: bool = False  # another node had it first, and checked its caller's token
    last_event: int = 0  # of the header Last-Event-ID: what the caller of a stream has had
    digest: str = ""  # of the body that was handed on
    sent: Sent | None = None  # kept if it may be handed on
    held: Held = field(init=False, repr=False)  # by the answer

    def __post_init__(self) -> None:
        self.held = Held(self.app.admission, self.token.id)

    @property
    def q(self) -> AsyncQueue:
        """The verbs of the queue, carried out under the caller's number if there is one."""
        assert isinstance(self.queue, OpenQueue)
        return self.queue.queue if self.port in (None, self.queue.port) else self.queue.numbered(self.port)

    @property
    def kept(self) -> KeptPages:
        """Payload pages that an earlier call read."""
        assert isinstance(self.queue, OpenQueue)
        return self.queue.kept


def only_looks(method: str, ask: Ask) -> bool:
    """Whether a request changes nothing, so that it can be refused when its answer is there already."""
    return method == "GET" or (isinstance(ask.body, Asked) and isinstance(ask.body.command, Read))


class NumberedPort:
    """A port that carries one call out under its caller's own number; what goes beside it has none."""

    def __init__(self, port: Any, client: int, number: int, received: int) -> None:
        self._port = port
        self._number = (client, number, received)
        self._used = False
        self.do = port.do
        self.unreceived = port.unreceived

    async def ask(self, command: Command | Read) -> Any:
        if isinstance(command, Read | Join) or not Lanes.needed(command):
            return await self._port.ask(command)
        if self._used:
            if isinstance(command, Fail):
                return await self._port.ask(command)  # of a payload that was found damaged
            raise TooLarge(
                "a call with a number is one group; cut it into several calls with numbers of their own"
            )
        self._used = True
        return await self._port.ask(command, Call(command, *self._number))

    async def close(self) -> None:
        """The queue stays open for others."""
