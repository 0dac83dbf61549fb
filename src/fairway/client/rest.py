"""Calls by REST, without I/O: repeated while that is certain to do no harm, as steps that a thread or a loop runs.

Guards: a call that may be carried out once only is not sent again after its answer was lost.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway import limits
from fairway.client import wire
from fairway.client.address import Address
from fairway.client.core import NOT_DONE, Exchange, Heard, Lost, Rest, Send
from fairway.errors import FairwayError, NotFound, OurError, OutcomeUnknown, Unreachable, WrongKind


@dataclass(frozen=True)
class Call:
    """A call by REST, and what its answer is; `once`: it is not sent again if it may have arrived.

    A path is behind that of the queue, unless it begins with /v1/.
    """

    method: str
    path: str
    body: Any = None
    gives: Any = None
    once: bool = False
    wait_seconds: float = 0.0


class _Kind(msgspec.Struct):
    kind: str = "fair"


class RestCore:
    """One queue on a server, for calls by REST. Any number of threads or tasks may run exchanges of it at once."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._node = random.randrange(len(address.nodes))

    def ask(self, command: Call, kept: wire.Pages) -> Exchange[Any]:
        """The answer to a call."""
        del kept  # pages come with commands only
        content = None if command.body is None else msgspec.msgpack.encode(command.body)
        patience = command.wait_seconds + limits.ANSWER_SECONDS
        until = time.monotonic() + limits.CLIENT_RETRY_SECONDS
        pause, sent, nodes = limits.CLIENT_PAUSE_SECONDS, 0, len(self._address.nodes)
        while True:
            node = self._node
            heard = yield Send(node, content, patience, command.method, command.path)
            sent += 1
            try:
                return self._read(command, node, heard)
            except (*NOT_DONE, Unreachable):
                if time.monotonic() > until:
                    raise
            self._node = (node + 1) % nodes
            # Another node may have room now; when all have refused, the last is taken at its word.
            after = heard.after_seconds if isinstance(heard, Heard) and sent % nodes == 0 else 0.0
            yield Rest(max(after, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, limits.CLIENT_PAUSE_SECONDS_MAX)

    def enter(self, create: bool) -> Exchange[None]:
        """Find the bucket queue, or make it."""
        try:
            found = yield from self.ask(Call("GET", "", gives=_Kind), {})
        except NotFound:
            if not create:
                raise
            found = yield from self.ask(Call("PUT", "", {"kind": "bucket"}, _Kind), {})
        if found.kind != "bucket":
            queue = self._address.queue
            raise WrongKind(f"{queue!r} is a fair queue; take another name for a bucket queue")

    def goodbye(self) -> Exchange[None]:
        """The server knows nothing of this client."""
        yield from ()

    def _read(self, call: Call, node: int, heard: Heard | Lost | None) -> Any:
        if not isinstance(heard, Heard):
            raise self._lost(call, node, heard)
        if heard.status >= 300:
            raise _error(heard, call.once)
        try:
            return None if call.gives is None else msgspec.msgpack.decode(heard.body, type=call.gives)
        except msgspec.DecodeError as error:
            raise OurError(f"the server's answer cannot be understood: {error}") from error

    def _lost(self, call: Call, node: int, heard: Lost | None) -> FairwayError:
        why = heard.why if heard is not None else "nothing was sent"
        if call.once and heard is not None and heard.sent:
            return OutcomeUnknown(f"the server did not answer ({why}); whether it did this is unknown")
        url = self._address.nodes[node] + self._address.path_of(call.path)
        return Unreachable(f"no server answered at {url}: {why}")


def _error(heard: Heard, once: bool) -> FairwayError:
    error = wire.error_of(heard.body, heard.media)
    if type(error) is OurError and heard.status in (502, 503, 504):
        told = f"a proxy answered {heard.status}"
        return OutcomeUnknown(f"{told}; whether the call arrived is unknown") if once else Unreachable(told)
    return error
