"""A simulation of a bucket queue: a seed and some steps in, a history and what is wrong with it out.

Guards: the same seed and steps give the same history on every machine; when nothing goes wrong any more all must drain.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from fairway.bucket import naming, repairing
from fairway.bucket.counting import BucketStats, count
from fairway.bucket.receipts import Ticket, ticket_for
from fairway.bucket.rows import WAITING, QueueRow
from fairway.bucket.statements import Machine, Rest
from fairway.testing.bucket import steps
from fairway.testing.bucket.checker import check_history
from fairway.testing.bucket.node import Node
from fairway.testing.bucket.profile import BucketProfile, profile_of
from fairway.testing.bucket.world import BEGIN, QUEUE, Activity, World
from fairway.testing.simulate import Outcome, Simulation
from fairway.testing.violation import Violation

STEPS = 150
DRAIN_SECONDS = 240.0  # after everything that was late has come


def simulate(
    seed: int,
    steps_count: int = STEPS,
    *,
    keep: Iterable[int] | None = None,
    make: Callable[[BucketProfile], World] = World,
) -> Simulation:
    """Run one seed; `keep` names the steps that happen, all of them if it is not given."""
    world = make(profile_of(seed))
    kept = list(range(steps_count)) if keep is None else list(keep)
    raised: list[Violation] = []
    try:
        _play(world, kept)
    except Exception as error:  # machines raise nothing: whatever comes here is a finding
        raised.append(_raised(world, error))
    violations = raised or check_history(world.recorder.history())
    outcome = Outcome(seed, len(kept), world.calls, world.incarnations, dict(world.faults), violations)
    return Simulation(outcome, world.recorder)


def _play(world: World, kept: list[int]) -> None:
    first = world.node("first")
    world.faulty = False
    world.start(first, _first(world, first), Random(f"{world.profile.seed} first"))
    world.run(BEGIN + 1.0)
    world.faulty = True
    for number in kept:
        steps.start_step(world, number)
    world.run(BEGIN + world.profile.seconds)
    world.faulty = False
    world.recorder.note(world.now, "drain")
    world.run(world.now + world.profile.late_seconds + world.profile.pause_seconds)
    for place in ("w0", "c0", "r0", "r1"):
        world.node(place)
    dice = Random(f"{world.profile.seed} drain")
    for place, make in (("c0", _consumer), ("c1", _consumer), ("r0", _repairer), ("r1", _repairer)):
        node = world.node(place)
        world.start(node, make(world, node), Random(dice.random()))
    end = world.now + DRAIN_SECONDS
    while world.now < end and not _drained(world):
        world.run(world.now + 2.0)
    _tell_end(world)


def _first(world: World, node: Node) -> Activity:
    yield from steps.create(world, node)


def _consumer(world: World, node: Node) -> Activity:
    """Takes what there is and completes it."""
    while True:
        queue: QueueRow | None = yield from naming.find_queue(QUEUE)
        if queue is not None:
            leased = yield from steps.reserve(world, node, queue, 50)
            by_bucket: dict[bytes, list[Ticket]] = {}
            for one in leased or []:
                by_bucket.setdefault(one.bucket, []).append(ticket_for(one.bucket, one.row))
            for bucket, tickets in by_bucket.items():
                yield from steps.complete(world, node, queue, bucket, tickets)
        yield Rest(0.9)


def _repairer(world: World, node: Node) -> Activity:
    while True:
        row = yield from naming.find_queue(QUEUE)
        if row is None:
            yield from steps.create(world, node)
        else:
            yield from repairing.repair(node.repairer(QUEUE, row.generation))
        yield from naming.finish_deletes()
        yield Rest(0.7)


def _live(world: World) -> QueueRow | None:
    row = world.storage.names[QUEUE]
    return row.queue(row.current)


def _drained(world: World) -> bool:
    queue = _live(world)
    deleting = any(one.state == "deleting" for one in world.storage.names[QUEUE].queues)
    return queue is not None and not deleting and not world.storage.index.get(queue.generation)


def _tell_end(world: World) -> None:
    """What the storage holds when all is over, for the checker."""
    storage, queue = world.storage, _live(world)
    if queue is None:
        world.recorder.note(world.now, "drained", live="")
        return
    generation = queue.generation
    waiting: list[str] = []
    orphans = left = ghosts = 0
    for (g, bucket), kept in storage.buckets.items():
        waiting += [row.uid.hex() for row in kept.rows.values() if row.status == WAITING and g == generation]
        named = bucket in storage.index.get(g, {})
        orphans += not named and not kept.rows
        left += not named and bool(kept.rows)
        ghosts += sum(row.body is None and row.status == WAITING for row in kept.rows.values())
        ghosts += kept.state not in ("open", "sealed", "done")
    stats = _counted(world, count(QUEUE, generation))
    world.recorder.note(
        world.now,
        "drained",
        live=generation.hex(),
        waiting=waiting,
        dead=[uid.hex() for uid in storage.dead.get(generation, {})],
        above_floor=sum(bucket > queue.floor for bucket in storage.index.get(generation, {})),
        below_floor=sum(bucket <= queue.floor for bucket in storage.index.get(generation, {})),
        orphans=orphans,
        unnamed=left,
        ghosts=ghosts,
        counted=[stats.ready, stats.delayed, stats.leased, stats.dead] if stats else [],
    )


def _counted(world: World, machine: Machine[BucketStats | None]) -> BucketStats | None:
    """A machine run at one instant."""
    found: list[BucketStats | None] = []

    def ask() -> Activity:
        found.append((yield from machine))

    world.start(world.node("last"), ask(), Random(0))
    end = world.now + 60.0
    while not found and world.now < end:
        world.run(world.now + 0.2)
    return found[0] if found else None


def _raised(world: World, error: Exception) -> Violation:
    where = traceback.extract_tb(error.__traceback__)[-1]
    last = len(world.recorder.lines)
    told = f"{type(error).__name__}: {error} in {Path(where.filename).name}:{where.lineno}"
    return Violation("nothing_is_raised", told, tuple(range(last)[-12:]))


def outcome_of(seed: int, steps_count: int) -> Outcome:
    """One seed, without its history."""
    return simulate(seed, steps_count).outcome
