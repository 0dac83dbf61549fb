"""Weights have one integer form, and what has none is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.errors import BadArgument
from fairway.fair.weights import W_DEFAULT, W_MAX, W_MIN, U, thousandths, weight_of


def test_the_bounds_are_those_of_the_limits() -> None:
    assert (W_MIN, W_DEFAULT, W_MAX) == (10, 1000, 100_000)
    assert thousandths(limits.WEIGHT_MIN) == W_MIN and thousandths(limits.WEIGHT_MAX) == W_MAX
    assert U == 10_000_000


@given(st.integers(W_MIN, W_MAX))
def test_every_step_comes_back(w: int) -> None:
    assert thousandths(weight_of(w)) == w
    assert thousandths(float(f"{w // 1000}.{w % 1000:03d}")) == w


@pytest.mark.parametrize(
    ("weight", "w"), [(1, 1000), (100, 100_000), (33.333, 33_333), (0.1 + 0.2, 300), (0.07, 70)]
)
def test_whole_numbers_and_computed_steps_are_weights(weight: float, w: int) -> None:
    assert thousandths(weight) == w


BAD = [
    *(
        0,
        -1,
        0.009,
        0.0099999,
        100.001,
        101,
        1e300,
        -1e300,
        10**400,
        -(10**5000),
        0.0105,
        1.0005,
        33.3333,
        math.pi,
    ),
    *(math.nan, math.inf, -math.inf, True, False, "1", None, b"1", 1 + 0j, [1]),
]


@pytest.mark.parametrize("weight", BAD, ids=lambda weight: type(weight).__name__)
def test_anything_else_is_a_bad_argument(weight: object) -> None:
    with pytest.raises(BadArgument) as caught:
        thousandths(weight)
    assert "0.01 to 100 in steps of 0.001" in str(caught.value)
    assert len(str(caught.value)) < 300
