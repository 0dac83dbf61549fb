"""Events: what happened, in intervals of chunks, for the audit.

Guards: an event is written in the same group as its effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import msgspec


class What(IntEnum):
    """What an event tells."""

    SUBMITTED = 1
    RESERVED = 2
    COMPLETED = 3
    FAILED = 4
    EXPIRED = 5
    RELEASED = 6
    RENEWED = 7
    DEAD = 8
    ENDED_COMPLETED = 9
    ENDED_FAILED = 10
    ENDED_CANCELLED = 11
    REDRIVEN = 12


class Happened(msgspec.Struct, array_like=True):
    """The stored form: one thing that happened to many spans (submission, start, count, ...) at once."""

    what: What
    time: float
    spans: list[tuple[int, ...]]
    epoch: int = 0
    reservation: int = 0
    tenants: list[str] = []  # one per span, where tenants are told
    detail: str = ""


class Event(msgspec.Struct, frozen=True):
    """Chunks [start, start + count) of a submission; epoch and reservation tell which attempt."""

    number: int  # of the group in which it was stored
    what: str  # submitted, reserved, completed, failed, expired, released, renewed, dead, ended_..., redriven
    time: float  # when it happened, by the clock of the owner
    submission: int  # its id
    start: int  # the first chunk
    count: int  # how many chunks from there
    epoch: int = 0  # of the owner that handed them out; every owner has a higher one
    reservation: int = 0  # which one of that owner
    attempt: int = 0  # which delivery; 0: the event is of no delivery
    tenant: str = ""  # whom they belong to, where the event tells it
    detail: str = ""  # what was said of it, such as an error
    place: int = 0  # in its group; what happened at one stroke has one place


encode_events = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Happened]).decode


def events_of(number: int, body: bytes) -> Iterator[Event]:
    """The events in a stored batch, one per span."""
    for place, happened in enumerate(_decode(body)):
        what = happened.what.name.lower()
        for i, span in enumerate(happened.spans):
            yield Event(
                number,
                what,
                happened.time,
                span[0],
                span[1],
                span[2],
                happened.epoch,
                happened.reservation,
                span[3] if len(span) > 3 else 0,
                happened.tenants[i] if happened.tenants else "",
                happened.detail,
                place,
            )
