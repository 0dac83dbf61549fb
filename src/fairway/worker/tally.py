"""What became of a worker's chunks, and how many it may still begin.

Guards: no more chunks are begun than the limit says, also by several threads, and by a process that was started again
in the place of one that died; what one asked for that died before it was answered is not begun.
"""

from __future__ import annotations

import threading
from collections.abc import MutableSequence
from typing import Final, Literal

import msgspec

What = Literal["done", "failed", "lost", "released"]
WHAT: Final[tuple[What, ...]] = ("done", "failed", "lost", "released")
_BEGUN: Final = len(WHAT)
CELLS: Final = _BEGUN + 1  # numbers that a tally is made of


class Sums(msgspec.Struct, frozen=True):
    """How many chunks were done, failed, lost to others, and given back untouched."""

    done: int = 0
    failed: int = 0
    lost: int = 0
    released: int = 0


class Tally:
    """Counts of one process, for all its threads; its cells may lie in memory that outlives the process."""

    def __init__(self, limit: int | None = None, cells: MutableSequence[int] | None = None) -> None:
        self._limit = limit
        self._cells: MutableSequence[int] = [0] * CELLS if cells is None else cells
        self._asked = 0  # of this process alone: it goes with it
        self._lock = threading.Lock()

    def count(self, what: What, many: int = 1) -> None:
        with self._lock:
            self._cells[WHAT.index(what)] += many

    def ask(self, many: int) -> int:
        """How many of so many chunks may be reserved now."""
        with self._lock:
            if self._limit is not None:
                many = max(0, min(many, self._limit - self._cells[_BEGUN] - self._asked))
            self._asked += many
            return many

    def begin(self, many: int, asked: int) -> None:
        """So many are here, of those that were asked for."""
        with self._lock:
            self._asked -= asked
            self._cells[_BEGUN] += many

    def sums(self) -> Sums:
        with self._lock:
            return Sums(*self._cells[:_BEGUN])
