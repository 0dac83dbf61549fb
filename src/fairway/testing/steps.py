"""Steps: what happens next in a simulated world, one thing at a time.

Guards: a step takes its choices from its own dice alone.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fairway.engine import commands as c
from fairway.store.memory.shelf import Fault
from fairway.testing.fuse import Stopped
from fairway.testing.owner import Owner
from fairway.testing.world import ZOMBIES_MAX, World

_OPEN_CALLS_MAX = 3
_DOES = ("execute", "execute", "execute", "look", "looked", "close", "store", "deliver")
_DOES_SCATTERED = (*_DOES, "look", "look", "look", "looked", "looked", "close", "store")
_READS = ("begin", "read", "read", "delivered", "delivered")


def step(world: World, dice: Random) -> None:
    """One step: a little time passes, something may go wrong, somebody does something."""
    try:
        _pass_time(world, dice)
        if dice.random() < world.profile.fault_rate:
            _fault(world, dice)
        if world.owner is None or not world.owner.alive:
            _replace(world, dice)
        for caller in world.callers:
            if len(caller.open) < _OPEN_CALLS_MAX and dice.random() < 2.0 / len(world.callers):
                asked = world.script.next(caller, dice, world.now)
                if asked is not None:
                    world.send(caller, asked, dice)
        world.resend(dice)
        for zombie in world.zombies:
            _haunt(world, zombie, dice)
        if world.owner is not None:
            _work(world, world.owner, dice)
        _reads(world, dice)
    except Stopped:
        world.faults["crash_in_store"] += 1
        world.down("crash")
    world.zombies = [zombie for zombie in world.zombies if zombie.alive or zombie.outbox]


def _haunt(world: World, zombie: Owner, dice: Random) -> None:
    """An owner that lost the queue and does not know it goes on."""
    try:
        if zombie.alive:
            world.tick(zombie)
        _work(world, zombie, dice)
    except Stopped:
        zombie.alive = False


def _pass_time(world: World, dice: Random) -> None:
    world.now += dice.choice((0.0, 0.01, 0.1, 0.5, 1.0))
    if dice.random() < 0.05:
        world.now += dice.choice((5.0, 20.0, 60.0))
    owner = world.owner
    if owner is not None and owner.alive and dice.random() < 0.9:
        world.tick(owner)


def _replace(world: World, dice: Random) -> None:
    """An owner that ended says so to its callers; after a while a new one takes over."""
    if world.owner is not None:
        world.deliver(world.owner, dice, world.profile.reply_loss)
        world.down("owner ended")
    if dice.random() < 0.6:
        world.start(dice)


def _work(world: World, owner: Owner, dice: Random) -> None:
    """Some of what an owner can do: everything at once, or a few small things in any order."""
    loss = world.profile.reply_loss
    if dice.random() < world.profile.pump_rate:
        world.pump(owner, dice, loss)
        return
    does = _DOES_SCATTERED if world.profile.scattered else _DOES
    if world.profile.reads_on:
        does += _READS
    for _ in range(dice.randint(0, 8 if world.profile.scattered else 4)):
        if not owner.alive:
            break
        what = dice.choice(does)
        if what in ("execute", "look") and owner.inbox:
            late = world.profile.scattered and dice.random() < 0.5
            owner.execute(world.clock(owner), linger=what == "look", late=late)
        elif what == "looked" and world.profile.scattered:
            if owner.looks:
                owner.execute_look(world.clock(owner), dice.randrange(len(owner.looks)))
        elif what == "looked":
            owner.execute_looked(world.clock(owner))
        elif what == "close":
            owner.close(world.clock(owner))
        elif what == "store":
            world.commit(owner)
        elif what == "deliver":
            world.deliver(owner, dice, loss)
        elif what == "begin" and owner.engine.wants_reads():
            owner.begin_reads(world.clock(owner))
        elif what == "read" and owner.reads:
            fails = bool(world.profile.faults) and dice.random() < 0.3
            if fails:
                world.faults["read_error"] += 1
            owner.make_read(fails)
        elif what == "delivered" and owner.read:
            owner.deliver_read(world.clock(owner), dice.randrange(len(owner.read)))


def _reads(world: World, dice: Random) -> None:
    chance = dice.random()
    if chance < 0.02:
        world.census(world.callers[0])
    elif chance < 0.04:
        world.sweep()
    elif chance < 0.05 and world.script.known:
        world.results(world.callers[0], dice.choice(world.script.known))


# -- what goes wrong


def _fault(world: World, dice: Random) -> None:
    faults = world.profile.faults
    name = dice.choices(list(faults), list(faults.values()))[0]
    if name in ("fail", "unknown_stored", "unknown_lost", "late", "echo"):
        world.next_fault = Fault(name)
    elif name == "crash_in_store":
        world.fuse.left = dice.randint(0, 12)
    elif _HAPPENS[name](world, dice):
        world.faults[name] += 1
    if dice.random() < 0.3:
        world.shelf.deliver_late()


def _crash(world: World, dice: Random) -> bool:
    there = world.owner is not None
    world.down("crash")
    return there


def _power_loss(world: World, dice: Random) -> bool:
    world.down("crash")
    world.zombies.clear()
    world.next_fault = Fault.OK
    world.shelf.power_loss()
    world.recorder.note(world.now, "power_loss")
    return True


def _forget_leases(world: World, dice: Random) -> bool:
    world.down("crash")
    world.forgets = True
    return True


def _zombie(world: World, dice: Random) -> bool:
    if world.owner is None or not world.owner.alive or len(world.zombies) >= ZOMBIES_MAX:
        return False
    world.zombies.append(world.owner)
    world.owner = None
    world.recorder.note(world.now, "takeover")
    world.start(dice)
    return True


def _lose_requests(world: World, dice: Random) -> bool:
    if world.owner is None or not world.owner.inbox:
        return False
    world.owner.inbox.clear()
    return True


def _wall_clock(world: World, dice: Random) -> bool:
    world.wall_shift += dice.choice((-3600.0, -7.0, 7.0, 600.0))
    return True


def _time_jump(world: World, dice: Random) -> bool:
    world.now += dice.choice((120.0, 4000.0, 90_000.0, 31 * 86_400.0))
    return True


def _caller_dies(world: World, dice: Random) -> bool:
    """A caller comes back with nothing but its name; what it held and asked is nobody's."""
    caller = dice.choice(world.callers)
    owner = world.owner
    if owner is not None and owner.alive:
        for sent, draft in list(owner.open.values()):
            if (
                sent.caller is caller
                and isinstance(sent.call.command, c.Reserve | c.Wait)
                and not draft.answered
            ):
                owner.abandon(sent)
        for look in [look for look in owner.looks if world.profile.scattered and look.sent.caller is caller]:
            owner.give_up_look(look)
    caller.forget_me()
    caller.held.clear()
    caller.consumer_epoch = 0
    return True


_HAPPENS: dict[str, Callable[[World, Random], bool]] = {  # whether it hit anything: what did not is no fault
    "crash": _crash,
    "power_loss": _power_loss,
    "forget_leases": _forget_leases,
    "zombie": _zombie,
    "lose_requests": _lose_requests,
    "wall_clock": _wall_clock,
    "time_jump": _time_jump,
    "caller_dies": _caller_dies,
}
