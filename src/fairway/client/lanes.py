"""Lanes: the request numbers of a client, in which each lane carries one call at a time.

Guards: a number is given once; what a lane says it has received is everything before the call it carries.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.engine.commands import READS, Command, Goodbye, Purge, Register
from fairway.face.reads import Read

_UNNUMBERED = frozenset((*READS, Register, Goodbye, Purge))


@dataclass
class Lane:
    """A client that the queue has registered, and the last number it used."""

    client: str
    last: int = 0

    def begin(self) -> tuple[int, int]:
        """The next number, and what was received. Whatever becomes of it, the number is used."""
        self.last += 1
        return self.last, self.last - 1


class Lanes:
    """The lanes of one open queue that carry nothing now. Any thread may take one and bring it back."""

    def __init__(self) -> None:
        self._free: list[Lane] = []

    @staticmethod
    def needed(command: Command | Read) -> bool:
        """Whether a command goes with a number: one that changes nothing can be repeated without."""
        return not isinstance(command, Read) and type(command) not in _UNNUMBERED

    def take(self) -> Lane | None:
        """A lane for one call; None: register one first."""
        try:
            return self._free.pop()
        except IndexError:
            return None

    def bring_back(self, lane: Lane) -> None:
        self._free.append(lane)

    def empty(self) -> list[Lane]:
        """All of them, for their goodbye."""
        free, self._free = self._free, []
        return free
