"""Clients: who calls, and the outcomes they have not yet received.

Guards: a numbered call has at most one effect, however often it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairway.engine.commands import Accepted, Finished, Reply, Reserved, Settled
from fairway.model.submission import Submission

if TYPE_CHECKING:
    from fairway.engine.state import Waiter

_encoder = msgspec.msgpack.Encoder()
_KINDS: list[type[Any]] = [type(None), int, Accepted, Reserved, Settled, Submission, dict, Finished]
_DECODERS: list[msgspec.msgpack.Decoder[Any]] = [msgspec.msgpack.Decoder(kind) for kind in _KINDS]


class Client:
    """One registered caller."""

    __slots__ = ("as_of", "outcomes", "pending", "received", "seen")

    def __init__(self, seen: float) -> None:
        self.seen = seen
        self.received = 0  # numbers up to this are dropped
        self.outcomes: dict[int, bytes] = {}
        self.pending: dict[int, Waiter] = {}  # calls that wait, by number
        self.as_of = 0

    def receive(self, received: int) -> None:
        """Outcomes up to this number have arrived; forget them."""
        if received > self.received:
            if received - self.received < len(self.outcomes):
                for number in range(self.received + 1, received + 1):
                    self.outcomes.pop(number, None)
            else:
                self.outcomes = {n: outcome for n, outcome in self.outcomes.items() if n > received}
            self.received = received


def encode_reply(reply: Reply) -> bytes:
    """A reply as stored; what it says of submissions is looked up again when it is given again."""
    if isinstance(reply, Reserved):
        reply = msgspec.structs.replace(reply, runs={})
    return bytes((_KINDS.index(type(reply)),)) + _encoder.encode(reply)


def decode_reply(body: bytes) -> Reply:
    """A stored reply."""
    return _DECODERS[body[0]].decode(body[1:])
