"""The wire over HTTP: the body of a client's call, of its answer, and of an error.

Guards: every command, read, reply and error comes out with the type it had when it went in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairway.engine.commands import Command, Reserved
from fairway.errors import FairwayError, OurError, all_errors
from fairway.face.reads import Describe, ListEnded, ListEndedDead, ReadEvents, ReadPages, ReadResults
from fairway.face.replies import READ_REPLIES, REPLIES
from fairway.limits import CLIENT_AFTER_SECONDS_MAX

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"

AnyRead = ReadPages | ListEnded | ListEndedDead | Describe | ReadResults | ReadEvents
Pages = dict[tuple[int, int], bytes]


class Asked(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A command or read, with its request number if it has one; `client` is the text that a Register was given."""

    command: Command | AnyRead
    client: str = ""
    number: int = 0
    received: int = 0


class Answered(msgspec.Struct, frozen=True, array_like=True):
    """The reply in the form that the command promises; with a reservation come payload pages that it needs."""

    reply: msgspec.Raw
    pages: Pages = {}


class Told(msgspec.Struct, frozen=True):
    """An error as every route gives it: a code that never changes, a sentence, and what it is about."""

    code: str  # which error it is
    message: str  # what is wrong, and what to do
    details: dict[str, Any] = {}  # what it is about, by name


class Refusal(msgspec.Struct, frozen=True):
    """The body of every answer that is an error."""

    error: Told  # what was refused, and why


_encode = msgspec.msgpack.Encoder().encode
_told = msgspec.msgpack.Encoder(enc_hook=repr).encode
_told_json = msgspec.json.Encoder(enc_hook=repr).encode
_asked = msgspec.msgpack.Decoder(Asked).decode
_answered = msgspec.msgpack.Decoder(Answered).decode
_replies: Final = {
    kind: msgspec.msgpack.Decoder(str if kind.__name__ == "Register" else reply).decode
    for kind, reply in {**REPLIES, **READ_REPLIES}.items()
}
_errors: Final = all_errors()


def asked(body: bytes) -> Asked:
    """What a client asks. Raises msgspec.DecodeError."""
    return _asked(body)


def asking(asked: Asked) -> bytes:
    return _encode(asked)


def answering(reply: object, pages: Pages | None = None) -> bytes:
    return _encode(Answered(msgspec.Raw(_encode(reply)), pages or {}))


def answer(command: Command | AnyRead, body: bytes) -> tuple[Any, Pages]:
    """The reply to a command, and the pages that came with it. Raises msgspec.DecodeError."""
    found = _answered(body)
    reply = _replies[type(command)](found.reply)
    return reply, found.pages if type(reply) is Reserved else {}


def refusal(error: FairwayError, media: str = JSON) -> bytes:
    """An error as a body."""
    encode = _told if media == MSGPACK else _told_json
    try:
        return encode(Refusal(Told(error.code, str(error), dict(error.details))))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return encode(Refusal(Told(error.code, repr(str(error)))))


def error_of(body: bytes, media: str) -> FairwayError:
    """The error in a body; of a class that this version does not know, as our failure."""
    decode = msgspec.msgpack.decode if media.startswith(MSGPACK) else msgspec.json.decode
    try:
        told = decode(body, type=Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return OurError(f"the server's answer is not one of Fairway: {body[:200]!r}")
    kind = _errors.get(told.code)
    details = {name: value for name, value in told.details.items() if name != "message"}
    if kind is None:
        return OurError(told.message, **{**details, "code": told.code})
    return kind(told.message, **details)


def seconds_after(headers: Mapping[str, str]) -> float:
    """When the caller may come again, by the header Retry-After; a date in it is for browsers."""
    text = headers.get("retry-after", "")
    if not text.isdecimal() or len(text) > 9:
        return 0.0
    return min(float(text), CLIENT_AFTER_SECONDS_MAX)
