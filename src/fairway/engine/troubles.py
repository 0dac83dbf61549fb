"""Troubles: reads of the store that keep failing, each kind for itself.

Guards: a read that failed is made again after a pause that doubles, and asks for fewer rows, so that what lies before
a damaged one is found; its success ends its own trouble and nobody else's; whoever may not wait for it any longer is
told its error.
"""

from __future__ import annotations

import msgspec

from fairway.engine.reads import Read
from fairway.errors import FairwayError, StoreCorrupt
from fairway.limits import READ_FAILS_SECONDS, READ_RETRY_SECONDS, READ_RETRY_SECONDS_MAX

_FEWER = 8  # a read that failed asks for this part of its rows next time
_HOLDS_UP_NOBODY = ("scan", "slice")  # they are for A alone


class Trouble(msgspec.Struct):
    """One kind of read that fails."""

    since: float
    failures: int
    retry_at: float
    error: FairwayError
    least: bool  # no smaller read could go better

    @property
    def is_damage(self) -> bool:
        return self.least and isinstance(self.error, StoreCorrupt)


class Troubles:
    """By the name of a read: what it is for, whatever part of it is read."""

    def __init__(self) -> None:
        self._of: dict[str, Trouble] = {}
        self._rows: dict[str, int] = {}  # what is asked for lately, after a failure

    def __len__(self) -> int:
        return len(self._of)

    @property
    def damaged(self) -> list[str]:
        """Reads that will not go better by themselves: what they ask for is damaged."""
        return [name for name, found in self._of.items() if found.is_damage]

    def rests(self, name: str, now: float) -> bool:
        """Whether such a read failed so lately that it is not made yet."""
        found = self._of.get(name)
        return found is not None and now < found.retry_at

    def rows(self, name: str, most: int) -> int:
        """How many rows to ask for."""
        return min(most, self._rows.get(name, most))

    def failed(self, read: Read, now: float, error: FairwayError) -> None:
        """A read could not be made."""
        name, before = read.name, self._of.get(read.name)
        failures = 1 if before is None else before.failures + 1
        pause = min(READ_RETRY_SECONDS * 2 ** (failures - 1), READ_RETRY_SECONDS_MAX)
        self._of[name] = Trouble(
            now if before is None else before.since, failures, now + pause, error, read.rows <= 1
        )
        if read.rows:
            self._rows[name] = max(1, read.rows // _FEWER)

    def over(self, read: Read) -> None:
        """A read was made."""
        self._of.pop(read.name, None)
        rows = self._rows.get(read.name)
        if rows is not None:
            self._rows[read.name] = 2 * rows
            if rows > read.rows:
                del self._rows[read.name]  # it was not bound by that any more

    def next(self, now: float, first: float) -> float:
        """When the next pause ends, if that is before `first`."""
        for found in self._of.values():
            if now < found.retry_at < first:
                first = found.retry_at
        return first

    def told(self, strategy: str, now: float) -> FairwayError | None:
        """The error for a reserve by a strategy whose time is over, if it is not worth while to wait any longer."""
        for name, found in self._of.items():
            if name in _HOLDS_UP_NOBODY or (name.startswith("fetch ") and name != f"fetch {strategy}"):
                continue
            if found.is_damage or found.since + READ_FAILS_SECONDS <= now:
                return found.error
        return None
