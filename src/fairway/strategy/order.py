"""The port between the engine and the orders of a strategy.

Guards: an order is told only what makes a run more eligible; the rest it sees when a run is at its front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from fairway.strategy.candidate import Candidate
from fairway.strategy.tiers import Selection, Value

R = TypeVar("R", bound=Candidate)

Grab = Callable[[R, int, bool], object]
"""grab(run, n, shuffled): hands out the next n chunks of the run, in its seeded permutation if shuffled.

Before it returns it lowers run.ready by n, sets run.eligible to False at 0, and calls Plans.leased and
Plans.waits if they want to know. It calls no order or plan otherwise.
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

    def runs(self) -> Iterable[R]:
        """The runs it holds, those that are over and not yet noticed included."""
        ...

    def expect(self, runs: int) -> None:
        """So many may come: until there are twice as many it does not look for those that are over."""
        ...

    def sweep(self) -> None:
        """Drop runs that other orders finished: nothing else would if nobody takes here."""
        ...

    def __len__(self) -> int:
        """How many runs it holds."""
        ...


class Limited(Order[R], Protocol[R]):
    """An order that stays below limits."""

    @property
    def most(self) -> dict[str, int]:
        """How many chunks of one value may be in flight, by key."""
        ...

    def freed(self, key: str, value: Value) -> None:
        """The value went below its limit."""
        ...

    def seen(self, consumers: int) -> None:
        """How many consumers there are, for limits that are shares of them."""
        ...

    def end(self) -> None:
        """It is not used any more, and must not hold itself: the collector may not look at what is so large."""
        ...


class TurnTable(Protocol):
    """What the fair orders need of a table of turns (fair.turns.Turns)."""

    v: int
    turn: dict[str, int]
    rest: dict[str, int]
    weight: dict[str, int]
    moved: set[str]
    trying: bool

    @property
    def unit(self) -> int: ...
    @property
    def usual_weight(self) -> int: ...
    @property
    def era(self) -> int: ...
    @property
    def lowered(self) -> int: ...
    def appear(self, tenant: str) -> int: ...
    def charge(self, tenant: str, n: int = 1) -> int: ...
    def forget(self, tenant: str) -> None: ...
    def rebase_due(self) -> bool: ...


class TurnTables(Protocol):
    """Where the plans get tables of turns (fair.turns.Tables)."""

    def table(
        self, selection: Selection = (), tenants: Iterable[str] = (), priority: int | None = None
    ) -> TurnTable: ...
    def drop(self, selection: Selection, priority: int | None = None) -> None: ...
