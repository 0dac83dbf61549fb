"""Trying: the next picks of a live plan are made and taken back, at the cost of those picks and no more.

Guards: afterwards every run, count and turn is what it was, and the orders have heard of all that rose again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from fairway.strategy.lanes import Lanes
from fairway.strategy.order import R, TurnTable
from fairway.strategy.terms import CustomPriority, Fair
from fairway.strategy.tiers import Tier


class _Charged:
    """One table of turns as it was."""

    __slots__ = ("_moved", "_v", "before", "table")

    def __init__(self, table: TurnTable) -> None:
        self.table = table
        self.before: dict[
            str, tuple[int, int] | None
        ] = {}  # (turn, rest) of who was charged; None: it had none
        self._v = table.v
        self._moved, table.moved = table.moved, set[str]()
        table.trying = True

    def charges(self, tenant: str) -> None:
        """The tenant is charged next."""
        table = self.table
        if tenant not in self.before:
            new = tenant in table.moved  # it appeared just now
            self.before[tenant] = None if new else (table.turn[tenant], table.rest[tenant])

    def back(self) -> None:
        table = self.table
        for tenant in table.moved:
            had = self.before.get(tenant)
            if had is None:
                del table.turn[tenant], table.rest[tenant]
            else:
                table.turn[tenant], table.rest[tenant] = had
        table.v, table.moved, table.trying = self._v, self._moved, False


class Trial(Generic[R]):
    """Picks of the tiers of one plan; `back` takes runs and turns back, the caller tells the orders of it."""

    __slots__ = ("_before", "_lanes", "_tables", "picked", "taken", "tier")

    def __init__(self, lanes: Lanes[R], tiers: Iterable[Tier]) -> None:
        self._lanes = lanes
        tables = {id(table): table for tier in tiers for table in lanes.tables(tier)}
        self._tables = {name: _Charged(table) for name, table in tables.items()}
        self._before: dict[int, tuple[R, int]] = {}  # what was ready
        self.picked: list[tuple[R, int]] = []
        """The runs of the picks and their tiers."""
        self.taken: list[tuple[R, int]] = []
        """The same, with the number of chunks."""
        self.tier: tuple[int, Tier] | None = None

    def grab(self, run: R, n: int, shuffled: bool) -> None:
        """A pick, as an order makes it."""
        assert self.tier is not None
        at, tier = self.tier
        if tier.base in (Fair, CustomPriority):
            priority = run.priority if tier.base is CustomPriority else None
            self._tables[id(self._lanes.table(tier.selection, priority))].charges(run.tenant)
        self._before.setdefault(run.id, (run, run.ready))
        run.ready -= n
        run.eligible = run.ready > 0
        self.taken.append((run, n))
        self.picked.extend([(run, at)] * n)

    def back(self) -> tuple[list[R], set[str]]:
        """Every run and turn is what it was; gives the runs and the tenants that it concerns."""
        for charged in self._tables.values():
            charged.back()
        runs: list[R] = []
        for run, ready in self._before.values():
            run.ready, run.eligible = ready, True
            runs.append(run)
        return runs, {run.tenant for run in runs}
