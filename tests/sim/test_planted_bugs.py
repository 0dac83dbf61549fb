"""Bugs planted in the shipped code are found: from a known seed here, from scratch in `make proof`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from fairway.engine import returning
from fairway.testing.planted import BUGS, planted, search
from fairway.testing.planted.searching import found_by
from fairway.testing.simulate import simulate
from tests.sim.found import FOUND

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
    right = returning.expired
    with pytest.raises(RuntimeError), planted("a lease is taken back too early"):
        assert returning.expired is not right
        raise RuntimeError
    assert returning.expired is right


def test_the_table_of_bugs_is_the_one_in_the_proof() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([\d,]+) \| `(\w+)` \|$", PROOF.read_text(encoding="utf-8"), re.MULTILINE
    )
    table = {bug: (int(seed.replace(",", "")), check) for bug, seed, check in rows}
    assert table == FOUND


@pytest.mark.proof
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_from_scratch(bug: str) -> None:
    found = search(bug, range(SEEDS_MAX))
    assert found is not None, f"{SEEDS_MAX} seeds do not show that {bug}"
    print(f"| {bug} | {found.seed:,} | {', '.join(found.checks)} |")
