"""Levels: a run's place `<pass, id>` in the store, and A, up to which everything is finished.

Guards: a new run is placed above A; A never reaches an unfinished or pinned level; no pass is above PASS_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from fairway import limits
from fairway.errors import TooLarge
from fairway.fair.weights import W_DEFAULT, U

Level = tuple[int, int]
"""(pass, id): compared as a tuple."""

START: Final[Level] = (0, 0)  # below every level that is ever given: ids are positive


def after(turn: int, rest: int, chunks: int, w: int) -> tuple[int, int]:
    """The (turn, rest) that n dispatches in a row lead to."""
    x = rest + chunks * U
    return turn + x // w, x % w


class Forecast:
    """Per tenant, its last placed run: the next one comes that run's chunks later, at the present weight."""

    __slots__ = ("_last", "weight")

    def __init__(self, weight: dict[str, int]) -> None:
        self.weight = weight
        self._last: dict[str, tuple[int, int, int]] = {}

    def place(self, tenant: str, chunks: int, turn: int, rest: int, has_backlog: bool, a_pass: int) -> int:
        """The pass of a new run of `chunks` chunks; TooLarge, before anything changes, above PASS_MAX.

        `has_backlog`: chunks of the tenant waited before this submit (the test that decides Turns.appear).
        Without a backlog `turn` and `rest` count; read them after Turns.appear.
        """
        last = self._last.get(tenant) if has_backlog else None
        level = turn
        if last is not None:
            level, rest, before = last
            w = self.weight.get(tenant, W_DEFAULT)
            rest += before * U  # `after`, written out: it is asked for every message
            level += rest // w
            rest %= w
        if level < a_pass:
            level, rest = a_pass, 0
        if level > limits.PASS_MAX:
            raise TooLarge(
                f"tenant {tenant!r} has more chunks waiting than its weight allows to place;"
                " let some of them be served, or give it a higher weight",
                tenant=tenant,
            )
        self._last[tenant] = (level, rest, chunks)
        return level

    def ahead(self, tenant: str) -> tuple[int, int] | None:
        """The (pass, rest) of the tenant's next run if what was placed is served at the present weight."""
        last = self._last.get(tenant)
        if last is None:
            return None
        return after(*last, self.weight.get(tenant, W_DEFAULT))

    def last(self, tenant: str) -> tuple[int, int, int] | None:
        """(pass, rest, chunks) of the tenant's last placed run; give it to `restore` after a start."""
        return self._last.get(tenant)

    def lasts(self, tenants: Iterable[str]) -> list[tuple[int, int, int] | None]:
        """`last` of many."""
        return list(map(self._last.get, tenants))

    def restore(self, tenant: str, level: int, rest: int, chunks: int) -> None:
        """The last placed run of a tenant with backlog, as stored. A rest that was not stored is 0."""
        self._last[tenant] = (level, rest, chunks)

    def forget(self, tenant: str) -> None:
        """The tenant is idle: its next run starts from its turn."""
        self._last.pop(tenant, None)


class Acked:
    """A, the ack level: everything at or below it is finished."""

    __slots__ = ("_done", "_pinned", "_pins", "_tracked", "ack", "unfinished")

    def __init__(self, ack: Level = START) -> None:
        self.ack = ack
        self.unfinished = 0
        self._tracked: list[Level] = []
        self._done: set[Level] = set()
        self._pins: list[Level] = []
        self._pinned: dict[Level, int] = {}

    def placed(self, level: Level) -> None:
        """An unfinished row at this level; it must lie above A."""
        assert level > self.ack, (level, self.ack)
        heappush(self._tracked, level)
        self.unfinished += 1

    def finished(self, level: Level) -> None:
        """The row at this level is finished; call it once per `placed`."""
        assert level > self.ack and level not in self._done, (level, self.ack)
        self._done.add(level)
        self.unfinished -= 1

    def pin(self, level: Level) -> None:
        """A row at this level was chosen and is not yet stored: A stays below it."""
        assert level > self.ack, (level, self.ack)
        count = self._pinned.get(level, 0)
        self._pinned[level] = count + 1
        if not count:
            heappush(self._pins, level)

    def unpin(self, level: Level) -> None:
        """The row is stored, or its group failed; call it once per `pin`."""
        count = self._pinned[level] - 1
        if count:
            self._pinned[level] = count
        else:
            del self._pinned[level]

    def advance(self) -> Level:
        """Move A up to the last finished level below every unfinished or pinned one; gives A."""
        pins, pinned = self._pins, self._pinned
        while pins and pins[0] not in pinned:
            heappop(pins)
        tracked, done = self._tracked, self._done
        while tracked and tracked[0] in done and (not pins or tracked[0] < pins[0]):
            self.ack = heappop(tracked)
            done.discard(self.ack)
        return self.ack

    def reset(self) -> None:
        """A new era: nothing is unfinished or pinned, so levels start again."""
        assert not self.unfinished and not self._pinned, (self.unfinished, self._pinned)
        self.ack = START
        self._tracked.clear()
        self._done.clear()
        self._pins.clear()
