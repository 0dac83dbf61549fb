"""Lanes: the tables of turns of a part of the queue, and who has chunks waiting in each.

Guards: a tenant appears in a lane when a submit gives it chunks there and it had none; what is paused, delayed
or limited counts as having, so it keeps its turn; and all keep their turns while no order uses the lane, or a lane
that is used seldom would begin with the same tenant each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic

from fairway import limits
from fairway.strategy.candidate import selects
from fairway.strategy.order import R, TurnTable, TurnTables
from fairway.strategy.terms import CustomPriority, Fair
from fairway.strategy.tiers import Selection, Tier

_Use = tuple[Selection, bool]
"""What orders look at: a selection, and whether by priority."""


class _Lane:
    """One table, and the chunks that wait in it by tenant."""

    __slots__ = ("fresh", "turns", "waiting")

    def __init__(self, turns: TurnTable, fresh: bool) -> None:
        self.turns = turns
        self.fresh = fresh  # nothing was taken through it before it was made
        self.waiting: dict[str, int] = {}


class Lanes(Generic[R]):
    """The lanes by selection and priority; None is the lane of all priorities, for Fair.

    The table of the whole queue is no lane: the engine knows who waits there and stores it.
    A lane is young until all runs are counted in it: its V stands still, at 0 in a fresh one, and whoever waits and has
    no turn has a newcomer's. When no order uses a lane any more its table rests: it is kept for the next one.
    """

    __slots__ = ("_lanes", "_prune_at", "_resting", "_tables", "_users", "young")

    def __init__(self, tables: TurnTables) -> None:
        self._tables = tables
        self.young: set[_Use] = set()
        self._lanes: dict[Selection, dict[int | None, _Lane]] = {}
        self._users: dict[_Use, int] = {}
        self._resting: OrderedDict[tuple[Selection, int | None], TurnTable] = OrderedDict()
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
        if self._users[use] == 1:
            self.young.add(use)
            if not ranked:
                self._lane(tier.selection, None)

    def count(self, run: R) -> None:
        """The chunks of a run that wait already, in every young lane."""
        tenant, n = run.tenant, run.waiting
        if not n:
            return
        for use in self.young:
            if selects(use[0], run):
                lane = self._lane_of(use, run)
                lane.waiting[tenant] = lane.waiting.get(tenant, 0) + n
                if tenant not in lane.turns.turn:
                    lane.turns.appear(tenant)

    def grown(self) -> None:
        """Every run is counted."""
        self.young.clear()

    def close(self, tier: Tier) -> None:
        """An order of this tier is gone; lanes that no order uses go, and their tables rest."""
        use = (tier.selection, tier.base is CustomPriority)
        if use not in self._users:
            return
        self._users[use] -= 1
        if self._users[use]:
            return
        del self._users[use]
        self.young.discard(use)
        group = self._lanes.get(tier.selection, {})
        for priority in [priority for priority in group if (priority is not None) == use[1]]:
            self._rest(tier.selection, priority)

    def table(self, selection: Selection, priority: int | None = None) -> TurnTable:
        """The table that an order of this selection reads and charges."""
        if priority is None and not selection:
            return self._tables.table()
        return self._lane(selection, priority).turns

    def tables(self, tier: Tier) -> list[TurnTable]:
        """All tables that an order of this tier may charge."""
        if tier.base is Fair:
            return [self.table(tier.selection)]
        if tier.base is not CustomPriority:
            return []
        lanes = self._lanes.get(tier.selection, {})
        return [lane.turns for priority, lane in lanes.items() if priority is not None]

    def enters(self, run: R, n: int, counted: bool = True) -> bool:
        """A submit or redrive brings a run with n chunks; says whether lanes were dropped for it.

        A run that is not counted in young lanes yet changes nothing there.
        """
        if n:
            for use in self._uses(counted):
                if selects(use[0], run):
                    lane = self._lane_of(use, run)
                    had = lane.waiting.get(run.tenant, 0)
                    if not had:
                        lane.turns.appear(run.tenant)
                    lane.waiting[run.tenant] = had + n
        return len(self) > self._prune_at and self._prune()

    def waits(self, run: R, n: int, counted: bool = True) -> None:
        """n chunks more (or fewer, if negative) of the run wait."""
        tenant = run.tenant
        for use in self._uses(counted):
            if not selects(use[0], run):
                continue
            lane = self._lane_of(use, run)
            left = lane.waiting.get(tenant, 0) + n
            if left > 0:
                lane.waiting[tenant] = left
                if tenant not in lane.turns.turn:  # the lane is younger than the lease that came back
                    lane.turns.appear(tenant)
            else:
                lane.waiting.pop(tenant, None)
                if use in self.young and lane.fresh:
                    lane.turns.forget(tenant)  # as if it had gone before the lane was made

    def reweighed(self, tenant: str) -> None:
        """The tenant's weight changed: in a young lane that is fresh it is a newcomer of the new weight."""
        for selection, ranked in self.young:
            for priority, lane in self._lanes.get(selection, {}).items():
                if lane.fresh and (priority is not None) == ranked and tenant in lane.turns.turn:
                    lane.turns.forget(tenant)
                    lane.turns.appear(tenant)

    def _uses(self, counted: bool) -> Iterable[_Use]:
        return self._users if counted else [use for use in self._users if use not in self.young]

    def _lane_of(self, use: _Use, run: R) -> _Lane:
        return self._lane(use[0], run.priority if use[1] else None)

    def _lane(self, selection: Selection, priority: int | None) -> _Lane:
        lane = self._lanes.get(selection, {}).get(priority)
        return self._make(selection, priority) if lane is None else lane

    def _make(self, selection: Selection, priority: int | None) -> _Lane:
        rested = self._resting.pop((selection, priority), None)
        lane = _Lane(self._tables.table(selection, (), priority), rested is None)
        self._lanes.setdefault(selection, {})[priority] = lane
        return lane

    def _drop(self, selection: Selection, priority: int | None) -> None:
        self._close(selection, priority)
        self._tables.drop(selection, priority)

    def _close(self, selection: Selection, priority: int | None) -> TurnTable:
        group = self._lanes[selection]
        lane = group.pop(priority)
        if not group:
            del self._lanes[selection]
        return lane.turns

    def _rest(self, selection: Selection, priority: int | None) -> None:
        """The lane goes, its table stays; those that rest longest make room. One never charged says nothing."""
        turns, resting = self._close(selection, priority), self._resting
        if not turns.v and not turns.era:
            self._tables.drop(selection, priority)
            return
        resting[selection, priority] = turns
        many = sum(len(table.turn) for table in resting.values())
        while len(resting) > limits.TABLES_RESTING_MAX or many > limits.TURNS_RESTING_MAX:
            key, table = resting.popitem(last=False)
            many -= len(table.turn)
            self._tables.drop(*key)

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
