"""Random is uniform over chunks inside SelectOnly, below limits and in both, while leases come and go."""

from __future__ import annotations

import random

import pytest

from fairway.strategy.terms import MaxSimultaneous, PreferDistinct, Random, SelectOnly, Strategy
from tests.strategy.desk import Desk
from tests.strategy.naive_plans import NaivePlans
from tests.strategy.test_random_is_uniform import critical

SIZES = [1, 2, 3, 5, 7, 8, 9, 50, 200]


class Draws:
    """Single draws, and the chance that each run had."""

    def __init__(self, seed: int, strategy: Strategy, runs: int) -> None:
        self.rng = random.Random(seed)
        self.strategy = strategy
        self.desk, self.naive = Desk(seed), NaivePlans()
        for _ in range(runs):
            tenant, n = self.rng.choice("abcdefgh"), self.rng.choice(SIZES)
            metadata: dict[str, str | int] = {"mode": self.rng.choice("pq")}
            if self.rng.random() < 0.8:
                metadata["region"] = self.rng.randrange(5)
            self.naive.submit(self.desk.submit(tenant, n, metadata), tenant, n, metadata, 0)
        self.seen = dict.fromkeys(self.desk.rows, 0)
        self.chance = dict.fromkeys(self.desk.rows, 0.0)
        self.out: list[tuple[int, int]] = []

    def draw(self) -> bool:
        _, subs = self.naive.possible(self.strategy)
        total = sum(len(sub.waiting) for sub in subs)
        got = list(self.desk.take(1, str(self.strategy)))
        assert len(got) == min(1, total)
        for sub in subs:
            self.chance[sub.id] += len(sub.waiting) / total
        for id, index in got:
            self.seen[id] += 1
            self.naive.lease(id, index)
        self.out += got
        return bool(got)

    def give_back(self) -> None:
        id, index = self.out.pop(self.rng.randrange(len(self.out)))
        self.desk.give_back(id, index)
        self.naive.give_back(id, index)

    def pause(self) -> None:
        id, on = self.rng.choice(list(self.seen)), self.rng.random() < 0.5
        self.desk.pause(id, on)
        self.naive.subs[id].paused = on

    def chi_square(self) -> tuple[float, int]:
        cells = [(self.seen[id], chance) for id, chance in self.chance.items() if chance >= 8]
        return sum((seen - chance) ** 2 / chance for seen, chance in cells), len(cells) - 1


LIMITED = MaxSimultaneous("region", 3, Random)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        (Random(), 10),
        (SelectOnly("mode", "p", Random), 10),
        (LIMITED, 11),
        (MaxSimultaneous("tenant", 2, Random), 13),
        (MaxSimultaneous("tenant", 3, LIMITED), 12),
        (SelectOnly("mode", "p", MaxSimultaneous("tenant", 2, LIMITED)), 8),
        (PreferDistinct("tenant", 2, Random), 20),
    ],
    ids=str,
)
def test_every_chunk_that_may_be_picked_is_equally_likely(strategy: Strategy, kept: int, seed: int) -> None:
    draws = Draws(seed, strategy, 30)
    for step in range(4000):
        if not draws.draw() or len(draws.out) > kept:
            draws.give_back()
        if step % 50 == 0:
            draws.pause()
    chi, degrees = draws.chi_square()
    assert degrees >= 8 and chi < critical(degrees), (chi, degrees)
