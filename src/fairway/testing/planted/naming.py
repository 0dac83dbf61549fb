"""Bugs of named consumers: their signs of life are not heard, they are refused, or what they had is not halved."""

from __future__ import annotations

from typing import Any

from fairway.engine import batches, named
from fairway.engine.holds import Hold
from fairway.engine.state import State
from fairway.errors import ConsumerFenced, SeqTrimmed
from fairway.testing.planted.planting import wrong


@wrong("a consumer's signs of life are not heard", named, "expire_at")
def deaf(state: State, hold: Hold) -> float:
    return hold.deadline


@wrong("who takes a consumer over is handed all that it had", named, "_halve")
def whole(state: State, reservation: Any, error: str) -> None:
    pass


_speaking = batches._speaking


@wrong("a batch is refused though nobody took its consumer over", batches, "_speaking")
def nobody(state: State, command: Any) -> Any:
    if not command.consumer_epoch:
        raise ConsumerFenced("a run is never believed")
    return _speaking(state, command)


_reserve_named = named.reserve_named


@wrong("a seq is called trimmed that was not", named, "reserve_named")
def trimmed_early(state: State, command: Any) -> Any:
    consumer = state.consumers.get(command.consumer)
    if consumer is not None and consumer.trimmed >= 0 and command.seq == consumer.trimmed + 1:
        raise SeqTrimmed(f"seq {command.seq} was trimmed")
    return _reserve_named(state, command)
