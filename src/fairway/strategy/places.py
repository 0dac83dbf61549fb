"""Places: how many plans may live, whose place is kept, and who leaves for another.

Guards: at most `most` plans have a place, and one of the places is always kept for the queue's own strategy; a plan
that somebody waits for never leaves. Guests, made to be explained, have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from fairway import limits
from fairway.errors import TooManyStrategies
from fairway.strategy.tiers import Tier

Tiers = tuple[Tier, ...]


class Lodger(Protocol):
    """What is asked of a plan."""

    @property
    def pinned(self) -> int: ...
    @property
    def guest(self) -> bool: ...


class Places:
    """The places of one queue's plans; `plans` are always given with the one that was used longest ago first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.own: Tiers | None = None
        """The queue's own strategy, if it is known."""

    def leaves_for(self, tiers: Tiers, plans: Mapping[Tiers, Lodger]) -> Tiers | None:
        """Which plan must leave before one of these tiers gets a place; TooManyStrategies if none may."""
        if tiers == self.own:
            return None
        return self._surplus(self._beside(self.own, plans), self.most - (self.own is not None), 0)

    def leaves_for_own(self, tiers: Tiers, plans: Mapping[Tiers, Lodger], going: int) -> Tiers | None:
        """Which plan must leave before these become the queue's own, to which `going` waiters of the present one go."""
        return self._surplus(self._beside(tiers, plans), self.most, going)

    def check_guest(self, plans: Mapping[Tiers, Lodger]) -> None:
        """One guest more, or TooManyStrategies."""
        if sum(plan.guest for plan in plans.values()) >= limits.PLANS_EXPLAINED_MAX:
            raise TooManyStrategies(
                "as many strategies as may be are in use or being explained; ask again in a moment"
            )

    def full(self, tiers: Tiers, plans: Mapping[Tiers, Lodger]) -> bool:
        """Whether another plan would have to leave for one of these tiers."""
        beside = sum(1 for _ in self._beside(self.own, plans))
        return tiers != self.own and beside >= self.most - (self.own is not None)

    def _beside(self, own: Tiers | None, plans: Mapping[Tiers, Lodger]) -> Iterator[tuple[Tiers, Lodger]]:
        return ((tiers, plan) for tiers, plan in plans.items() if tiers != own and not plan.guest)

    def _surplus(self, beside: Iterator[tuple[Tiers, Lodger]], most: int, going: int) -> Tiers | None:
        others = list(beside)
        if len(others) < most:
            return None
        for tiers, plan in others:
            if plan.pinned <= (going if tiers == self.own else 0):
                return tiers
        raise TooManyStrategies(
            f"{len(others)} other strategies have waiting consumers, and {self.most} with the queue's own are the"
            " most; use one of them, or repeat the call when one of them has none"
        )
