"""Bugs of what is told of the past: the event log, the counters and the reasons say what is not so."""

from __future__ import annotations

from typing import Any

from fairway.engine import closing, ending, finishing
from fairway.engine.filling import Filling
from fairway.engine.run import Run
from fairway.engine.state import State
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


# -- counters and reasons

_store, _bury = finishing._store, ending.bury


@wrong("a completion is counted twice", finishing, "_store")
def counted_twice(state: State, part: Any, accepting: Any, command: Any) -> None:
    before = state.completed
    _store(state, part, accepting, command)
    state.completed += state.completed - before


@wrong("a dead letter forgets its error", ending, "bury")
def for_no_reason(state: State, run: Run, index: int, attempts: int, error: str) -> None:
    _bury(state, run, index, attempts, "")
