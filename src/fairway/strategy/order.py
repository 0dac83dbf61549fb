"""The port between the engine and the orders of a strategy.

Guards: an order is told only what makes a run more eligible; the rest it sees when a run is at its front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from fairway.strategy.candidate import Candidate

R = TypeVar("R", bound=Candidate)

Grab = Callable[[R, int, bool], object]
"""grab(run, n, shuffled): hands out the next n chunks of the run, in its seeded permutation if shuffled.

Before it returns it lowers run.ready by n, and sets run.eligible to False at 0. It calls no order or plan.
If it raises, nothing of this pick has happened in the order.
"""

SWEEP_RUNS_MIN = 1024
"""An order looks for runs that are over when it has twice as many as last time, at least this many."""


class Order(Protocol[R]):
    """A live index of candidates in the order of one strategy."""

    def add(self, run: R) -> None:
        """The run became eligible, or its `ready` grew. May be called at any time and any number of times."""
        ...

    def take(self, k: int, grab: Grab[R]) -> int:
        """Make up to k single picks; gives how many were made: fewer than k only if nothing is eligible."""
        ...

    def reweighed(self, tenant: str) -> None:
        """The tenant's weight changed, so its turn may have fallen."""
        ...

    def __len__(self) -> int:
        """How many runs it holds, those that are over and not yet noticed included."""
        ...


class TurnTable(Protocol):
    """What the fair order needs of a table of turns (fair.turns.Turns)."""

    @property
    def turn(self) -> dict[str, int]: ...
    @property
    def era(self) -> int: ...
    def appear(self, tenant: str) -> int: ...
    def charge(self, tenant: str, n: int = 1) -> int: ...
    def rebase_due(self) -> bool: ...


class TurnTables(Protocol):
    """Where the plans get tables of turns (fair.turns.Tables)."""

    def table(
        self, selection: tuple[tuple[str, str | int], ...] = (), tenants: Iterable[str] = ()
    ) -> TurnTable: ...
