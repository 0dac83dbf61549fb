"""Random programs over nested strategies: the plans choose exactly what the definition chooses, and wake in time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.strategy.terms import ORDERS, Fair, Strategy
from tests.strategy.desk import Desk
from tests.strategy.growing import grown
from tests.strategy.naive_plans import NaivePlans, passes

TENANTS = "abcd"
WEIGHTS = [0.01, 0.5, 1.0, 1.0, 3.0, 7.0, 99.991, 100.0]
LATER = ["forget", "restart", "rebase", "store", "consumers"]


class Pair:
    """The plans and the definition, told the same."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.desk, self.naive = Desk(rng.randrange(1 << 32)), NaivePlans()
        self.strategies = [grown(rng) for _ in range(rng.randint(1, 4))]
        self.chance = grown(rng, orders=ORDERS)
        self.out: list[tuple[int, int]] = []
        self.seen = 1
        self.tried: set[Strategy] = set()  # since the number of consumers changed

    def step(self) -> None:
        x, rng = self.rng.random(), self.rng
        if x < 0.3:
            self.submit()
        elif x < 0.58:
            self.take(rng.choice(self.strategies), rng.randint(1, 5))
        elif x < 0.61:
            self.draw()
        elif x < 0.79:
            for _ in range(rng.randint(1, 4)):
                self.end(self.desk.complete, self.naive.complete)
        elif x < 0.86:
            self.end(self.desk.give_back, self.naive.give_back)
        elif x < 0.88:
            self.each("cancel")
        elif x < 0.91:
            self.each("pause")
        elif x < 0.93:
            self.pause_tenant()
        elif x < 0.95:
            self.reweigh()
        else:
            getattr(self, rng.choice(LATER))()

    def submit(self) -> None:
        rng = self.rng
        tenant, n, priority = rng.choice(TENANTS), rng.choice([0, 1, 1, 2, 5]), rng.randint(-1, 1)
        metadata: dict[str, str | int] = {}
        if rng.random() < 0.8:
            metadata["region"] = rng.choice(["x", "y", "1", 1])
        if rng.random() < 0.8:
            metadata["mode"] = rng.choice(["p", 1, 2])
        id = self.desk.submit(tenant, n, metadata, priority)
        self.naive.submit(id, tenant, n, metadata, priority)

    def take(self, strategy: Strategy, k: int) -> None:
        text = str(strategy)
        coming = self.rng.random() < 0.2 and self.desk.plans.get(text).next_up(k, self.seen)
        got = list(self.desk.take(k, text, self.seen))
        assert got == self.naive.take(k, strategy, self.seen), text
        if coming is not False:
            assert [run.id for run, _ in coming] == [id for id, _ in got], text
            self.tell(strategy)
        self.tried.add(strategy)
        self.out += got

    def tell(self, strategy: Strategy) -> None:
        """What is said to be held back cannot be picked, and the other way round."""
        plan = self.desk.plans.get(str(strategy))
        _, may = self.naive.possible(strategy, self.seen)
        for row in self.desk.rows.values():
            said = plan.held_back(row, self.seen)
            barred = said.split("; ")[-1].startswith(("it has no chunk", "not selected", "limit"))
            admitted = any(
                self.naive.subs[row.id] in self.naive.candidates(selection, caps, self.seen)
                for selection, caps, _ in passes(strategy)
            )
            assert barred != admitted, (said, str(strategy))
            assert admitted or row.id not in {sub.id for sub in may}

    def draw(self) -> None:
        """A strategy in which Random may stand: each pick is one of those that may be made."""
        if any(tier.base is Fair or tier.base.__name__ == "CustomPriority" for tier in self.chance.tiers()):
            return
        for _ in range(self.rng.randint(1, 3)):
            _, subs = self.naive.possible(self.chance, self.seen)
            got = self.desk.take(1, str(self.chance), self.seen)
            assert len(got) == min(1, len(subs)) and {id for id, _ in got} <= {sub.id for sub in subs}
            for id, index in got:
                self.naive.lease(id, index)
            self.out += got

    def end(self, real, naive) -> None:
        """No wake-up is lost: what could not be picked and now can was told."""
        if not self.out:
            return
        stuck = [s for s in self.tried if not self.naive.possible(s, self.seen)[1]]
        chunk = self.out.pop(self.rng.randrange(len(self.out)))
        self.desk.woken = False
        real(*chunk)
        naive(*chunk)
        assert self.desk.woken or not any(self.naive.possible(s, self.seen)[1] for s in stuck)

    def each(self, what: str) -> None:
        if self.desk.next_id == 1:
            return
        id = self.rng.randrange(1, self.desk.next_id)
        if what == "cancel":
            self.desk.cancel(id)
            self.naive.cancel(id)
        else:
            on = self.rng.random() < 0.5
            self.desk.pause(id, on)
            self.naive.subs[id].paused = on

    def pause_tenant(self) -> None:
        tenant, on = self.rng.choice(TENANTS), self.rng.random() < 0.4
        self.desk.pause_tenant(tenant, on)
        (self.naive.paused.add if on else self.naive.paused.discard)(tenant)

    def reweigh(self) -> None:
        tenant, weight = self.rng.choice(TENANTS), self.rng.choice(WEIGHTS)
        self.desk.set_weight(tenant, weight)
        self.naive.set_weight(tenant, round(weight * 1000))

    def forget(self) -> None:
        self.desk.tables.forget_due()

    def restart(self) -> None:
        self.desk.restart()
        self.naive.restart()
        self.tried.clear()

    def rebase(self) -> None:
        for table in self.desk.tables._tables.values():
            if self.rng.random() < 0.5:
                table.rebase()

    def store(self) -> None:
        self.desk.store()

    def consumers(self) -> None:
        self.seen = self.rng.choice([1, 3, 5, 10])
        self.tried.clear()

    def check(self) -> None:
        for key, counts in self.desk.plans.in_flight.counts.items():
            assert all(counts.values())
            values = {sub.value(key) for sub in self.naive.subs.values()} - {None}
            for value in values:
                assert counts.get(value, 0) == self.naive.in_flight(key, value)
        for (selection, priority), table in self.desk.tables._tables.items():
            for tenant, turn in table.turn.items():
                assert (turn - table.v - 1) * self.desk.w(tenant) < 10_000_000, (selection, priority)


def program(rng: random.Random, steps: int) -> Pair:
    pair = Pair(rng)
    for _ in range(steps):
        pair.step()
        pair.check()
    pair.take(rng.choice(pair.strategies), 1000)
    return pair


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_every_pick_is_the_one_of_the_definition(rng: random.Random, steps: int) -> None:
    program(rng, steps)


@pytest.mark.parametrize("seed", range(120))
def test_every_pick_is_the_one_of_the_definition_in_long_programs(seed: int) -> None:
    program(random.Random(seed), 160)
