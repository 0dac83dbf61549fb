"""Compiling: the live order of a tier, the quickest that can keep it.

Guards: an order that is made is ended once; its lane and its counts live as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, cast

from fairway.model.dice import Dice
from fairway.strategy.inflight import InFlight
from fairway.strategy.lanes import Lanes
from fairway.strategy.order import Limited, Order, R, TurnTable
from fairway.strategy.orders.age import AgeOrder
from fairway.strategy.orders.fair import FairOrder
from fairway.strategy.orders.gated import GatedOrder
from fairway.strategy.orders.parking import ParkingOrder
from fairway.strategy.orders.ranked import RankedOrder
from fairway.strategy.orders.ranking import ByAge, ByPriority, ByTurn, Ranking
from fairway.strategy.orders.uniform import UniformOrder
from fairway.strategy.terms import CustomPriority, Fair, NewestFirst, OldestFirst, Random
from fairway.strategy.tiers import Tier


class Live(Generic[R]):
    """A tier, its order, and how many plans use it."""

    __slots__ = ("limited", "order", "plans", "tier")

    def __init__(self, tier: Tier, order: Order[R], limited: Limited[R] | None) -> None:
        self.tier = tier
        self.order = order
        self.limited = limited
        """The order again, if it has limits."""
        self.plans = 0

    @property
    def by_share(self) -> bool:
        return any(cap.percent is not None for _, cap in self.tier.limits)

    def adder(self) -> Callable[[Sequence[R]], None]:
        """The order's `add` of many runs."""
        order = self.order
        if self.tier.base is Fair and not self.tier.limits:
            return cast("FairOrder[R]", order).add_all

        def add_all(runs: Sequence[R]) -> None:
            for run in runs:
                order.add(run)

        return add_all


class Compiler(Generic[R]):
    """Makes orders that share dice, lanes and counts."""

    __slots__ = ("_dice", "_in_flight", "_lanes")

    def __init__(self, dice: Dice, lanes: Lanes[R], in_flight: InFlight[R]) -> None:
        self._dice = dice
        self._lanes = lanes
        self._in_flight = in_flight

    def __call__(self, tier: Tier) -> Live[R]:
        """An empty order for the tier; the keys that it limits are counted already."""
        self._lanes.open(tier)
        if not tier.limits:
            return Live(tier, self._unlimited(tier), None)
        counts = self._in_flight.counts
        order: Limited[R]
        if tier.base is Random:
            order = GatedOrder[R](self._dice, tier.limits, counts)
        else:
            order = ParkingOrder[R](self._ranking(tier), tier.limits, counts)
        self._in_flight.join(order)
        return Live(tier, order, order)

    def end(self, live: Live[R]) -> None:
        """No plan uses the order any more."""
        self._lanes.close(live.tier)
        if live.limited is not None:
            self._in_flight.leave(live.limited)
            live.limited.end()

    def _unlimited(self, tier: Tier) -> Order[R]:
        if tier.base is Fair:
            return FairOrder[R](self._lanes.table(tier.selection))
        if tier.base is CustomPriority:
            return RankedOrder[R](lambda priority: self._table(tier, priority))
        if tier.base is Random:
            return UniformOrder[R](self._dice)
        assert tier.base in (OldestFirst, NewestFirst), tier
        return AgeOrder[R](newest=tier.base is NewestFirst)

    def _ranking(self, tier: Tier) -> Ranking:
        if tier.base is Fair:
            return ByTurn(self._lanes.table(tier.selection))
        if tier.base is CustomPriority:
            return ByPriority(lambda priority: self._table(tier, priority))
        assert tier.base in (OldestFirst, NewestFirst), tier
        return ByAge(newest=tier.base is NewestFirst)

    def _table(self, tier: Tier, priority: int) -> TurnTable:
        return self._lanes.table(tier.selection, priority)
