"""The second thousand of simulated histories, in a file of its own so that another worker has them."""

from __future__ import annotations

import pytest

from fairway.testing.simulate import Tally
from tests.sim.seeds import check_seeds

SEEDS = range(1000, 2000)
SLICES = 20


@pytest.mark.parametrize("part", range(SLICES))
def test_nothing_is_wrong_under_faults_in_the_second_thousand(part: int) -> None:
    tally = Tally()
    check_seeds(SEEDS[part::SLICES], tally)
    assert tally.seeds == len(SEEDS) // SLICES and tally.calls > 20 * tally.seeds
