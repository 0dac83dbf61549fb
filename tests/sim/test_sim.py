"""Simulated histories under faults: nothing is wrong with any of them, and one seed is one history."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from fairway.testing.history import parse
from fairway.testing.profile import BESIDE, FAULTS, OPS, profile_of
from fairway.testing.simulate import Tally, simulate
from fairway.testing.steps import step
from fairway.testing.world import World
from tests.sim.seeds import check_seeds

SEEDS = 1000  # and as many in test_sim_more.py
SLICES = 20


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


@pytest.mark.parametrize("part", range(SLICES))
def test_nothing_is_wrong_under_faults(part: int, tally: Tally) -> None:
    check_seeds(range(part, SEEDS, SLICES), tally)


def test_every_fault_happened(tally: Tally) -> None:
    if tally.seeds < SEEDS:
        for seed in range(60):
            tally.add(simulate(seed).outcome)
    assert set(tally.faults) >= {*FAULTS, *BESIDE, "crash_in_start", "lost_reply"}
    print(
        f"{tally.seeds} seeds, {tally.steps} steps, {tally.calls} calls, {sum(tally.faults.values())} faults"
    )


@pytest.mark.parametrize("fault", ["crash", "zombie", "lose_requests"])
def test_a_fault_that_hits_nothing_is_not_counted(fault: str) -> None:
    profile = profile_of(0)
    profile.fault_rate, profile.faults, profile.ops = 1.0, {fault: 1.0}, {"goodbye": 1.0}
    world = World(profile)  # whose owner has not started, so there is nothing to crash, replace or empty
    step(world, Random(7))
    assert world.faults[fault] == 0
    assert [note for _, note in world.recorder.history().notes if note.what != "start"] == []


def test_every_operation_is_answered_in_a_few_seeds() -> None:
    answered: set[str] = set()
    for seed in range(12):
        answered |= {request.op for request in simulate(seed).recorder.history().requests if request.answered}
    made_of = {
        "put": "submit",
        "named": "join",
        "stale": "complete",
        "forge": "fail",
        "repeat": "reserve",
        "resume": "pause",
    }
    assert answered >= {made_of.get(op, op) for op in OPS} | {"census", "results", "winners"}


def test_an_owner_that_lost_the_queue_may_read_what_the_next_one_stored() -> None:
    assert simulate(2030).outcome.violations == [], "it comes to its end by the fence, not by an assertion"


@pytest.mark.parametrize("seed", [7, 26])
def test_a_long_history_comes_to_its_end(seed: int) -> None:
    """In 7 an owner that was replaced took in what the next one had leased, and looked for a chunk of it for ever;
    in 26 a plan that is made in slices was never finished."""
    assert simulate(seed, 2000).outcome.violations == []


def history_of(seed: int, hash_seed: str) -> bytes:
    code = (
        "import sys; from fairway.testing.simulate import simulate;"
        f" sys.stdout.buffer.write(simulate({seed}).recorder.dump())"
    )
    return subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, check=True
    ).stdout


@pytest.mark.parametrize("seed", [3, 11])
def test_one_seed_is_one_history_on_every_machine(seed: int) -> None:
    first, second = history_of(seed, "1"), history_of(seed, "2")
    assert first == second == simulate(seed).recorder.dump()
    assert len(parse(first).requests) > 50


def test_steps_can_be_left_out() -> None:
    whole = simulate(5, 60)
    fewer = simulate(5, 60, keep=range(0, 60, 2))
    assert fewer.outcome.steps == 30 and fewer.recorder.dump() != whole.recorder.dump()
    assert fewer.recorder.dump() == simulate(5, 60, keep=range(0, 60, 2)).recorder.dump()
