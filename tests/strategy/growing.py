"""Random strategies: every block, nested up to a depth, over few keys and values so that they meet."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from fairway.errors import BadStrategy
from fairway.strategy.terms import (
    ORDERS,
    CustomPriority,
    Fair,
    MaxSimultaneous,
    NewestFirst,
    OldestFirst,
    OrElse,
    PreferDistinct,
    SelectOnly,
    Strategy,
)

SURE = (Fair, Fair, CustomPriority, OldestFirst, NewestFirst)
KEYS = ("tenant", "region", "mode")
VALUES: dict[str, tuple[str | int, ...]] = {
    "tenant": ("a", "b", "c"),
    "region": ("x", "y", "1"),
    "mode": ("p", 1, 2),
}


@st.composite
def strategies(draw: st.DrawFn, depth: int = 5) -> Strategy:
    return grown(draw(st.randoms(use_true_random=False)), depth, ORDERS)


def grown(rng: random.Random, depth: int = 4, orders: tuple = SURE) -> Strategy:
    """A strategy that has at most TIERS_MAX tiers."""
    while True:
        try:
            return _grow(rng, depth, orders)
        except BadStrategy as error:
            assert "steps" in str(error)


def _grow(rng: random.Random, depth: int, orders: tuple) -> Strategy:
    x = rng.random()
    if depth <= 1 or x < 0.25:
        return rng.choice(orders)()
    key = rng.choice(KEYS)
    if x < 0.4:
        return SelectOnly(key, rng.choice(VALUES[key]), _grow(rng, depth - 1, orders))
    if x < 0.62:
        return PreferDistinct(key, rng.randint(1, 3), _grow(rng, depth - 1, orders))
    if x < 0.85:
        most = rng.choice([1, 2, 3, 4, "20%", "50%", "100%"])
        return MaxSimultaneous(key, most, _grow(rng, depth - 1, orders))
    return OrElse(_grow(rng, depth - 1, orders), _grow(rng, depth - 1, orders))
