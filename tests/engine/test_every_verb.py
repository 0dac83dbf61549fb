"""Any sequence of calls, restarts and power losses: what was told stays true, and the desk's audit holds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.caller import Caller


@pytest.mark.parametrize("seed", range(300))
def test_a_storm_of_calls_breaks_nothing(seed: int) -> None:
    Caller(Random(seed).randrange).live(90)


@given(data=st.data())
@settings(max_examples=100)
def test_any_program_of_calls_breaks_nothing(data: st.DataObject) -> None:
    Caller(lambda n: data.draw(st.integers(0, n - 1))).live(data.draw(st.integers(1, 30)))
