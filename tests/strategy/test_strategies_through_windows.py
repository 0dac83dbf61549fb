"""Random programs over nested strategies on the engine, through windows of every size, against the definition.

With everything in memory each reserve is exactly what the definition says. Through a small window the order may differ;
but each pick is one that some tier admits, nobody is told "no work" where the definition finds some, and all that was
submitted is handed out in the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fairway.engine import engine, search
from fairway.engine.commands import Reserve
from fairway.strategy.orders.gated import GatedOrder
from fairway.strategy.orders.parking import ParkingOrder
from fairway.strategy.terms import ORDERS, Random, Strategy
from tests.engine.desk import Chunk, Desk, chunks, some
from tests.strategy.growing import grown
from tests.strategy.naive_plans import NaivePlans, passes

TENANTS = "abcd"
WEIGHTS = [0.01, 0.5, 1.0, 3.0, 100.0]


class Program:
    """The engine and the definition, told the same."""

    def __init__(self, rng: random.Random, window: int) -> None:
        self.rng, self.window = rng, window
        steps = rng.choice([1, 3, 500])
        self.desk = Desk(audited=False, window=window, fetched=rng.choice([1, 3, 100]), steps=steps)
        self.naive = NaivePlans()
        self.strategies = [grown(rng) for _ in range(rng.randint(1, 3))]
        # Where picks are compared exactly, Random would leave gaps that the definition does not know.
        self.chance = grown(rng, orders=ORDERS) if window else grown(rng)
        self.last = ORDERS[0]()  # it leaves nothing behind
        self.out: list[tuple[list, Chunk]] = []  # receipts
        self.handed: set[Chunk] = set()
        self.submitted: set[Chunk] = set()

    def step(self) -> None:
        x, rng = self.rng.random(), self.rng
        if x < 0.35:
            self.submit()
        elif x < 0.6:
            self.reserve(rng.choice([*self.strategies, self.chance]), rng.randint(1, 5))
        elif x < 0.8:
            for _ in range(rng.randint(1, 4)):
                self.end(complete=True)
        elif x < 0.87:
            self.end(complete=False)
        elif x < 0.92:
            self.pause()
        elif x < 0.96:
            tenant, weight = rng.choice(TENANTS), rng.choice(WEIGHTS)
            self.desk.weigh(tenant, round(weight * 1000))
            self.naive.set_weight(tenant, round(weight * 1000))
        else:
            self.desk.restart()
            self.naive.restart()

    def submit(self) -> None:
        rng = self.rng
        tenant, n, priority = rng.choice(TENANTS), rng.choice([1, 1, 2, 5]), rng.randint(-1, 1)
        metadata: dict[str, str | int] = {}
        if rng.random() < 0.8:
            metadata["region"] = rng.choice(["x", "y", "1", 1])
        if rng.random() < 0.8:
            metadata["mode"] = rng.choice(["p", 1, 2])
        id = self.desk.submit(tenant, n, metadata=metadata, priority=priority)
        self.naive.submit(id, tenant, n, metadata, priority)
        self.submitted |= {(id, index) for index in range(n)}

    def reserve(self, strategy: Strategy, k: int) -> None:
        exact = not self.window and not any(tier.base is Random for tier in strategy.tiers())
        possible = bool(self.naive.possible(strategy)[1])
        reply = self.desk.call(Reserve(k, str(strategy), 10_000.0))
        got = chunks(reply)
        assert bool(got) == possible, f"wrong 'no work', or work that may not be: {strategy}"
        if exact:
            assert got == self.naive.take(k, strategy), str(strategy)
        else:
            self.follow(strategy, got)
        for chunk in got:
            self.out.append((some(reply, chunk), chunk))
            self.handed.add(chunk)

    def follow(self, strategy: Strategy, got: list[Chunk]) -> None:
        """Each pick is one that some tier admits at that moment, and the next chunk of its submission."""
        gaps = any(tier.base is Random for tier in self.chance.tiers())
        for id, index in got:
            sub = self.naive.subs[id]
            admitted = any(
                sub in self.naive.candidates(selection, caps, 1) for selection, caps, _ in passes(strategy)
            )
            assert admitted, (str(strategy), id)
            assert index in sub.waiting and (gaps or index == min(sub.waiting))
            self.naive.lease(id, index)

    def end(self, complete: bool) -> None:
        if not self.out:
            return
        receipt, (id, index) = self.out.pop(self.rng.randrange(len(self.out)))
        if complete:
            assert self.desk.complete(receipt) == ["done"]
            self.naive.complete(id, index)
        else:
            self.desk.release(receipt)
            self.naive.give_back(id, index)

    def pause(self) -> None:
        on = self.rng.random() < 0.5
        if self.rng.random() < 0.5:
            tenant = self.rng.choice(TENANTS)
            (self.desk.pause if on else self.desk.resume)(tenant)
            (self.naive.paused.add if on else self.naive.paused.discard)(tenant)
        elif self.naive.subs:
            id = self.rng.choice(list(self.naive.subs))
            sub = self.naive.subs[id]
            if sub.waiting or sub.leased:
                (self.desk.pause if on else self.desk.resume)(submission=id)
                sub.paused = on

    def drain(self) -> None:
        """All resumed; reserve and complete until nothing is left."""
        for tenant in TENANTS:
            self.desk.resume(tenant)
        self.naive.paused.clear()
        for sub in self.naive.subs.values():
            if sub.paused and (sub.waiting or sub.leased):
                self.desk.resume(submission=sub.id)
                sub.paused = False
        strategies = [*self.strategies, self.chance, self.last]
        while any(sub.waiting or sub.leased for sub in self.naive.subs.values()):
            for strategy in strategies:
                self.reserve(strategy, 5)
            while self.out:
                self.end(complete=True)
        assert self.handed == self.submitted


def run(seed: int, window: int) -> None:
    program = Program(random.Random(f"{seed} {window}"), window)
    for _ in range(70):
        program.step()
    program.drain()


@pytest.mark.parametrize("window", [0, 1, 2, 8])
@pytest.mark.parametrize("part", range(4))
def test_strategies_through_a_window_hand_out_the_same_set_and_never_say_no_work_wrongly(
    part: int, window: int
) -> None:
    for seed in range(part * 15, part * 15 + 15):
        run(seed, window)


PLANTED: dict[str, tuple[object, str, Callable[..., object]]] = {
    "no work is said before the store was asked": (engine, "in_vain", lambda state, strategy: True),
    "a search asks for nothing": (search, "_steps", lambda state, plan: []),
    "what is found stands beside the window in vain": (search, "beside", lambda state, run: False),
    "a limit is not looked at": (GatedOrder, "_is_full", lambda order, name: False),
    "a limit is not looked at where turns count": (ParkingOrder, "_full", lambda order, cell: None),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_seen_through_a_window(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[mistake])
    with pytest.raises(AssertionError):
        for seed in range(60):
            run(seed, (1, 2, 8)[seed % 3])


@pytest.mark.parametrize("window", [1, 2, 8])
@pytest.mark.parametrize("seed", range(10))
def test_messages_under_constant_weights_come_in_the_same_order_through_every_window(
    seed: int, window: int
) -> None:
    """Levels are forecast turns, so what waits in the store is in the order that Fair would choose."""
    orders = []
    for size in (0, window):
        rng = random.Random(seed)
        desk = Desk(audited=False, window=size)
        for tenant in TENANTS:
            desk.weigh(tenant, rng.choice([500, 1000, 2000, 5000]))
        order = ""
        for _ in range(60):
            if rng.random() < 0.6:
                desk.message(rng.choice(TENANTS))
            else:
                reply = desk.reserve(1)
                order += desk.tenants_of(reply)
                desk.complete(reply)
        orders.append(order + "".join(desk.tenants_of(desk.reserve(1)) for _ in range(60)))
    assert orders[0] == orders[1]
