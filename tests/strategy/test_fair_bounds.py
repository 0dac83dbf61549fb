"""The bounds of fairness, measured over long and over random histories."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.fair.weights import U
from tests.strategy.desk import Desk, Row
from tests.strategy.fluid import Fluid

MANY = 2_000_000_000


@pytest.mark.parametrize("restarts", [0, 4])
def test_a_thousand_tenants_are_never_more_than_one_dispatch_behind_the_fluid_share(restarts: int) -> None:
    tenants, messages = 1000, 100
    desk, rng = Desk(), random.Random(7)
    names = [f"t{i}" for i in range(tenants) for _ in range(messages)]
    rng.shuffle(names)
    for name in names:
        desk.submit(name)
    total = tenants * messages
    stops = {19_300 * (i + 1) for i in range(restarts)}
    got = dict.fromkeys(names, 0)
    at_count = [tenants] + [0] * messages  # how many tenants have been served so often
    lowest = breaks = done = 0
    last_id = dict.fromkeys(names, 0)
    worst = Fraction(0)
    while done < total:
        if done in stops:
            desk.restart()
        for id, index in list(desk.take(100)):
            tenant = desk.rows[id].tenant
            breaks += id < last_id[tenant]
            last_id[tenant] = id
            at_count[got[tenant]] -= 1
            got[tenant] += 1
            at_count[got[tenant]] += 1
            while not at_count[lowest]:
                lowest += 1
            done += 1
            worst = max(worst, Fraction(done, tenants) - lowest)
            desk.complete(id, index)
    assert worst <= 1
    assert breaks == 0


def test_tenants_that_come_and_go_are_less_than_two_dispatches_behind_the_fluid_share() -> None:
    worst = Fraction(0)
    for seed in range(16):
        rng, desk, fluid = random.Random(seed), Desk(), Fluid()
        names = [f"w{i}" for i in range(rng.choice([1, 2, 3, 5, 10]))]
        kind, chance, flood = rng.randrange(4), rng.choice([0.2, 0.5, 0.9, 1.0]), rng.choice([5, 20])
        sporadic = [f"s{i}" for i in range(5)]
        got: dict[str, int] = {}
        for step in range(250):
            come = [(name, 10**6) for name in names] if step == 0 else []
            if kind in (0, 3) and rng.random() < chance:
                come.append((f"fresh {step}", rng.choice([1, 1, 2, 5])))
            if kind in (1, 3) and step % 31 == 0:
                come += [(f"flood {step} {i}", rng.randint(1, 3)) for i in range(rng.randint(1, flood))]
            if kind in (2, 3):
                idle = [s for s in sporadic if not desk.waiting[s]]
                come += [(s, rng.randint(1, 3)) for s in idle if rng.random() < chance / 8]
            for name, n in come:
                desk.submit(name, n)
                fluid.submit(name, n)
            (name,) = desk.served(1)
            got[name] = got.get(name, 0) + 1
            fluid.serve()
            desk.tables.forget_due()
            worst = max(worst, *(fluid.got[t] - got.get(t, 0) for t in fluid.got))
    assert 0 < worst < 2


class Count:
    """Counts the dispatches of two tenants and how far n_i * W_j - n_j * W_i swings."""

    def __init__(self, wi: int, wj: int) -> None:
        self.step = {"i": wj, "j": -wi}
        self.at = self.low = self.high = 0

    def grab(self, row: Row, n: int, shuffled: bool) -> None:
        row.ready -= n
        for _ in range(n):
            self.at = at = self.at + self.step[row.tenant]
            if at < self.low:
                self.low = at
            elif at > self.high:
                self.high = at


def swing(wi: float, wj: float, dispatches: int) -> tuple[int, int, int]:
    """How far the pair swings over any interval of that many dispatches, and W of both."""
    desk = Desk()
    desk.set_weight("i", wi)
    desk.set_weight("j", wj)
    for tenant in "ij":
        desk.submit(tenant, MANY)
    count = Count(desk.w("i"), desk.w("j"))
    order = desk.plans.get("Fair")
    for _ in range(dispatches // 10_000):
        assert order.take(10_000, count.grab) == 10_000
    return count.high - count.low, desk.w("i"), desk.w("j")


@pytest.mark.parametrize(("wi", "wj"), [(70, 30), (100, 60), (33.333, 0.777), (0.01, 100), (3, 7)])
def test_a_pair_keeps_its_bound_over_any_interval_of_a_million_dispatches(wi: float, wj: float) -> None:
    far, w_i, w_j = swing(wi, wj, 1_000_000)
    assert far <= w_i + w_j  # |n_i/w_i - n_j/w_j| <= 1/w_i + 1/w_j, times w_i * w_j


@settings(max_examples=25)
@given(st.integers(10, 100_000), st.integers(10, 100_000))
def test_any_pair_keeps_its_bound_up_to_two_units_of_a_turn(wi: int, wj: int) -> None:
    # Turns are compared as whole units, so strides that are no whole number lose up to one at either end.
    far, w_i, w_j = swing(wi / 1000, wj / 1000, 20_000)
    assert far * U <= (w_i + w_j) * U + 2 * w_i * w_j


@settings(max_examples=60)
@given(st.lists(st.sampled_from([10, 125, 500, 1000, 2500, 5000, 40_000, 100_000]), min_size=2, max_size=6))
def test_between_two_turns_each_other_tenant_has_at_most_its_part(weights: list[int]) -> None:
    assert all(U % w == 0 for w in weights)  # whole strides: the bound is exact
    desk = Desk()
    for i, w in enumerate(weights):
        desk.set_weight(str(i), w / 1000)
        desk.submit(str(i), MANY)
    bound = [sum(1 + wj // wi for j, wj in enumerate(weights) if j != i) for i, wi in enumerate(weights)]
    last: dict[int, int] = {}
    for at, name in enumerate(desk.served(3000)):
        i = int(name)
        if i in last:
            assert at - last[i] - 1 <= bound[i]
        last[i] = at
    for i, at in last.items():
        assert 3000 - at - 1 <= bound[i]


def test_strides_that_are_no_whole_number_do_not_drift() -> None:
    desk = Desk()
    for tenant, weight in (("a", 3), ("b", 7), ("c", 0.777)):
        desk.set_weight(tenant, weight)
        desk.submit(tenant, MANY)
    n = 300_000
    served = desk.served(n)
    for tenant, weight in (("a", 3000), ("b", 7000), ("c", 777)):
        assert abs(served.count(tenant) - Fraction(n * weight, 10_777)) <= 2
