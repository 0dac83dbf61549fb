"""Bugs of the event log: the audit reads what is not so."""

from __future__ import annotations

from typing import Any

from fairway.engine import closing
from fairway.engine.filling import Filling
from fairway.model.event import What, encode_events
from fairway.testing.planted.planting import plant, wrong


def _leaving_out(what: What) -> Any:
    def encode(events: list[Any]) -> bytes:
        return encode_events([one for one in events if one.what is not what])

    return encode


_LEFT_OUT = {
    "no delivery is in the event log": What.RESERVED,
    "no renewal is in the event log": What.RENEWED,
    "no dead chunk is in the event log": What.DEAD,
}
for _bug, _what in _LEFT_OUT.items():
    plant(_bug, closing, "encode_events", _leaving_out(_what), here=True)


@wrong("the end of a submission is not in the event log", Filling, "tell")
def silent(self: Filling, what: What, now: float, span: tuple[int, ...], detail: str) -> None:
    pass


@wrong("what happened is in the event log twice", closing, "encode_events", here=True)
def twice(events: list[Any]) -> bytes:
    return encode_events([*events, *events])
