"""Random is uniform over chunks, while runs sink, grow, end and come back."""

from __future__ import annotations

import random

import pytest

from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate
from fairway.strategy.orders.uniform import UniformOrder


def critical(degrees: int) -> float:
    """Above the 0.9999 quantile (Wilson-Hilferty)."""
    return degrees * (1 - 2 / (9 * degrees) + 3.9 * (2 / (9 * degrees)) ** 0.5) ** 3


class Counting(Dice):
    """Dice that count their throws."""

    __slots__ = ("throws",)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.throws = 0

    def below(self, n: int) -> int:
        self.throws += 1
        return super().below(n)


class Deck:
    """Runs whose picks are put back at once, and the chances they had."""

    def __init__(self, seed: int, sizes: list[int]) -> None:
        self.dice = Counting(seed)
        self.order: UniformOrder[Candidate] = UniformOrder(self.dice)
        self.runs = [Candidate(id, "a", 0, {}, 0, False) for id in range(len(sizes))]
        for run, size in zip(self.runs, sizes, strict=True):
            self.resize(run, size)
        self.seen = [0] * len(sizes)
        self.chance = [0.0] * len(sizes)

    def resize(self, run: Candidate, ready: int) -> None:
        grew = ready > run.ready
        run.ready, run.eligible = ready, ready > 0
        if grew:
            self.order.add(run)

    def grab(self, run: Candidate, n: int, shuffled: bool) -> None:
        assert n == 1 and shuffled and run.eligible
        self.seen[run.id] += 1
        run.ready -= 1
        run.eligible = run.ready > 0

    def draw(self) -> None:
        total = sum(run.ready for run in self.runs if run.eligible)
        before = [run.ready if run.eligible else 0 for run in self.runs]
        assert self.order.take(1, self.grab) == (1 if total else 0)
        if total:
            for id, ready in enumerate(before):
                self.chance[id] += ready / total

    def chi_square(self) -> tuple[float, int]:
        cells = [(s, c) for s, c in zip(self.seen, self.chance, strict=True) if c >= 8]
        return sum((s - c) ** 2 / c for s, c in cells), len(cells) - 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [[1, 2, 3, 5, 9], [1, 2, 3, 5, 7, 8, 9, 50, 200, 1000]])
def test_a_run_is_drawn_by_the_chunks_it_has_left(seed: int, sizes: list[int]) -> None:
    rng = random.Random(seed)
    deck = Deck(seed, [rng.choice(sizes) for _ in range(40)])
    for _ in range(12_000):
        taken = list(deck.seen)
        deck.draw()
        back = next(run for run in deck.runs if deck.seen[run.id] > taken[run.id])
        deck.resize(back, back.ready + 1)
    chi, degrees = deck.chi_square()
    assert degrees > 10 and chi < critical(degrees)


@pytest.mark.parametrize("seed", range(4))
def test_a_run_is_drawn_by_the_chunks_it_has_left_while_others_change_it(seed: int) -> None:
    rng = random.Random(seed)
    deck = Deck(seed, [100] * 25)
    for _ in range(12_000):
        run = rng.choice(deck.runs)
        deck.resize(run, rng.choice([0, 1, 3, 60, 64, 65, 130, 400]))
        if rng.random() < 0.2:
            run.eligible = False  # paused without a word
        elif run.ready and not run.eligible:
            run.eligible = True
            deck.order.add(run)
        deck.draw()
    chi, degrees = deck.chi_square()
    assert degrees == 24 and chi < critical(degrees)


def test_in_a_full_draw_every_order_of_chunks_is_equally_likely() -> None:
    # Runs of 2, 1 and 1: the first run is at each pair of places with the chance 1/6.
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        deck, places = Deck(seed * 7919, [2, 1, 1]), []
        for place in range(4):
            had = deck.seen[0]
            deck.draw()
            if deck.seen[0] > had:
                places.append(place)
        counts[tuple(places)] = counts.get(tuple(places), 0) + 1
    assert len(counts) == 6
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < critical(5)


def test_a_whale_that_sank_is_soon_drawn_no_more_often_than_it_should() -> None:
    deck = Deck(1, [2**31 - 1, *([1] * 50)])
    deck.runs[0].ready = 1  # another order took the rest
    for _ in range(51):
        deck.draw()
    assert sorted(deck.seen) == [1] * 51
    assert deck.dice.throws <= 51 + 35  # one step down for the whale, not one for each lost chunk


@pytest.mark.parametrize("ready", [1, 2, 3, 4, 5, 1023, 1024, 1025, 2**31 - 1])
def test_a_cap_is_never_below_what_is_ready(ready: int) -> None:
    deck = Deck(1, [ready])
    (bucket,) = deck.order._full
    assert ready <= 1 << bucket < 2 * ready or ready == 1
    deck.resize(deck.runs[0], ready + (1 << bucket))
    (bucket,) = deck.order._full
    assert deck.runs[0].ready <= 1 << bucket
