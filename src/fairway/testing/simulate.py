"""A simulation: a seed and some steps in, a history and what is wrong with it out.

Guards: the same seed and steps give the same history, byte for byte, on every machine.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random

import msgspec

from fairway.engine.commands import Configure, Register
from fairway.testing.checker import check_history
from fairway.testing.drain import drain
from fairway.testing.history import Recorder
from fairway.testing.profile import Profile, profile_of
from fairway.testing.steps import step
from fairway.testing.violation import Violation
from fairway.testing.world import World

STEPS = 150


class Outcome(msgspec.Struct):
    """What one simulation showed."""

    seed: int
    steps: int
    calls: int
    starts: int
    faults: dict[str, int]
    violations: list[Violation]


class Simulation(msgspec.Struct):
    """One finished simulation, with its whole history."""

    outcome: Outcome
    recorder: Recorder


def simulate(
    seed: int,
    steps: int = STEPS,
    *,
    keep: Iterable[int] | None = None,
    make: Callable[[Profile], World] = World,
) -> Simulation:
    """Run one seed; `keep` names the steps that happen, all of them if it is not given."""
    world = make(profile_of(seed))
    kept = list(range(steps)) if keep is None else list(keep)
    raised: list[Violation] = []
    try:
        _play(world, seed, kept)
    except Exception as error:  # the engine never raises: whatever comes here is a finding
        raised.append(_raised(world, error))
    violations = raised or check_history(world.recorder.history())
    told = Outcome(seed, len(kept), world.calls, world.starts, dict(world.faults), violations)
    return Simulation(told, world.recorder)


def _play(world: World, seed: int, kept: list[int]) -> None:
    world.start(Random(f"{seed} first"))
    _configure(world, seed)
    for number in kept:
        step(world, Random(f"{seed} step {number}"))
    drain(world, Random(f"{seed} drain"))


def _raised(world: World, error: Exception) -> Violation:
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    last = len(world.recorder.lines)
    return Violation(
        "nothing_is_raised", f"{type(error).__name__}: {error} in {place}", tuple(range(last)[-12:])
    )


def _configure(world: World, seed: int) -> None:
    """The first caller registers and configures the queue before anything goes wrong."""
    dice = Random(f"{seed} configure")
    caller = world.callers[0]
    assert world.owner is not None
    caller.joining = caller.ask(Register())
    world.send(caller, caller.joining, dice)
    world.pump(world.owner, dice, 0.0)
    world.send(caller, caller.ask(Configure(world.profile.config)), dice)
    world.pump(world.owner, dice, 0.0)


def outcome(seed: int, steps: int) -> Outcome:
    """One seed, without its history."""
    return simulate(seed, steps).outcome


def simulate_many(
    seeds: Iterable[int],
    steps: int = STEPS,
    jobs: int = 1,
    outcome_of: Callable[[int, int], Outcome] = outcome,
) -> Iterator[Outcome]:
    """Run many seeds, in several processes if asked; outcomes come as they are ready."""
    if jobs == 1:
        for seed in seeds:
            yield outcome_of(seed, steps)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        many = list(seeds)
        # Few at a time if they are long, so that something is heard of them.
        at_a_time = max(1, min(20, len(many) // (4 * jobs), 20 * STEPS // steps))
        yield from pool.map(outcome_of, many, [steps] * len(many), chunksize=at_a_time)


class Tally(msgspec.Struct):
    """Sums over many simulations."""

    seeds: int = 0
    steps: int = 0
    calls: int = 0
    starts: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    failing: list[int] = []
    violations: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.calls += outcome.calls
        self.starts += outcome.starts
        self.faults.update(outcome.faults)
        self.violations.update(violation.check for violation in outcome.violations)
        if outcome.violations:
            self.failing.append(outcome.seed)
