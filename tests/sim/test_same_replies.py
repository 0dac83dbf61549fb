"""Programs of every verb: a restart after every command, and any group that goes wrong in any way, change no reply.

The order of what is handed out at the end, one by one under plain Fair, is part of what is compared.
"""

from __future__ import annotations

import pytest

from tests.sim.playing import Player

STEPS = 45


def first_difference(one: list, other: list) -> str:
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"answer {n}:\n  {a}\n  {b}"
    return f"{len(one)} answers and {len(other)}"


@pytest.mark.parametrize("seed", range(40))
def test_a_restart_after_every_command_changes_no_reply(seed: int) -> None:
    expected = Player(seed).play(STEPS)
    told = Player(seed, restarts=True).play(STEPS)
    assert told == expected, first_difference(expected, told)


@pytest.mark.parametrize("fault", ["fail", "unknown_stored", "unknown_lost", "late", "takeover"])
@pytest.mark.parametrize("seed", range(4))
def test_any_group_may_go_wrong_and_the_repeated_calls_have_one_effect(seed: int, fault: str) -> None:
    batch = 1 + seed % 3
    plain = Player(seed, batch=batch)
    expected = plain.play(STEPS // batch)
    for at in range(0, plain.groups, 1 if fault == "fail" else 3):
        player = Player(seed, fault=fault, at=at, batch=batch)
        told = player.play(STEPS // batch)
        assert player.hit == 1
        assert told == expected, f"group {at}: {first_difference(expected, told)}"
