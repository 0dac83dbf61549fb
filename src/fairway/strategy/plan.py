"""Plans: strategies compiled into live orders, each made once and kept up to date.

Guards: every live order hears of every run that becomes eligible; at most `plans_max` orders live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic

from fairway import limits
from fairway.model.dice import Dice
from fairway.strategy.order import Order, R, TurnTables
from fairway.strategy.orders.age import AgeOrder
from fairway.strategy.orders.fair import FairOrder
from fairway.strategy.orders.uniform import UniformOrder
from fairway.strategy.terms import Fair, NewestFirst, OldestFirst, Random, Tier
from fairway.strategy.text import parse


class Plans(Generic[R]):
    """The compiled strategies of one queue.

    `candidates` gives the queue's runs; it is called when an order is made, and only eligible ones are taken.
    """

    def __init__(
        self,
        tables: TurnTables,
        dice: Dice,
        candidates: Callable[[], Iterable[R]],
        plans_max: int = limits.PLANS_MAX,
    ) -> None:
        self._tables = tables
        self._dice = dice
        self._candidates = candidates
        self._plans_max = plans_max
        self._orders: dict[Tier, Order[R]] = {}  # least recently used first
        self._tiers: dict[str, Tier] = {}  # by text

    def get(self, text: str) -> Order[R]:
        """The order of a strategy, made and filled if it is not live; BadStrategy if it is no strategy."""
        tier = self._tiers.get(text)
        if tier is None:
            tier = self._understand(text)
        order = self._orders.pop(tier, None)
        if order is None:
            if len(self._orders) >= self._plans_max:
                del self._orders[next(iter(self._orders))]
            order = self._compile(tier)
            for run in self._candidates():
                if run.eligible:
                    order.add(run)
        self._orders[tier] = order
        return order

    def add(self, run: R) -> None:
        """The run became eligible, or its `ready` grew."""
        for order in self._orders.values():
            order.add(run)

    def reweighed(self, tenant: str) -> None:
        """The tenant's weight changed; call it after Tables.reweigh."""
        for order in self._orders.values():
            order.reweighed(tenant)

    def live(self) -> int:
        """How many orders are live."""
        return len(self._orders)

    def _understand(self, text: str) -> Tier:
        (tier,) = parse(text).tiers()
        if len(self._tiers) >= 4 * limits.PLANS_MAX:  # the same strategy has many spellings
            self._tiers.clear()
        self._tiers[text] = tier
        return tier

    def _compile(self, tier: Tier) -> Order[R]:
        if tier.base is Fair:
            return FairOrder[R](self._tables.table(tier.selection))
        if tier.base is Random:
            return UniformOrder[R](self._dice)
        assert tier.base in (OldestFirst, NewestFirst), tier
        return AgeOrder[R](newest=tier.base is NewestFirst)
