"""Programs of numbered calls, each played three times: plainly, with a restart after every command, and with one
group failing, for every group in turn. The replies are the same, and so is the order of what is handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fairway.engine.commands import (
    Accepted,
    Call,
    Cancel,
    Command,
    Complete,
    Fail,
    Part,
    Pause,
    Register,
    Release,
    Renew,
    Reserve,
    Reserved,
    Settled,
    SetWeight,
    Show,
    Stats,
    Submit,
)
from fairway.engine.engine import Engine
from fairway.engine.state import Start
from fairway.errors import FairwayError, StoreFailed
from fairway.model.submission import Described, Offer, Submission
from fairway.store.memory import MemoryStore, Shelf

Told = tuple[Any, ...]


class Player:
    """A client of one queue that repeats a call by its number when its group failed."""

    def __init__(self, restart: bool = False, failing: int = -1) -> None:
        self.shelf, self.now, self.starts, self.restart, self.failing = (
            Shelf(),
            1_700_000_000.0,
            0,
            restart,
            failing,
        )
        self.groups = self.number = self.failed = 0
        self.names: dict[
            int, int
        ] = {}  # ids by the order of their appearance: a failed one is never given again
        self.client = 0
        self.start()
        self.client = self.ask(Register(), number=0)

    def start(self) -> None:
        self.starts += 1
        above = self.engine.state.last_id if self.starts > 1 else 0
        self.store = MemoryStore(self.shelf, "q")
        start = Start("q", self.starts, self.starts, self.now, above_id=above)
        self.engine = Engine.load(self.store, self.store.take_over(), start)

    def ask(self, command: Command, number: int) -> Any:
        """The reply; a failed group is told to the caller, who asks again with the same number."""
        while True:
            call = Call(command, self.client, number, number - 1)
            lookups = self.engine.lookups(call)
            draft = self.engine.execute(call, self.now, lookups and lookups.read(self.store))
            closing = self.engine.close_group(self.now)
            if closing is not None and closing.group is not None:
                self.groups += 1
                if self.groups - 1 == self.failing:
                    self.failed += 1
                    with pytest.raises(StoreFailed):
                        raise StoreFailed  # the store refuses it: nothing of it is stored, nothing leaves
                    self.start()
                    continue
                self.store.commit(closing.group)
            if closing is not None:
                self.engine.stored(closing)
            if draft.error is not None:
                raise draft.error
            return draft.reply

    def do(self, command: Command) -> Any:
        """One step of a program: what a client can compare, whatever ids and receipts look like."""
        self.now += 0.01
        self.engine.tick(self.now)
        self.number += 1
        reply: Any
        try:
            reply = self.ask(command, self.number)
        except FairwayError as error:
            reply = error
        if self.restart:
            self.start()
        return reply

    def told(self, reply: Any) -> Told:
        match reply:
            case FairwayError():
                return ("error", reply.code)
            case Accepted():
                for id in reply.ids:
                    self.names.setdefault(id, len(self.names))
                return ("accepted", [self.names[id] for id in reply.ids], reply.known)
            case Reserved():
                spans = [(self.names[id], start, many, attempt) for id, start, many, attempt in reply.spans]
                return ("reserved", spans, sorted(run.tenant for run in reply.runs.values()))
            case Settled():
                return ("settled", reply.outcomes)
            case Submission():
                numbers = (reply.total, reply.done, reply.failed, reply.leased, reply.life, reply.paused)
                return (
                    "submission",
                    self.names[reply.id],
                    reply.state,
                    *numbers,
                    reply.error,
                    reply.error_index,
                )
            case None:
                return ("none",)
            case _:
                return (
                    "stats",
                    reply.chunks_waiting,
                    reply.chunks_leased,
                    reply.chunks_done,
                    reply.chunks_dead,
                )


def play(seed: int, player: Player, steps: int = 40) -> list[Told]:
    """Play the program of a seed to its end, then drain what is left under plain Fair."""
    dice, held, told = Random(seed), list[tuple[Reserved, Part]](), list[Told]()

    def step(command: Command) -> Any:
        reply = player.do(command)
        told.append(player.told(reply))
        if isinstance(reply, Reserved):
            for id, start, many, _ in reply.spans:
                held.append((reply, Part(reply.epoch, reply.count, reply.seal, [(id, start, many)])))
        return reply

    for _ in range(steps):
        step(_command(dice, player, held))
    for tenant in "abc":
        step(Pause(False, tenant))
    for id in list(player.names):
        if player.do(Show(id)).state == "active":
            step(Pause(False, submission=id))
    for _ in range(
        2
    ):  # a restart lets leases live a little longer, so they run out the second time at the latest
        player.now += 10_000.0
        player.do(Stats())
    while step(Reserve(3, "Fair", lease_seconds=1_000.0)).spans:
        step(Complete([part for _, part in held]))
        held.clear()
    step(Stats())
    return told


def _command(dice: Random, player: Player, held: list[tuple[Reserved, Part]]) -> Command:
    ids = list(player.names)
    tenant = dice.choice("abc")
    verbs: list[Callable[[], Command]] = [
        *[lambda: Submit([_offer(dice) for _ in range(dice.randint(1, 3))])] * 4,
        *[lambda: Reserve(dice.randint(1, 5), "Fair", lease_seconds=dice.choice((40.0, 500.0)))] * 5,
        lambda: SetWeight(tenant, dice.choice((500, 1000, 3333))),
        lambda: Pause(dice.random() < 0.4, tenant),
        Stats,
    ]
    if ids:
        some = dice.choice(ids)
        verbs += [
            lambda: Show(some),
            lambda: Cancel(some),
            lambda: Pause(dice.random() < 0.4, submission=some),
        ]
    if held:
        take = held.pop if dice.random() < 0.9 else held.__getitem__  # a receipt may be used twice
        part = [take(dice.randrange(len(held)))[1]]
        verbs = [
            *verbs[:3],
            lambda: Complete(part, [b"r"] * part[0].spans[0][2]),
            lambda: Fail(part, "bad", dice.random() < 0.8),
            lambda: Renew(part, 600.0),
            lambda: Release(part),
        ]
    return dice.choice(verbs)()


def _offer(dice: Random) -> Offer:
    key = dice.choice(("", "", "k1", "k2"))
    policy: Any = dice.choice(("fail_fast", "dead_letter"))
    described = Described(
        dice.choice("abc"),
        dice.choice((0, 1, 2, 7)),
        policy=policy,
        key=key,
        fingerprint=b"f" if key else b"",
    )
    return Offer(described, delay_seconds=dice.choice((0.0, 0.0, 0.05)))


@pytest.mark.parametrize("seed", range(40))
def test_a_restart_after_every_command_changes_no_reply(seed: int) -> None:
    assert play(seed, Player(restart=True)) == play(seed, Player())


@pytest.mark.parametrize("seed", range(8))
def test_any_group_may_fail_and_the_repeated_call_has_one_effect(seed: int) -> None:
    plain = Player()
    expected = play(seed, plain)
    for n in range(plain.groups):
        player = Player(failing=n)
        assert play(seed, player) == expected, f"group {n} failed"
        assert player.failed == 1


def test_an_id_of_a_failed_group_is_never_given_again() -> None:
    player = Player(failing=1)
    refused: list[int] = []
    start = player.start
    player.start = lambda: (refused.append(player.engine.state.last_id), start())  # type: ignore[method-assign]
    accepted = player.ask(Submit([Offer(Described("a", 1))]), 1)
    assert refused and accepted.ids[0] > refused[0]
