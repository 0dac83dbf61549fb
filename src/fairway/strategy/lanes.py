"""Lanes: the tables of turns of a part of the queue, and who has chunks waiting in each.

Guards: a tenant appears in a lane when a submit gives it chunks there and it had none; what is paused, delayed
or limited counts as having, so it keeps its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic

from fairway import limits
from fairway.strategy.candidate import selects
from fairway.strategy.order import R, TurnTable, TurnTables
from fairway.strategy.terms import CustomPriority, Fair
from fairway.strategy.tiers import Selection, Tier


class _Lane:
    """One table, and the chunks that wait in it by tenant."""

    __slots__ = ("turns", "waiting")

    def __init__(self, turns: TurnTable, waiting: dict[str, int]) -> None:
        self.turns = turns
        self.waiting = waiting


class Lanes(Generic[R]):
    """The lanes by selection and priority; None is the lane of all priorities, for Fair.

    The table of the whole queue is no lane: the engine knows who waits there and stores it.
    """

    __slots__ = ("_candidates", "_lanes", "_prune_at", "_tables", "_users")

    def __init__(self, tables: TurnTables, candidates: Callable[[], Iterable[R]]) -> None:
        self._tables = tables
        self._candidates = candidates
        self._lanes: dict[Selection, dict[int | None, _Lane]] = {}
        self._users: dict[tuple[Selection, bool], int] = {}  # by selection and whether by priority
        self._prune_at = limits.PRIORITIES_MAX

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def __bool__(self) -> bool:
        return bool(self._users)

    def open(self, tier: Tier) -> None:
        """An order of this tier is made; it may ask for its tables until `close`."""
        ranked = tier.base is CustomPriority
        if not ranked and (tier.base is not Fair or not tier.selection):
            return
        use = (tier.selection, ranked)
        self._users[use] = self._users.get(use, 0) + 1
        if self._users[use] > 1:
            return
        found: dict[int | None, dict[str, int]] = {} if ranked else {None: {}}
        for run in self._candidates():
            if run.waiting and selects(tier.selection, run):
                waiting = found.setdefault(run.priority if ranked else None, {})
                waiting[run.tenant] = waiting.get(run.tenant, 0) + run.waiting
        for priority, waiting in found.items():
            self._make(tier.selection, priority, waiting)

    def close(self, tier: Tier) -> None:
        """An order of this tier is gone; lanes that no order uses are dropped."""
        use = (tier.selection, tier.base is CustomPriority)
        if use not in self._users:
            return
        self._users[use] -= 1
        if self._users[use]:
            return
        del self._users[use]
        group = self._lanes.get(tier.selection, {})
        for priority in [priority for priority in group if (priority is not None) == use[1]]:
            self._drop(tier.selection, priority)

    def table(self, selection: Selection, priority: int | None = None) -> TurnTable:
        """The table that an order of this selection reads and charges."""
        if priority is None and not selection:
            return self._tables.table()
        return self._lane(selection, priority).turns

    def enters(self, run: R, n: int) -> bool:
        """A submit or redrive brings a run with n chunks; says whether lanes were dropped for it."""
        if n:
            for lane in self._of(run):
                if not lane.waiting.get(run.tenant):
                    lane.turns.appear(run.tenant)
                lane.waiting[run.tenant] = lane.waiting.get(run.tenant, 0) + n
        return len(self) > self._prune_at and self._prune()

    def waits(self, run: R, n: int) -> None:
        """n chunks more (or fewer, if negative) of the run wait."""
        for lane in self._of(run):
            left = lane.waiting.get(run.tenant, 0) + n
            if left > 0:
                lane.waiting[run.tenant] = left
                if run.tenant not in lane.turns.turn:  # the lane is younger than the lease that came back
                    lane.turns.appear(run.tenant)
            else:
                lane.waiting.pop(run.tenant, None)

    def _of(self, run: R) -> list[_Lane]:
        return [
            self._lane(selection, run.priority if ranked else None)
            for selection, ranked in self._users
            if selects(selection, run)
        ]

    def _lane(self, selection: Selection, priority: int | None) -> _Lane:
        lane = self._lanes.get(selection, {}).get(priority)
        return self._make(selection, priority, {}) if lane is None else lane

    def _make(self, selection: Selection, priority: int | None, waiting: dict[str, int]) -> _Lane:
        lane = _Lane(self._tables.table(selection, waiting, priority), waiting)
        self._lanes.setdefault(selection, {})[priority] = lane
        return lane

    def _drop(self, selection: Selection, priority: int | None) -> None:
        group = self._lanes[selection]
        del group[priority]
        if not group:
            del self._lanes[selection]
        self._tables.drop(selection, priority)

    def _prune(self) -> bool:
        """Drop priorities that nobody waits in: whoever comes back starts within two units of where it was."""
        empty = [
            (selection, priority)
            for selection, group in self._lanes.items()
            for priority, lane in group.items()
            if priority is not None and not lane.waiting
        ]
        for selection, priority in empty:
            self._drop(selection, priority)
        self._prune_at = max(limits.PRIORITIES_MAX, 2 * len(self))
        return bool(empty)
