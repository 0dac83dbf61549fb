"""The end of a simulated history: faults stop, everything is resumed and worked off, and the truth is read.

Guards: DESIGN promise 8: after faults stop, everything drains with nobody's help, in a bounded number of rounds.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fairway.engine import commands as c
from fairway.model.submission import Described, Offer
from fairway.testing.caller import Caller, Held, results_of
from fairway.testing.world import World

_IDLE_MAX = 200  # rounds in vain; much more than the longest back-off, delay and silence together need
_ROUNDS_MAX = 5_000  # of reserving; a window of one row hands out one message in each
_PAUSES_SECONDS = (1.0, 5.0, 35.0, 70.0, 700.0, 4000.0)
_BATCH = 5000
_LONG_SECONDS = 100 * 86_400.0  # longer than anything is kept, and than any consumer is waited for
_SWEEPS_MAX = 100
_NEWCOMER, _TURNS = "newcomer", 3


def drain(world: World, dice: Random) -> bool:
    """Work everything off; says whether nothing is left."""
    _calm(world, dice)
    drainer = Caller("drainer", world.recorder)
    world.callers.append(drainer)
    if not _register(world, drainer, dice):
        return False
    for tenant, submission in sorted({(None, 0), *world.script.paused}, key=str):
        _call(world, drainer, c.Pause(False, tenant, submission), dice)
    _call(world, drainer, c.ListDead(), dice)
    if not _work_off(world, drainer, dice):
        return False
    world.recorder.note(world.now, "drained", left=world.left())
    _tell_the_truth(world, drainer, dice)
    _outlive(world, drainer, dice)
    return True


def _calm(world: World, dice: Random) -> None:
    """Faults stop; whatever callers have open is sent again until it is answered."""
    world.recorder.note(world.now, "drain")
    world.calm()
    for _ in range(4):
        _ensure(world, dice)
        world.resend(dice, patience=0.0)
        _settle(world, dice)
        world.now += 35.0
        _settle(world, dice)


def _ensure(world: World, dice: Random) -> None:
    owner = world.owner
    if owner is not None and not owner.alive:
        world.deliver(owner, dice, 0.0)
        world.down("owner ended")
    if world.owner is None:
        world.start(dice)


def _settle(world: World, dice: Random) -> None:
    _ensure(world, dice)
    assert world.owner is not None
    world.tick(world.owner)
    world.pump(world.owner, dice, 0.0)


def _call(
    world: World, caller: Caller, command: c.Command, dice: Random, args: dict[str, Any] | None = None
) -> Any:
    """Ask for something and have the answer at once; None if it was refused."""
    asked = caller.ask(command, args)
    said: list[Any] = []
    world.send(caller, asked, dice)
    assert world.owner is not None
    hear = caller.hear

    def heard(sent: Any, now: float, reply: Any, error: Any, payloads: Any) -> None:
        said.append(reply)
        hear(sent, now, reply, error, payloads)

    caller.hear = heard  # pyright: ignore[reportAttributeAccessIssue]
    try:
        _settle(world, dice)
    finally:
        caller.hear = hear  # pyright: ignore[reportAttributeAccessIssue]
    return said[0] if said else None


def _register(world: World, caller: Caller, dice: Random) -> bool:
    caller.joining = caller.ask(c.Register())
    world.send(caller, caller.joining, dice)
    _settle(world, dice)
    return caller.id != 0


def _work_off(world: World, drainer: Caller, dice: Random) -> bool:
    """Reserve and complete until nothing is left; time passes only when nothing could be finished."""
    idle = 0
    limited = any("MaxSimultaneous" in strategy for strategy in world.profile.strategies)
    for _ in range(_ROUNDS_MAX):
        if limited:  # what it lets through; nothing else is out, so it must let something through
            _finish_some(world, drainer, 'MaxSimultaneous("tenant", 2, Fair)', dice, results=False)
        if _finish_some(world, drainer, "Fair", dice, results=True):
            continue
        stats = _call(world, drainer, c.Stats(), dice, {})
        if stats is not None and not (
            stats.submissions_active or stats.chunks_waiting or stats.chunks_leased
        ):
            return True
        if idle == _IDLE_MAX:
            break
        world.now += _PAUSES_SECONDS[min(idle // 2, len(_PAUSES_SECONDS) - 1)]
        idle += 1
        _settle(world, dice)
    return False


def _finish_some(world: World, drainer: Caller, strategy: str, dice: Random, *, results: bool) -> bool:
    """Reserve and complete once; whether anything was done."""
    reply = _call(world, drainer, c.Reserve(_BATCH, strategy, 60.0), dice)
    if not isinstance(reply, c.Reserved) or not reply.spans:
        return False
    chunks = [(id, i) for id, start, count, _ in reply.spans for i in range(start, start + count)]
    held = Held(reply.epoch, reply.count, reply.seal, reply.deadline, chunks)
    parts = [held.part(chunks)]
    complete = (
        c.Complete(parts, [*results_of(chunks, held.epoch, held.count)]) if results else c.Complete(parts)
    )
    told = _call(world, drainer, complete, dice)
    drainer.held.clear()
    return told is not None and any(outcome == "done" for outcome, _ in told.outcomes)


def _tell_the_truth(world: World, drainer: Caller, dice: Random) -> None:
    """Read everything that can be read about what was ever accepted."""
    world.census(drainer)
    world.events(drainer)
    owner = world.owner
    assert owner is not None
    stored = {run.id for run in owner.store.ended("", None, {}, 0, 1_000_000)}
    for id in sorted({*world.script.known, *stored}):
        shown = _call(world, drainer, c.Show(id), dice)
        if shown is not None and shown.total:
            _call(world, drainer, c.Winners(id, 0, shown.total), dice)
            world.results(drainer, id)


def _pass_by(world: World, drainer: Caller, dice: Random) -> None:
    """A newcomer is served until its turn is above all others': nobody needs to know theirs any more."""
    told = _call(
        world, drainer, c.Submit([Offer(Described(_NEWCOMER, _TURNS, segments=(("mem://", _TURNS),)))]), dice
    )
    while _finish_some(world, drainer, "Fair", dice, results=False):
        pass
    _call(world, drainer, c.Show(told.ids[0]), dice)


def _outlive(world: World, drainer: Caller, dice: Random) -> None:
    """Every retention is over, and the sweeper has been there: what ended has left."""
    _pass_by(world, drainer, dice)
    world.now += _LONG_SECONDS
    _settle(world, dice)
    for _ in range(_SWEEPS_MAX):
        if not world.sweep():
            break
        _settle(world, dice)
    world.recorder.note(world.now, "swept", left=world.left(_NEWCOMER))
    for id in sorted(world.script.known):
        _call(world, drainer, c.Show(id), dice)
