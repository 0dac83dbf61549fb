"""Searching for the first seed that shows a planted bug.

Guards: a bug counts as found only by a check that fails, on a history that is clean without it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairway.testing.planted.planting import BUGS, Bugs, planted
from fairway.testing.shrink import Simulate
from fairway.testing.simulate import STEPS, simulate


class Found(msgspec.Struct):
    """The seed that shows a bug, and the checks that fail there."""

    bug: str
    seed: int
    checks: list[str]


def found_by(
    bug: str, seed: int, steps: int = STEPS, *, bugs: Bugs = BUGS, run: Simulate = simulate
) -> list[str]:
    """The checks that fail on one seed with the bug planted."""
    with planted(bug, bugs):
        violations = run(seed, steps).outcome.violations
    return sorted({violation.check for violation in violations})


def search(
    bug: str, seeds: Iterable[int], steps: int = STEPS, *, bugs: Bugs = BUGS, run: Simulate = simulate
) -> Found | None:
    """The first of the seeds that shows the bug and is clean without it; None if none does."""
    for seed in seeds:
        checks = found_by(bug, seed, steps, bugs=bugs, run=run)
        if checks and not run(seed, steps).outcome.violations:
            return Found(bug, seed, checks)
    return None
