"""A checker that finds nothing proves nothing: worlds broken in one way are found out within a few seeds."""

from __future__ import annotations

from functools import partial

import pytest

from fairway.testing.shrink import shrink
from fairway.testing.simulate import simulate
from tests.sim.planted import FAULTS

SEEDS_MAX = 60  # the slowest one to be found takes about 20


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_world_is_found_out(fault: str) -> None:
    make, expected = FAULTS[fault]
    for seed in range(SEEDS_MAX):
        found = {violation.check for violation in simulate(seed, make=make).outcome.violations}
        if found & expected:
            return
    pytest.fail(f"{SEEDS_MAX} seeds did not show that {fault}")


def test_a_failing_seed_shrinks_to_a_short_story() -> None:
    make, _ = FAULTS["a leased chunk is handed out again"]
    run = partial(simulate, make=make)
    shrunk = shrink(0, 150, run=run, check="no_double_lease")
    assert shrunk is not None
    assert len(shrunk.steps) < 30, "150 steps should shrink to a few"
    again = run(0, 150, keep=shrunk.steps)
    assert shrunk.violation in again.outcome.violations, "what is left replays"
    story = shrunk.story()
    assert story.startswith("seed 0") and "> " in story and "reserve" in story


def test_a_seed_that_does_not_fail_does_not_shrink() -> None:
    assert shrink(1, 40) is None
