"""A checker that finds nothing proves nothing: worlds broken in one way are found out within a few seeds."""

from __future__ import annotations

from functools import partial

import pytest

from fairway.testing.checks.windowed import fifo_until, shares_until
from fairway.testing.facts import facts_of
from fairway.testing.profile import profile_of
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


@pytest.mark.parametrize("check", ["fifo_inside_a_tenant", "fair_shares"])
def test_a_window_that_does_not_keep_the_order_is_found_out(check: str) -> None:
    make, _ = FAULTS["Fair is not fair"]
    for seed in range(4 * SEEDS_MAX):
        profile = profile_of(seed)
        if profile.window and not profile.by_range:
            found = {violation.check for violation in simulate(seed, make=make).outcome.violations}
            if check in found:
                return
    pytest.fail(f"no seed with a window showed that {check}")


def test_much_of_what_windows_hand_out_is_checked_for_its_order() -> None:
    seen = fifo = shares = 0
    for seed in range(60):
        if profile_of(seed).window:
            history = simulate(seed).recorder.history()
            ends = [delivery.request.end for delivery in facts_of(history).deliveries]
            seen += len(ends)
            fifo += sum(end < fifo_until(history) for end in ends)
            shares += sum(end < shares_until(history) for end in ends)
    assert fifo > seen // 4 and shares > seen // 100, (seen, fifo, shares)
