"""Bugs of selections: the turns of a part of the queue.

Guards: each lets a selection hand out what it should, in shares that are wrong.
"""

from __future__ import annotations

from typing import Any

from fairway.fair.turns import Tables, Turns
from fairway.strategy.candidate import selects
from fairway.strategy.lanes import Lanes
from fairway.testing.planted.planting import wrong

_table, _enters, _table_of = Tables.table, Lanes.enters, Lanes.table


@wrong("weights count for nothing inside a selection", Tables, "table")
def all_alike(self: Tables, selection: Any = (), tenants: Any = (), priority: int | None = None) -> Turns:
    table = _table(self, selection, tenants, priority)
    if table is not self.plain:
        table.weight = {}
    return table


@wrong("who submits to a selection goes to its end", Lanes, "enters")
def anew(self: Lanes[Any], run: Any, n: int, counted: bool = True) -> bool:
    for use in self._uses(counted) if n else ():
        if selects(use[0], run):
            turns = self._lane_of(use, run).turns
            turns.turn[run.tenant] = max(turns.turn.values(), default=turns.v) + 1
            turns.rest[run.tenant] = 0
    return _enters(self, run, n, counted)


@wrong("a selection has the turns of the whole queue", Lanes, "table")
def one_for_all(self: Lanes[Any], selection: Any, priority: int | None = None) -> Any:
    return _table_of(self, () if priority is None else selection, priority)
