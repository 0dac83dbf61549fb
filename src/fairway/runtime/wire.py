"""The wire: what the process that hosts a queue and those attached to it say to each other, as frames.

Guards: every command, reply and error comes out of a frame with the type it had when it went in.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairway.engine.commands import Call, Command
from fairway.errors import FairwayError, OurError, all_errors
from fairway.face.replies import REPLIES

VERSION: Final = 1  # both ends speak the same one, or they do not speak


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Root of all messages."""


# -- from the attached process ------------------------------------------------------------------------------


class Hello(_Message, frozen=True, tag=1):
    """The first word: who I am and which queue I want."""

    version: int
    queue: str
    pid: int


class Ask(_Message, frozen=True, tag=2):
    """Carry a call out; `tag` names it on this connection and is not used again while it is open."""

    tag: int
    call: Call


class Barrier(_Message, frozen=True, tag=3):
    """Answer, with None, when all that was executed before is stored."""

    tag: int


class GiveUp(_Message, frozen=True, tag=4):
    """The caller is gone: a wait vanishes, leases go back; answered with Failed if nothing else was sent."""

    tag: int


class Got(_Message, frozen=True, tag=5):
    """The leases of this answer have arrived: from here on they are the receiver's."""

    tag: int


# -- from the host ------------------------------------------------------------------------------------------


class Welcome(_Message, frozen=True, tag=16):
    """Hello is accepted."""

    pid: int
    generation: int


class Refused(_Message, frozen=True, tag=17):
    """Why the connection ends: Hello was not accepted, or what came could not be understood."""

    code: str
    text: str
    details: dict[str, Any] = {}


class Answer(_Message, frozen=True, tag=18):
    """The reply to a call, in the form that its command promises."""

    tag: int
    reply: msgspec.Raw


class Failed(_Message, frozen=True, tag=19):
    """The error that a call is answered with."""

    tag: int
    code: str
    text: str
    details: dict[str, Any] = {}


class Bye(_Message, frozen=True, tag=20):
    """The host ends; another process may take over at once."""


class Beat(_Message, frozen=True, tag=21):
    """The host is there."""


ToHost = Hello | Ask | Barrier | GiveUp | Got
ToAttached = Welcome | Refused | Answer | Failed | Bye | Beat

_encode = msgspec.msgpack.Encoder(enc_hook=repr).encode  # an error's details may hold anything
_encode_exactly = msgspec.msgpack.Encoder().encode
_to_host = msgspec.msgpack.Decoder(ToHost).decode
_to_attached = msgspec.msgpack.Decoder(ToAttached).decode
_replies = {kind: msgspec.msgpack.Decoder(reply).decode for kind, reply in REPLIES.items()}
_errors: Final = all_errors()

BEAT: Final = _encode(Beat())
BYE: Final = _encode(Bye())


def encode(message: ToHost | ToAttached) -> bytes:
    """A message as the body of a frame. Raises TypeError, ValueError or OverflowError if it cannot be."""
    return _encode_exactly(message)


def answer(tag: int, reply: object) -> bytes:
    """The frame of an answer."""
    return _encode_exactly(Answer(tag, msgspec.Raw(_encode_exactly(reply))))


def failed(tag: int, error: FairwayError) -> bytes:
    """The frame of an error."""
    try:
        return _encode(Failed(tag, error.code, str(error), error.details))
    except (TypeError, ValueError, OverflowError):
        told = {name: repr(value) for name, value in error.details.items()}
        return _encode(Failed(tag, error.code, str(error).encode(errors="replace").decode(), told))


def refused(error: FairwayError) -> bytes:
    """The frame of a refusal."""
    return _encode(Refused(error.code, str(error), error.details))


def at_host(frame: bytes) -> ToHost:
    """What an attached process said. Raises msgspec.DecodeError."""
    return _to_host(frame)


def at_attached(frame: bytes) -> ToAttached:
    """What the host said. Raises msgspec.DecodeError."""
    return _to_attached(frame)


def reply_to(command: Command, body: msgspec.Raw) -> Any:
    """The reply in an answer to this command. Raises msgspec.DecodeError."""
    return _replies[type(command)](body)


def error_of(message: Failed | Refused) -> FairwayError:
    """The error as it was raised; of a class that this version does not know, as our failure."""
    kind = _errors.get(message.code)
    if kind is None:
        return OurError(message.text, **{**message.details, "code": message.code})
    return kind(message.text, **message.details)


def tag_of(frame: bytes) -> int | None:
    """The tag of a call that is well formed as a frame and not as a call; None: it is nothing of that kind."""
    try:
        found = msgspec.msgpack.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if isinstance(found, list) and len(found) > 1 and found[0] == 2 and isinstance(found[1], int):
        return found[1]
    return None
