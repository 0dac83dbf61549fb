"""Tickets: the order in which reads of the store began.

Guards: what a read that is out may not have seen is remembered until it is over.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Tickets(Generic[T]):
    """Reads that are out, oldest first."""

    __slots__ = ("_open", "begun")

    def __init__(self) -> None:
        self.begun = 0
        self._open: OrderedDict[int, T] = OrderedDict()

    def begin(self, what: T) -> int:
        """A read begins; gives its ticket."""
        self.begun += 1
        self._open[self.begun] = what
        return self.begun

    def close(self, ticket: int) -> None:
        """It is over: used or given up."""
        self._open.pop(ticket, None)

    @property
    def open(self) -> bool:
        """Whether a read is out."""
        return bool(self._open)

    @property
    def oldest(self) -> int:
        """Every read up to this one is over."""
        return next(iter(self._open), self.begun + 1) - 1

    def items(self) -> list[tuple[int, T]]:
        return list(self._open.items())
