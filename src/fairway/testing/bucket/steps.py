"""Steps of a simulated bucket history: each is one activity of one node, with dice of its own.

Guards: a step can be left out without changing the dice of the others, so a failing history shrinks.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from fairway.bucket import naming, redriving, repairing, settling, taking, writing
from fairway.bucket.burying import read_dead
from fairway.bucket.places import LOWEST, place_after
from fairway.bucket.receipts import Ticket, receipt_of, ticket_for, ticket_of
from fairway.bucket.rows import DeadLetter, Message, QueueRow
from fairway.bucket.settling import Renewed
from fairway.bucket.statements import FRESH, DropDead, Machine, Moment, Rest, Take, insist
from fairway.bucket.taking import Leased
from fairway.testing.bucket.node import Node
from fairway.testing.bucket.world import QUEUE, Activity, World

WEIGHTS: dict[str, float] = {"put": 45, "consume": 32, "repair": 16, "operate": 5, "delete": 2}


def start_step(world: World, number: int) -> None:
    """Plan one step: what it is and when it begins depends on nothing but the seed and its number."""
    dice = Random(f"{world.profile.seed} step {number}")
    kinds = {kind: weight for kind, weight in WEIGHTS.items() if kind != "delete" or world.profile.deletes}
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    begin = dice.uniform(0, world.profile.seconds * 0.95)
    world.at(begin, lambda: _begin(world, kind, dice, f"{number:x}"))


def _begin(world: World, kind: str, dice: Random, label: str) -> None:
    profile = world.profile
    place, make = {
        "put": (f"w{dice.randrange(profile.writers)}", put),
        "consume": (f"c{dice.randrange(profile.consumers)}", consume),
        "repair": (f"r{dice.randrange(profile.repairers)}", repair),
        "operate": ("o", operate),
        "delete": ("d", delete),
    }[kind]
    node = world.node(place)
    world.start(node, make(world, node, dice, label), dice)


def _call(
    world: World, who: str, op: str, args: dict[str, Any], machine: Machine[Any], told: Callable[[Any], Any]
) -> Machine[Any]:
    """One call in the history: what it answers, or the word for why it did nothing."""
    line = world.recorder.begin(world.now, who, op, args)
    value = yield from machine
    answer = told(value)
    if isinstance(answer, str) and answer.startswith("!"):
        world.recorder.end(world.now, line, error=answer[1:])
    else:
        world.recorder.end(world.now, line, answer)
    return value


# -- producers


def put(world: World, node: Node, dice: Random, label: str) -> Activity:
    """A few messages, some of them for later."""
    queue: QueueRow | None = yield from naming.find_queue(QUEUE)
    if queue is None:
        return
    writer = node.writer(QUEUE, queue)
    slot = yield from _slot(node, writer)
    moment: Moment = yield FRESH
    delay = dice.choice((0.0, 0.0, 0.0, 2.0, 20.0))
    # What is due much later goes to a bucket that nobody looks into before.
    into = writing.Slot(moment.now + delay) if delay == 20.0 else slot
    uids = _uids(node, moment, dice.choice((1, 1, 2, 3)))
    messages = [
        Message(uid, f"{label}.{n}".encode(), b"", moment.now, moment.now + delay)
        for n, uid in enumerate(uids)
    ]
    args = _offered(queue, messages, world.now + delay)
    yield from _call(world, node.name, "put", args, writing.put(writer, into, messages), _accepted)
    node.busy.discard(id(slot))


def _slot(node: Node, writer: writing.Writer) -> Machine[writing.Slot]:
    """A slot that this activity alone fills, until it gives it back."""
    while (slot := node.free_slot(writer)) is None:
        yield Rest(0.05)
    node.busy.add(id(slot))
    return slot


def _uids(node: Node, moment: Moment, count: int) -> list[bytes]:
    """New ids of a node, in rising order."""
    uids: list[bytes] = []
    for n in range(count):
        node.uid = place_after(moment.now, [node.uid] if node.uid else [], moment.bits + n)
        uids.append(node.uid)
    return uids


def _offered(queue: QueueRow, messages: list[Message], due: float) -> dict[str, Any]:
    return {
        "queue": queue.generation.hex(),
        "uids": [message.uid.hex() for message in messages],
        "bodies": [message.body.decode() for message in messages],
        "due": due,
    }


def _accepted(told: writing.Told) -> str:
    return "accepted" if told is writing.Told.ACCEPTED else f"!{told.value}"


# -- consumers


def consume(world: World, node: Node, dice: Random, label: str) -> Activity:
    """Reserve, work a while, then answer in some way or not at all; a few times."""
    for _ in range(dice.choice((1, 2, 4))):
        queue: QueueRow | None = yield from naming.find_queue(QUEUE)
        if queue is not None:
            leased = yield from reserve(world, node, queue, dice.choice((1, 3, 8)))
            if leased:
                yield Rest(dice.uniform(0.01, 4.0))
                yield from _answer(world, node, queue, leased, dice)
        yield Rest(dice.uniform(0.05, 1.5))


def reserve(world: World, node: Node, queue: QueueRow, count: int) -> Machine[list[Leased] | None]:
    tried: list[str] = []

    def told(leased: list[Leased] | None) -> Any:
        if leased is None:
            return "!gone"
        rows = [one.row for one in leased]
        return {
            "tried": tried,
            "skew": node.skew,
            "leases": [[row.uid.hex(), f"{row.nonce:x}", row.version, row.attempts] for row in rows],
            "bodies": [(row.body or b"").decode("latin-1") for row in rows],
        }

    machine = _listening(taking.reserve(node.reader(QUEUE, queue), count), tried)
    args = {"queue": queue.generation.hex()}
    return (yield from _call(world, node.name, "take", args, machine, told))


def _listening(machine: Machine[Any], tried: list[str]) -> Machine[Any]:
    """Pass the steps of a reserve on, and keep the nonces of its takes."""
    value: Any = None
    while True:
        try:
            step = machine.send(value)
        except StopIteration as end:
            return end.value
        if isinstance(step, Take) and f"{step.nonce:x}" not in tried:
            tried.append(f"{step.nonce:x}")
        value = yield step


def _answer(world: World, node: Node, queue: QueueRow, leased: list[Leased], dice: Random) -> Activity:
    """Forget them, complete them, or do something else with the first and complete the others."""
    by_bucket: dict[bytes, list[Ticket]] = {}
    for one in leased:
        # Through the text and back: what is completed is what a receipt says.
        ticket = ticket_of(receipt_of(ticket_for(one.bucket, one.row), queue.secret), queue.secret)
        assert ticket is not None
        by_bucket.setdefault(one.bucket, []).append(ticket)
    for bucket, tickets in by_bucket.items():
        chance = dice.random()
        if chance < world.profile.forget:
            continue
        if chance < world.profile.forget + 0.25:
            verb = dice.choice(("renew", "release", "fail", "give_up", "twice"))
            tickets = yield from _other(world, node, queue, bucket, tickets, verb, dice)
        if tickets:
            yield from complete(world, node, queue, bucket, tickets)


def complete(world: World, node: Node, queue: QueueRow, bucket: bytes, tickets: list[Ticket]) -> Machine[Any]:
    machine = settling.complete(queue.generation, bucket, tickets)
    return (yield from _settle(world, node, "complete", queue, tickets, machine))


def _other(
    world: World, node: Node, queue: QueueRow, bucket: bytes, tickets: list[Ticket], verb: str, dice: Random
) -> Machine[list[Ticket]]:
    """What is left to be completed after the other verb."""
    generation, first, rest = queue.generation, tickets[:1], tickets[1:]
    if verb == "renew":
        seconds = dice.choice((0.5, 9.0))
        told = yield from _settle(
            world, node, "renew", queue, first, settling.renew(generation, bucket, first, seconds)
        )
        yield Rest(dice.uniform(0.01, 4.0))
        return [one.ticket for one in told if isinstance(one, Renewed)] + rest
    if verb == "twice":
        yield from complete(world, node, queue, bucket, first)
        yield Rest(dice.uniform(0.01, 4.0))
        return tickets
    if verb == "release":
        machine = settling.release(generation, bucket, first)
    else:
        machine = settling.fail(
            generation, bucket, first, world.profile.config, "because", verb == "fail", None
        )
    yield from _settle(world, node, verb, queue, first, machine)
    if dice.random() < 0.3:
        yield Rest(dice.uniform(0.01, 4.0))
        return tickets  # a stale receipt beside good ones
    return rest


def _settle(
    world: World, node: Node, op: str, queue: QueueRow, tickets: list[Ticket], machine: Machine[Any]
) -> Machine[Any]:
    args = {
        "queue": queue.generation.hex(),
        "uids": [ticket.uid.hex() for ticket in tickets],
        "versions": [ticket.version for ticket in tickets],
    }
    return (
        yield from _call(
            world,
            node.name,
            op,
            args,
            machine,
            lambda told: ["renewed" if isinstance(one, Renewed) else one for one in told],
        )
    )


# -- repairers, operators


def repair(world: World, node: Node, dice: Random, label: str) -> Activity:
    """Some rounds over the queue, whoever else repairs."""
    for _ in range(dice.choice((1, 3, 6))):
        queue: QueueRow | None = yield from naming.find_queue(QUEUE)
        if queue is not None:
            yield from repairing.repair(node.repairer(QUEUE, queue.generation))
        yield from naming.finish_deletes()
        yield Rest(dice.uniform(0.2, 4.0))


def operate(world: World, node: Node, dice: Random, label: str) -> Activity:
    """Read the dead letters; remove some of them, and redrive others as new messages."""
    queue: QueueRow | None = yield from naming.find_queue(QUEUE)
    if queue is None:
        return
    args = {"queue": queue.generation.hex()}
    letters = yield from _call(
        world,
        node.name,
        "dead",
        args,
        read_dead(queue.generation, LOWEST, 100),
        lambda found: [letter.uid.hex() for letter in found],
    )
    chosen = [(letter, dice.choice(("stay", "purge", "redrive"))) for letter in letters]
    again = [letter for letter, what in chosen if what == "redrive"]
    if again:
        yield from _redrive(world, node, queue, again)
    uids = [letter.uid for letter, what in chosen if what == "purge"]
    if uids:
        gone = {**args, "uids": [uid.hex() for uid in uids]}
        drop = insist(DropDead(queue.generation, uids))
        yield from _call(world, node.name, "purge", gone, drop, lambda _: "purged")


def _redrive(world: World, node: Node, queue: QueueRow, letters: list[DeadLetter]) -> Activity:
    writer = node.writer(QUEUE, queue)
    slot = yield from _slot(node, writer)
    moment: Moment = yield FRESH
    messages = redriving.renewed(letters, _uids(node, moment, len(letters)), moment.now)
    args = _offered(queue, messages, world.now) | {"letters": [letter.uid.hex() for letter in letters]}
    machine = redriving.redrive(writer, slot, letters, messages)
    yield from _call(world, node.name, "redrive", args, machine, _accepted)
    node.busy.discard(id(slot))


def delete(world: World, node: Node, dice: Random, label: str) -> Activity:
    """Delete the queue, after a while make it again under its name."""

    def told(generation: bytes | None) -> Any:
        return "!not_found" if generation is None else generation.hex()

    generation = yield from _call(world, node.name, "delete", {}, naming.delete_queue(QUEUE), told)
    if generation is not None:
        yield from naming.remove_queue(QUEUE, generation)
    yield Rest(dice.uniform(0.0, 8.0))
    yield from create(world, node)


def create(world: World, node: Node) -> Machine[QueueRow]:
    machine = naming.create_queue(QUEUE, world.profile.config)
    return (yield from _call(world, node.name, "create", {}, machine, lambda queue: queue.generation.hex()))
