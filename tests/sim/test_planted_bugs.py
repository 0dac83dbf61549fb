"""Bugs planted in the shipped code are found: from a known seed here, from scratch in `make proof`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from fairway.engine import returning
from fairway.testing.history import Header, Recorder
from fairway.testing.planted import BUGS, planted, search
from fairway.testing.planted.planting import Bugs
from fairway.testing.planted.searching import found_by
from fairway.testing.simulate import STEPS, Outcome, Simulation, simulate
from fairway.testing.violation import Violation
from tests.sim.found import FOUND
from tests.sim.scratch import Scratch

RIGHT = returning.expired
SEEDS_MAX = 10_000
PROOF = Path(__file__).parents[2] / "docs" / "proof.md"


@cache
def is_clean(seed: int) -> bool:
    return not simulate(seed).outcome.violations


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    seed, check = FOUND[bug]
    assert check in found_by(bug, seed), f"seed {seed} does not show that {bug}"
    assert is_clean(seed), f"seed {seed} fails without the bug"


def test_there_are_many_bugs_and_each_has_a_seed() -> None:
    assert len(BUGS) >= 30 and set(FOUND) == set(BUGS)


def test_after_it_was_planted_a_bug_is_gone() -> None:
    with pytest.raises(RuntimeError), planted("a lease is taken back too early"):
        assert returning.expired is not RIGHT
        raise RuntimeError
    assert returning.expired is RIGHT


def test_a_seed_that_fails_without_the_bug_shows_nothing() -> None:
    wrong = [Violation("one_effect", "a bug that nobody planted")]

    def run(seed: int, steps: int, *, keep: Iterable[int] | None = None) -> Simulation:
        told = wrong if seed == 0 or returning.expired is not RIGHT else []
        return Simulation(Outcome(seed, steps, 0, 0, {}, told), Recorder(Header()))

    found = search("a lease is taken back too early", range(3), run=run)
    assert found is not None and found.seed == 1


def test_the_table_of_bugs_is_the_one_in_the_proof() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([\d,]+) \| `(\w+)` \|$", PROOF.read_text(encoding="utf-8"), re.MULTILINE
    )
    table = {bug: (int(seed.replace(",", "")), check) for bug, seed, check in rows}
    assert table == FOUND


def test_a_search_from_scratch_tells_what_it_found_and_what_it_did_not() -> None:
    few: Bugs = {bug: BUGS[bug] for bug in ("a lease is taken back too early", "no pin")}
    scratch = Scratch(few, simulate, 3)
    assert scratch.seeds == {"a lease is taken back too early": 1} and scratch.hidden == ["no pin"]
    figures = scratch.figures()
    assert (
        figures["lost"] == 1 and figures["operations"] > 0 and figures["seed"] == f"0 to 1, x {STEPS} steps"
    )
    assert figures["note"].startswith("1 of 2 bugs were found") and figures["note"].endswith("with seed 1")


@pytest.mark.proof
def test_every_planted_bug_is_found_from_scratch(record_proof: Callable[..., None]) -> None:
    scratch = Scratch(BUGS, simulate, SEEDS_MAX)
    record_proof("planted bugs found from scratch", **scratch.figures())
    assert not scratch.hidden, f"{SEEDS_MAX} seeds do not show that {scratch.hidden}"
