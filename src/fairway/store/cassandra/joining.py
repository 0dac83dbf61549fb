"""Which ranges of a partition are to be joined: many that lie between rows which stay become one.

The rows that stay are written again above the one range. Stretches that were joined are joined again, a few of a size
at a time, so each such row is written again a few times only, however much goes by.

Guards: a stretch reaches from before its first range to the end of its last one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairway.limits import CASSANDRA_JOIN_ROWS_MAX
from fairway.store.cassandra.gaps import Key

_JOINED: Final = 4  # stretches of a size that become one of the next
_ROWS_PER_RANGE: Final = (
    4  # rows that are written again for each range that goes: among more, ranges do not matter
)


class Stretch(msgspec.Struct, frozen=True):
    """A part of a partition in which so many ranges were made; of size 0 they are as they were made."""

    after: Key
    upto: Key
    ranges: int
    size: int = 0

    @property
    def rows_max(self) -> int:
        """With more rows in it than this it stays as it is."""
        return min(_ROWS_PER_RANGE * self.ranges, CASSANDRA_JOIN_ROWS_MAX)


class Ranges:
    """The ranges of one partition that its owner has made."""

    def __init__(self) -> None:
        self._fresh: dict[Key, Key] = {}  # by where they begin
        self._joined: list[list[Stretch]] = []  # by size

    def __len__(self) -> int:
        """How many were made since the last joining, without those that others cover."""
        return len(self._fresh)

    def made(self, after: Key, upto: Key) -> None:
        """A range was made; it covers those before it that lie in it."""
        for low in [low for low, high in self._fresh.items() if after <= low and high <= upto]:
            del self._fresh[low]
        self._fresh[after] = max(upto, self._fresh.get(after, upto))

    def stretch(self) -> Stretch:
        """What was made since the last joining."""
        return Stretch(min(self._fresh), max(self._fresh.values()), len(self._fresh))

    def joined(self, stretch: Stretch) -> Stretch | None:
        """All in it is one range now. Gives what is to be joined next."""
        self.kept(stretch)
        if stretch.size == len(self._joined):
            self._joined.append([])
        some = self._joined[stretch.size]
        some.append(stretch)
        if len(some) < _JOINED:
            return None
        after, upto = min(one.after for one in some), max(one.upto for one in some)
        return Stretch(after, upto, sum(one.ranges for one in some), stretch.size + 1)

    def kept(self, stretch: Stretch) -> None:
        """It is not worth it: what it was to be made of stays, and is forgotten."""
        if stretch.size:
            self._joined[stretch.size - 1].clear()
        else:
            self._fresh.clear()
