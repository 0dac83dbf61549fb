"""Bugs of batches: one that is not whole, one that somebody else ends, one whose rest is forgotten."""

from __future__ import annotations

from typing import Any

from fairway.engine import batches
from fairway.engine.consumer import Consumer
from fairway.engine.state import State
from fairway.errors import ConsumerFenced
from fairway.testing.planted.planting import wrong


@wrong("a batch is finished though it is not whole", batches, "_check_whole")
def partly(state: State, consumer: Consumer) -> None:
    pass


@wrong("a batch is finished by who lost its consumer", batches, "_speaking")
def anybody(state: State, command: Any) -> Consumer:
    consumer = state.consumers.get(command.consumer)
    if consumer is None:
        raise ConsumerFenced("nobody has this name")
    return consumer


@wrong("what a batch does not name is not done", batches, "still_out", here=True)
def nothing(state: State, named: Any) -> list[Any]:
    return []
