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
_TURNING = (
    "submit",
    "cancel",
    "set_weight",
    "fail",
    "release",
    "renew",
    "stale",
)  # turns are not as forecast
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

BATCHES: dict[str, float] = {
    "named": 40.0,  # else there is nothing to finish
    "trim": 2.0,
    "finish": 14.0,
    "listings": 3.0,
}
"""What some seeds ask besides: a consumer's batches, which it ends as the sink of Spark does."""

LINES: dict[str, float] = {
    "submit": 3.0,
    "put": 2.0,
    "reserve": 30.0,
    "complete": 5.0,
    "resume": 1.0,
    "configure": 4.0,
}
"""What some seeds ask alone: more wait for work than there is, and not all by the same strategy."""

BESIDE: dict[str, float] = {
    "echo": 1.0,  # a stored group arrives a second time, later
}


PLAIN = ["", "Fair", "Random", "OldestFirst", "NewestFirst"]
WAITED_BY = ["", "Fair", "Random", 'SelectOnly("mode", "full", NewestFirst)']
LANES = [
    "Fair",
    'SelectOnly("mode", "preview", Fair)',
    'SelectOnly("mode", "preview", Fair)',
    'SelectOnly("mode", "full", SelectOnly("size", "large", Fair))',
]
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
    sizes: bool = False  # submissions have one more value to be selected by
    waits: bool = True  # calls may wait at all
    window: int = 0  # rows of the window; 0: everything fits
    fetched: int = 100  # rows beside it
    by_range: bool = False  # the store deletes by range
    brief: bool = True  # leases may be shorter than the queue's own
    plan_steps: int = 0  # runs that a new plan takes in at a time; 0: all at once
    journal_groups: int = 0  # groups for which an object may differ from its stored form; 0: as shipped
    keys: float = 0.25  # offers with an idempotency key
    scattered: bool = (
        False  # calls that look things up are many, end in any order, and may read the store late
    )
    skew_seconds: float = 0.0  # how far the clocks of two owners' machines may be apart

    @property
    def reads_on(self) -> bool:
        """Whether there is something to do beside calls: reads of the window, slices of plans."""
        return bool(self.window or self.plan_steps)


def profile_of(seed: int) -> Profile:
    """The profile of a seed."""
    dice = Random(f"profile {seed}")
    apart, slices = Random(f"window {seed}"), Random(f"slices {seed}")
    store = Random(f"store {seed}")
    ops = {
        op: rate * dice.choice((0.3, 1, 1, 2))
        for op, rate in OPS.items()
        if op in ALWAYS or dice.random() < 0.7
    }
    calm = dice.random() < 0.1
    faults = {} if calm else {name: rate for name, rate in FAULTS.items() if dice.random() < 0.5}
    strategies = dice.choice((["Fair"], ["Fair"], PLAIN, PLAIN, PLAIN, COMPOSED))
    profile = Profile(
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
        window=apart.choice((0, 0, 1, 2, 8)),
        fetched=apart.choice((1, 3, 100)),
        by_range=apart.random() < 0.5,
        plan_steps=slices.choice((0, 0, 1, 2)),
        journal_groups=store.choice((0, 0, 1, 3, 12)),
        skew_seconds=store.choice((0.0, 0.0, 5.0)) if faults else 0.0,
    )
    if faults:
        profile.faults |= {name: rate for name, rate in BESIDE.items() if store.random() < 0.4}
    if store.random() < 0.15:
        profile.ops |= {"named": 40.0, "trim": 4.0, "complete": 30.0}  # else names are seldom asked for again
    if Random(f"rows {seed}").random() < 0.12:
        profile.ops |= BATCHES
    if Random(f"looks {seed}").random() < 0.2:
        profile.scattered, profile.keys, profile.pump_rate = True, 0.6, 0.1
    if profile.window and slices.random() < 0.4:
        _in_order(profile, calm=slices.random() < 0.5)
    lines, lanes = Random(f"lines {seed}"), Random(f"lanes {seed}")
    if lines.random() < 0.04:
        _in_line(profile)
    elif lanes.random() < 0.05:
        _in_lanes(profile, lanes)
    return profile


def _in_line(profile: Profile) -> None:
    """Most of those who call wait, each by the strategy of its choice."""
    profile.callers, profile.hungry, profile.waits = 5, True, True
    profile.strategies, profile.ops = WAITED_BY, {**LINES}
    profile.chunks_max, profile.pump_rate, profile.delays = 3, 0.9, False


def _in_lanes(profile: Profile, dice: Random) -> None:
    """Parts of the queue are taken from by themselves; tenants have a backlog in each."""
    profile.strategies, profile.sizes, profile.hungry = LANES, True, False
    profile.tenants = dice.sample(["", "a", "b", "c", "whale"], dice.randint(2, 4))
    profile.window, profile.by_range, profile.delays = 0, False, False
    profile.chunks_max = 8
    gone = ("named", "trim", "finish", "pause", "redrive")
    profile.ops = {op: rate for op, rate in profile.ops.items() if op not in gone}
    profile.ops |= {"submit": 16.0, "reserve": 24.0}


def _in_order(profile: Profile, calm: bool) -> None:
    """Nothing makes a row leave its place, so that the window has to keep the order; calm: nor any turn."""
    profile.delays = profile.by_range = False
    profile.strategies = ["Fair"]
    gone = ("redrive", "pause", "named", "trim", "finish", *(_TURNING if calm else ()))
    profile.ops = {op: rate for op, rate in profile.ops.items() if op not in gone}
    if calm:
        profile.reply_loss, profile.fault_rate, profile.faults = 0.0, 0.0, {}
        profile.config |= {"lease_seconds": 3600.0, "attempts_max": 5}
        profile.brief, profile.pump_rate, profile.waits = False, 1.0, False
