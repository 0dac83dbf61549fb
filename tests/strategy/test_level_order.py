"""Levels foretell: with constant weights and only Fair consumers runs are first dispatched in level order."""

from __future__ import annotations

import random

import pytest

from tests.strategy.desk import Desk

WEIGHTS = [0.01, 0.5, 1, 1, 2, 3, 7, 33.333, 99.991, 100]


def history(seed: int, restarts: bool) -> list[tuple[int, int]]:
    """The levels of runs in the order of their first dispatches."""
    rng, desk = random.Random(seed), Desk()
    for tenant in "abcde":
        desk.set_weight(tenant, rng.choice(WEIGHTS))
    out: list[tuple[int, int]] = []
    first: list[int] = []
    for step in range(400):
        x = rng.random()
        if x < 0.35 or step < 5:
            id = desk.submit(rng.choice("abcde"), rng.randint(1, 6))
            assert desk.rows[id].level > desk.acked.ack
        elif x < 0.75:
            got = list(desk.take(rng.randint(1, 3)))
            out += got
            first += [id for id, index in got if index == 0]
        elif x < 0.97 and out:
            desk.complete(*out.pop(rng.randrange(len(out))))
            desk.tables.forget_due()
        elif restarts:
            desk.restart()
        open_ = [row.level for row in desk.rows.values() if row.done < row.total]
        assert desk.acked.ack < min(open_, default=(2**63, 0))
    first += [id for id, index in desk.take(10_000) if index == 0]
    assert len(first) == len(desk.rows)
    return [desk.rows[id].level for id in first]


@pytest.mark.parametrize("restarts", [False, True])
def test_runs_are_first_dispatched_in_level_order(restarts: bool) -> None:
    for seed in range(60):
        levels = history(seed, restarts)
        assert levels == sorted(levels), seed
