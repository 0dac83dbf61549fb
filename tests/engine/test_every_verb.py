"""Any sequence of calls, restarts and power losses: what was told stays true, and the desk's audit holds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.caller import Caller
from tests.engine.late import LATE_VERBS, LateCaller


@pytest.mark.parametrize("seed", range(100))
def test_a_storm_of_calls_breaks_nothing(seed: int) -> None:
    Caller(Random(seed).randrange).live(90)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("window", [1, 2, 8])
def test_a_storm_of_calls_through_a_small_window_breaks_nothing(window: int, seed: int) -> None:
    Caller(Random(1000 * window + seed).randrange, window).live(90)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_storm_of_calls_beside_reads_that_come_late_breaks_nothing(window: int, seed: int) -> None:
    LateCaller(Random(1000 * window + seed).randrange, window).live(120, LATE_VERBS)


@given(data=st.data())
@settings(max_examples=100)
def test_any_program_of_calls_breaks_nothing(data: st.DataObject) -> None:
    window = data.draw(st.sampled_from([0, 1, 2, 8]))
    Caller(lambda n: data.draw(st.integers(0, n - 1)), window).live(data.draw(st.integers(1, 30)))
