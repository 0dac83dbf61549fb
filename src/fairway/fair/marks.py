"""Finished marks: rows that are over and that A has not passed.

Guards: a mark stands for all finished rows that were thinned into it; thinning never lets A pass an unfinished row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from fairway.fair.levels import Level

_FEW: Final = 1024  # marks that are not worth thinning


class Marks:
    """Levels, each with how many finished rows it stands for."""

    __slots__ = ("_thin_at", "count")

    def __init__(self) -> None:
        self.count: dict[Level, int] = {}  # the window's quick ways read it
        self._thin_at = 0

    def __contains__(self, level: object) -> bool:
        return level in self.count

    def __iter__(self) -> Iterator[Level]:
        return iter(self.count)

    def __len__(self) -> int:
        return len(self.count)

    def add(self, level: Level) -> None:
        self.count.setdefault(level, 1)

    def take(self, level: Level) -> int:
        """A passes the mark; gives how many rows it stood for."""
        return self.count.pop(level)

    def discard(self, level: Level) -> None:
        """The mark is cut off: its rows are read again."""
        self.count.pop(level, None)

    def many(self, rows_max: int) -> bool:
        """Whether there are so many that they should be thinned: a row that stays for long lets them pile up."""
        return len(self.count) > max(_FEW, rows_max, self._thin_at)

    def thin(self, unfinished: Collection[Level]) -> None:
        """Between two unfinished rows the highest mark is enough: A stops nowhere between the others."""
        kept: dict[Level, int] = {}
        last: Level | None = None
        count = self.count
        for level in sorted([*unfinished, *count], reverse=True):
            if level not in count:
                last = None
            elif last is None:
                last = level
                kept[level] = count[level]
            else:
                kept[last] += count[level]
        self.count = kept
        self._thin_at = 2 * len(kept)
