"""REST calls of this client: one at a time, repeated while that is certain to do no harm.

Guards: a call that may be carried out once only is not sent again after its answer was lost.
"""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec

from fairway import limits
from fairway.client import wire
from fairway.client.address import Address
from fairway.client.connections import LOST, Answer, Connections, NotConnected
from fairway.client.core import NOT_DONE
from fairway.client.forking import OwnProcess
from fairway.errors import FairwayError, OurError, OutcomeUnknown, Unreachable


class Rest(OwnProcess):
    """One queue on a server, for threads. A forked child has connections of its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._node = random.randrange(len(address.nodes))
        super().__init__()

    def _begin(self) -> None:
        self._http = Connections(self.address)

    def call(
        self, method: str, path: str, body: Any, gives: Any, *, once: bool = False, wait: float = 0.0
    ) -> Any:
        """The answer to a call; `once`: it is not sent again if it may have arrived. A path is behind that of the
        queue, unless it begins with /v1/."""
        content = None if body is None else msgspec.msgpack.encode(body)
        until = time.monotonic() + limits.CLIENT_RETRY_SECONDS
        pause, sent = limits.CLIENT_PAUSE_SECONDS, 0
        while True:
            sent += 1
            try:
                return self._sent(method, path, content, gives, once, wait)
            except (*NOT_DONE, Unreachable) as error:
                if time.monotonic() > until:
                    raise
                # Another node may have room now; when all have refused, the last is taken at its word.
                told = error.details.get("retry_after_seconds")
                after = told if isinstance(told, float) and sent % len(self.address.nodes) == 0 else 0.0
            self._node = (self._node + 1) % len(self.address.nodes)
            time.sleep(max(after, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, limits.CLIENT_PAUSE_SECONDS_MAX)

    def _sent(
        self, method: str, path: str, content: bytes | None, gives: Any, once: bool, wait: float
    ) -> Any:
        self._own()
        node = self._node
        path = path if path.startswith("/v1/") else self.address.path + path
        url = self.address.nodes[node] + path
        try:
            answer = self._http.call(node, method, path, content, wait + limits.ANSWER_SECONDS)
        except NotConnected as error:
            raise Unreachable(f"no server answered at {url}: {error}") from error
        except LOST as error:
            if once:
                raise OutcomeUnknown(
                    f"the server did not answer ({type(error).__name__}); whether it did this is unknown"
                ) from error
            raise Unreachable(f"no server answered at {url}: {type(error).__name__}") from error
        if answer.status >= 300:
            raise _error(answer, once)
        try:
            return None if gives is None else msgspec.msgpack.decode(answer.body, type=gives)
        except msgspec.DecodeError as error:
            raise OurError(f"the server's answer cannot be understood: {error}") from error

    def close(self) -> None:
        if self._ended():
            self._http.close()


def _error(answer: Answer, once: bool) -> FairwayError:
    error = wire.error_of(answer.body, answer.headers.get("content-type", ""))
    if type(error) is OurError and answer.status in (502, 503, 504):
        told = f"a proxy answered {answer.status}"
        error = OutcomeUnknown(f"{told}; whether the call arrived is unknown") if once else Unreachable(told)
    error.details["retry_after_seconds"] = wire.seconds_after(answer.headers)
    return error
