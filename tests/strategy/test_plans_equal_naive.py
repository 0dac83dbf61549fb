"""Random histories: the compiled plans choose exactly what the naive model chooses."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategy.desk import Desk
from tests.strategy.naive import Naive

TENANTS = "abcd"
WEIGHTS = [0.01, 0.5, 1.0, 1.0, 3.0, 7.0, 29.999, 70.0, 99.991, 100.0]
SURE = ["Fair", "Fair", "Fair", "OldestFirst", "NewestFirst"]

number = st.integers(0, 1000)
step = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(TENANTS), st.sampled_from([0, 1, 1, 2, 5])),
    st.tuples(st.just("take"), st.integers(0, 6), st.sampled_from(SURE)),
    st.tuples(st.just("random"), st.integers(1, 4), st.just(0)),
    st.tuples(st.just("complete"), number, st.just(0)),
    st.tuples(st.just("back"), number, st.just(0)),
    st.tuples(st.just("cancel"), number, st.just(0)),
    st.tuples(st.just("pause"), number, st.booleans()),
    st.tuples(st.just("pause tenant"), st.sampled_from(TENANTS), st.booleans()),
    st.tuples(st.just("weight"), st.sampled_from(TENANTS), st.sampled_from(WEIGHTS)),
    st.tuples(st.sampled_from(["forget", "restart", "rebase", "store"]), st.just(0), st.just(0)),
)


class Pair:
    """The two of them, told the same."""

    def __init__(self) -> None:
        self.desk, self.naive = Desk(), Naive()
        self.out: list[tuple[int, int]] = []

    def do(self, what: str, a: object, b: object) -> None:
        getattr(self, "do_" + what.replace(" ", "_"))(a, b)
        self.compare()

    def do_submit(self, tenant: str, n: int) -> None:
        self.naive.submit(self.desk.submit(tenant, n), tenant, n)

    def do_take(self, k: int, strategy: str) -> None:
        had = len(self.naive.eligible())
        got = self.desk.take(k, strategy)
        assert got == self.naive.take(k, strategy)
        assert got or not had or not k
        self.out += got

    def do_random(self, k: int, _: int) -> None:
        for _ in range(k):
            may = {(s.id, min(s.waiting)) for s in self.naive.eligible()}
            got = self.desk.take(1, "Random")
            assert len(got) == min(1, len(may)) and set(got) <= may
            for id, index in got:
                self.naive.lease(id, index)
            self.out += got

    def do_complete(self, at: int, _: int) -> None:
        if self.out:
            id, index = self.out.pop(at % len(self.out))
            self.desk.complete(id, index)
            self.naive.complete(id, index)

    def do_back(self, at: int, _: int) -> None:
        if self.out:
            id, index = self.out.pop(at % len(self.out))
            self.desk.give_back(id, index)
            self.naive.give_back(id, index)

    def some(self, at: int) -> int | None:
        return 1 + at % (self.desk.next_id - 1) if self.desk.next_id > 1 else None

    def do_cancel(self, at: int, _: int) -> None:
        id = self.some(at)
        if id is not None:
            self.desk.cancel(id)
            self.naive.cancel(id)

    def do_pause(self, at: int, on: bool) -> None:
        id = self.some(at)
        if id is not None:
            self.desk.pause(id, on)
            self.naive.subs[id].paused = on

    def do_pause_tenant(self, tenant: str, on: bool) -> None:
        self.desk.pause_tenant(tenant, on)
        (self.naive.paused.add if on else self.naive.paused.discard)(tenant)

    def do_weight(self, tenant: str, weight: float) -> None:
        self.desk.set_weight(tenant, weight)
        self.naive.set_weight(tenant, round(weight * 1000))

    def do_forget(self, _: int, __: int) -> None:
        turns = self.desk.turns
        due = {t for t in turns.turn if not self.desk.unfinished[t] and turns.may_forget(t)}
        kept = turns.turn.keys() - due
        assert due <= set(self.desk.tables.forget_due())
        assert turns.turn.keys() == kept  # the heap misses none, and takes none too many

    def do_restart(self, _: int, __: int) -> None:
        self.desk.restart()

    def do_rebase(self, _: int, __: int) -> None:
        self.desk.turns.rebase()
        assert self.desk.turns.v == 0

    def do_store(self, _: int, __: int) -> None:
        self.desk.store()

    def compare(self) -> None:
        desk, naive = self.desk, self.naive
        desk.check_invariant()
        lower = naive.v - desk.turns.v
        for tenant, waiting in desk.waiting.items():
            if waiting:
                turn, rest = naive.turns[tenant]
                assert (desk.turns.turn[tenant], desk.turns.rest[tenant]) == (turn - lower, rest)


@settings(max_examples=300)
@given(st.lists(step, max_size=60))
def test_plans_choose_exactly_what_the_naive_model_chooses(steps: list[tuple[str, object, object]]) -> None:
    pair = Pair()
    for what, a, b in steps:
        pair.do(what, a, b)
    pair.do("take", 1000, "Fair")


@pytest.mark.parametrize("seed", range(60))
def test_plans_choose_exactly_what_the_naive_model_chooses_in_long_histories(seed: int) -> None:
    rng, pair = random.Random(seed), Pair()
    for _ in range(250):
        x = rng.random()
        if x < 0.3:
            pair.do("submit", rng.choice(TENANTS), rng.choice([0, 1, 1, 2, 5]))
        elif x < 0.6:
            pair.do("take", rng.randint(1, 5), rng.choice(SURE))
        elif x < 0.63:
            pair.do("random", rng.randint(1, 3), 0)
        elif x < 0.8:
            for _ in range(rng.randint(1, 4)):
                pair.do("complete", rng.randrange(1000), 0)
        elif x < 0.86:
            pair.do("back", rng.randrange(1000), 0)
        elif x < 0.88:
            pair.do("cancel", rng.randrange(1000), 0)
        elif x < 0.91:
            pair.do("pause", rng.randrange(1000), rng.random() < 0.4)
        elif x < 0.94:
            pair.do("pause tenant", rng.choice(TENANTS), rng.random() < 0.4)
        elif x < 0.96:
            pair.do("weight", rng.choice(TENANTS), rng.choice(WEIGHTS))
        else:
            pair.do(rng.choice(["forget", "forget", "restart", "rebase", "store"]), 0, 0)
