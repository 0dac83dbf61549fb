"""Seeded randomness: the same again from the same seed, uniform, and a permutation that can be undone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.model.dice import Dice, Shuffle, mix

seeds = st.integers(0, 2**64 - 1)


def chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((c - expected) ** 2 for c in counts) / expected


def critical(degrees: int) -> float:
    """Above the 0.9999 quantile (Wilson-Hilferty)."""
    return degrees * (1 - 2 / (9 * degrees) + 3.9 * (2 / (9 * degrees)) ** 0.5) ** 3


@given(seeds)
def test_one_seed_gives_one_stream(seed: int) -> None:
    one, other = Dice(seed), Dice(seed)
    stream = [one.bits64() for _ in range(5)]
    assert stream == [other.bits64() for _ in range(5)]
    assert len(set(stream)) == 5 and all(0 <= x < 2**64 for x in stream)


@given(seeds)
def test_draws_aside_leave_the_stream_as_it_was(seed: int) -> None:
    one, other = Dice(seed), Dice(seed)
    one.bits64(), other.bits64()
    with one.aside():
        aside = [one.bits64() for _ in range(5)]
    stream = [one.bits64() for _ in range(5)]
    assert stream == [other.bits64() for _ in range(5)] and not set(stream) & set(aside)


def test_the_generator_is_splitmix64() -> None:
    dice = Dice(1234567)  # the reference values that go with the published generator
    assert [dice.bits64() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_mix_gives_no_number_twice() -> None:
    assert len({mix(x) for x in range(10_000)}) == 10_000


@given(seeds, st.integers(1, 2**64))
def test_below_stays_below(seed: int, n: int) -> None:
    dice = Dice(seed)
    assert all(0 <= dice.below(n) < n for _ in range(5))


@pytest.mark.parametrize("n", [2, 3, 7, 100, 3 * 2**62])
def test_below_is_uniform(n: int) -> None:
    # With a plain remainder the lowest third of 3 * 2**62 would be twice as likely.
    dice, cells = Dice(9), min(n, 10)
    counts = [0] * cells
    for _ in range(24_000):
        counts[dice.below(n) * cells // n] += 1
    assert chi_square(counts) < critical(cells - 1)


@given(st.integers(1, 3000), seeds)
def test_a_shuffle_is_a_permutation_and_place_undoes_at(n: int, seed: int) -> None:
    shuffle = Shuffle.seeded(n, seed)
    order = [shuffle.at(place) for place in range(n)]
    assert sorted(order) == list(range(n))
    assert all(shuffle.place(element) == place for place, element in enumerate(order))


@given(st.integers(1, 2**31), seeds, st.data())
def test_a_shuffle_of_any_size_can_be_undone_in_constant_memory(
    n: int, seed: int, data: st.DataObject
) -> None:
    shuffle = Shuffle.seeded(n, seed)
    place = data.draw(st.integers(0, n - 1))
    element = shuffle.at(place)
    assert 0 <= element < n and shuffle.place(element) == place


def test_a_shuffle_depends_on_its_seed_and_leaves_little_in_place() -> None:
    n = 1000
    one, other = Shuffle.seeded(n, 1), Shuffle.seeded(n, 2)
    assert [one.at(i) for i in range(n)] != [other.at(i) for i in range(n)]
    assert sum(one.at(i) == i for i in range(n)) < 20
    # Neighbours do not stay neighbours: a run of the deck is spread over all of it.
    spread = [one.at(i) * 10 // n for i in range(200)]
    assert chi_square([spread.count(c) for c in range(10)]) < critical(9)


def test_over_many_seeds_every_element_is_equally_likely_to_be_first() -> None:
    n, counts = 10, [0] * 10
    for seed in range(5000):
        counts[Shuffle.seeded(n, mix(seed)).at(0)] += 1
    assert chi_square(counts) < critical(n - 1)


@pytest.mark.parametrize("n", [33, 64, 1000])
def test_neighbours_of_a_shuffle_are_unrelated(n: int) -> None:
    """The distance between two places is uniform over seeds; a weak round function fails here and nowhere else."""
    for apart in (1, 2, 7):
        counts = [0] * n
        for seed in range(60 * n):
            shuffle = Shuffle.seeded(n, seed)
            counts[(shuffle.at(apart) - shuffle.at(0)) % n] += 1
        assert counts[0] == 0
        expected = 60 * n / (n - 1)
        chi = sum((count - expected) ** 2 / expected for count in counts[1:])
        assert chi < (n - 2) + 5 * math.sqrt(2 * (n - 2)), (n, apart)
