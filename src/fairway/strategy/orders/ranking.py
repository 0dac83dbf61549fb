"""Rankings: how a base order compares the runs that stand below limits.

Guards: a run's rank is the integer key of its flow and id; only the turn of its flow moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from fairway import limits
from fairway.strategy.candidate import Candidate
from fairway.strategy.order import TurnTable

# A key is priority | turn | id, one integer. An id has 63 bits; a turn has 62, and more after each rebase.
ID_BITS: Final = 64
PRIORITY_BITS: Final = ID_BITS + 128


class ByAge:
    """OldestFirst and NewestFirst: all runs are one flow, and nothing moves."""

    __slots__ = ("sign",)
    tenants: Final = False  # whether a flow is of one tenant

    def __init__(self, newest: bool) -> None:
        self.sign = -1 if newest else 1

    def flow(self, run: Candidate) -> Hashable:
        return None

    def turns(self, run: Candidate) -> TurnTable | None:
        return None

    def above(self, run: Candidate) -> int:
        return 0


class ByTurn:
    """Fair: a flow is a tenant, and its turn moves it."""

    __slots__ = ("_table", "sign")
    tenants: Final = True

    def __init__(self, table: TurnTable) -> None:
        self.sign = 1
        self._table = table

    def flow(self, run: Candidate) -> Hashable:
        return run.tenant

    def turns(self, run: Candidate) -> TurnTable | None:
        return self._table

    def above(self, run: Candidate) -> int:
        return 0


class ByPriority:
    """CustomPriority: a flow is a tenant at a priority, with the table of that priority."""

    __slots__ = ("_table", "sign")
    tenants: Final = True

    def __init__(self, table: Callable[[int], TurnTable]) -> None:
        self.sign = 1
        self._table = table

    def flow(self, run: Candidate) -> Hashable:
        return run.priority, run.tenant

    def turns(self, run: Candidate) -> TurnTable | None:
        return self._table(run.priority)

    def above(self, run: Candidate) -> int:
        """The part of the key that stands above turns; a higher priority has a lower one."""
        return (limits.PRIORITY_MAX - run.priority) << PRIORITY_BITS


Ranking = ByAge | ByTurn | ByPriority
