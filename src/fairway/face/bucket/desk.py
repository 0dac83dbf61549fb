"""The desk: what the verbs of a bucket queue need from the process they run in."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from fairway.bucket.rows import DeadLetter, Message, QueueRow
from fairway.bucket.statements import Machine
from fairway.bucket.taking import Reader
from fairway.bucket.writing import Told

R = TypeVar("R")


class Desk(Protocol):
    """One open bucket queue in one process. Its calls block; any thread may make them."""

    queue: QueueRow
    reader: Reader

    def run(self, machine: Machine[R]) -> R:
        """Run a machine to its end on the storage."""
        ...

    def put(self, hour: int, messages: list[Message]) -> Told:
        """Put messages together into a bucket of this node."""
        ...

    def redrive(self, letters: list[DeadLetter], messages: list[Message]) -> Told:
        """Put the messages that dead letters become, then remove the letters."""
        ...

    def now(self) -> float: ...

    def fresh_uids(self, count: int) -> list[bytes]:
        """Ids that nobody else gives, in rising order."""
        ...

    def changed(self) -> None:
        """Something may be due now: whoever waits here looks again."""
        ...

    def delete(self) -> Any:
        """Delete the queue."""
        ...


class Pause:
    """Wait until something may be due, at most some seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
