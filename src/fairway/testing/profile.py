"""What kind of a history a seed tells: who calls, what they ask for, and what goes wrong.

Guards: one seed, one profile. Every seed leaves some things out, so that the others meet more often.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

OPS: dict[str, float] = {
    "submit": 10,
    "put": 8,
    "reserve": 16,
    "named": 6,
    "complete": 16,
    "fail": 6,
    "renew": 4,
    "release": 3,
    "stale": 4,
    "forge": 1,
    "repeat": 3,
    "cancel": 2,
    "redrive": 3,
    "pause": 2,
    "resume": 3,
    "set_weight": 2,
    "configure": 1,
    "wait": 2,
    "show": 3,
    "trim": 3,
    "goodbye": 0.5,
}
ALWAYS = ("submit", "put", "reserve", "complete", "resume")

FAULTS: dict[str, float] = {
    "crash": 1.0,  # the owner is thrown away between two steps
    "crash_in_store": 2.0,  # before or after a store call
    "fail": 1.0,  # a group is refused
    "unknown_stored": 1.0,
    "unknown_lost": 1.0,
    "late": 1.0,  # an own group arrives after its owner gave it up
    "power_loss": 0.7,
    "forget_leases": 0.3,  # a start with a clean slate
    "zombie": 1.0,  # a new owner takes over while the old one goes on
    "lose_requests": 1.0,
    "wall_clock": 0.5,  # it jumps, and the next start sees it
    "time_jump": 0.7,
    "caller_dies": 0.7,
}


PLAIN = ["", "Fair", "Random", "OldestFirst", "NewestFirst"]
COMPOSED = [
    "OldestFirst",
    "CustomPriority",
    'SelectOnly("mode", "preview", Random)',
    'MaxSimultaneous("tenant", 2, Fair)',
    'PreferDistinct("mode", 1, MaxSimultaneous("tenant", "50%", NewestFirst))',
    'OrElse(SelectOnly("mode", "full", Fair), MaxSimultaneous("mode", 3, CustomPriority))',
]


class Profile(msgspec.Struct):
    """The shape of one simulated history."""

    seed: int
    callers: int
    tenants: list[str]
    ops: dict[str, float]
    faults: dict[str, float]
    fault_rate: float  # faults per step
    reply_loss: float  # answers that never arrive
    pump_rate: float  # steps that bring everything through at once
    ack_lag: int
    strategies: list[str]
    config: dict[str, Any]
    chunks_max: int
    delays: bool
    hungry: bool  # there is seldom work enough, and whoever comes waits for it
    waits: bool = True  # calls may wait at all


def profile_of(seed: int) -> Profile:
    """The profile of a seed."""
    dice = Random(f"profile {seed}")
    ops = {
        op: rate * dice.choice((0.3, 1, 1, 2))
        for op, rate in OPS.items()
        if op in ALWAYS or dice.random() < 0.7
    }
    calm = dice.random() < 0.1
    faults = {} if calm else {name: rate for name, rate in FAULTS.items() if dice.random() < 0.5}
    strategies = dice.choice((["Fair"], ["Fair"], PLAIN, PLAIN, PLAIN, COMPOSED))
    return Profile(
        seed=seed,
        callers=dice.randint(1, 5),
        tenants=dice.sample(["", "a", "b", "c", "whale"], dice.randint(1, 4)),
        ops=ops,
        faults=faults,
        fault_rate=dice.choice((0.01, 0.03, 0.08)) if faults else 0.0,
        reply_loss=0.0 if calm else dice.choice((0.0, 0.0, 0.02, 0.1)),
        pump_rate=dice.choice((0.2, 0.5, 0.9)),
        ack_lag=dice.choice((0, 0, 2, 5)),
        strategies=strategies,
        config={
            "attempts_max": dice.choice((1, 2, 3, 5)),
            "lease_seconds": dice.choice((0.5, 5.0, 30.0, 60.0)),
            "retention_seconds": dice.choice((0.0, 60.0, 3600.0, 86_400.0)),
            "retry_delay_seconds": dice.choice((0.0, 1.0, 10.0)),
            "consumer_silent_seconds": dice.choice((10.0, 60.0, 3600.0)),
            "client_silent_seconds": dice.choice((60.0, 3600.0, 86_400.0)),
        },
        chunks_max=dice.choice((3, 8, 8, 30, 200)) if dice.random() < 0.99 else 66_000,
        delays=dice.random() < 0.5,
        hungry=dice.random() < 0.25,
    )
