"""A plan that is made in slices, with commands between them, is the plan that would have been made at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from fairway import limits
from fairway.strategy.building import Building
from fairway.strategy.lanes import Lanes
from fairway.strategy.order import SWEEP_RUNS_MIN
from fairway.strategy.orders.age import AgeOrder
from fairway.strategy.orders.fair import FairOrder
from fairway.strategy.orders.gated import GatedOrder
from fairway.strategy.orders.parking import ParkingOrder
from fairway.strategy.orders.ranked import RankedOrder
from fairway.strategy.orders.uniform import UniformOrder
from fairway.strategy.plan import Plans
from fairway.strategy.terms import Strategy
from tests.strategy.desk import Desk, Row
from tests.strategy.test_strategies_equal_naive import TENANTS, Pair

LANE = 'SelectOnly("mode", "p", Fair)'
LIMITED = 'MaxSimultaneous("tenant", 1, Fair)'
GATED = 'MaxSimultaneous("tenant", 1, Random)'


class SlicedPair(Pair):
    """The plans take in one to three runs at a time; the definition looks at everything when a plan is ready."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.desk = Desk(rng.randrange(1 << 32), steps=rng.choice([1, 2, 3]))
        self.understood: set[Strategy] = set()
        self.built = 0

    @override
    def step(self) -> None:
        if self.rng.random() < 0.35:
            self.build()
        else:
            super().step()
        self.understand()

    def build(self) -> None:
        self.built += self.desk.plans.build()

    def is_ready(self, strategy: Strategy) -> bool:
        ready = self.desk.plans.get(str(strategy)).ready
        self.understand()
        return ready

    def understand(self) -> None:
        """The definition makes the tables of a strategy when its plan is ready."""
        for strategy in (*self.strategies, self.chance):
            plan = self.desk.plans._plans.get(strategy.tiers())
            if strategy not in self.understood and plan is not None and plan.ready:
                self.understood.add(strategy)
                self.naive.understand(strategy)

    @override
    def take(self, strategy: Strategy, k: int) -> None:
        if self.is_ready(strategy):
            super().take(strategy, k)
        elif k >= 1000:  # the end of the program
            self.desk.plans.finish()
            self.understand()
            super().take(strategy, k)

    @override
    def draw(self) -> None:
        if self.is_ready(self.chance):
            super().draw()

    @override
    def restart(self) -> None:
        super().restart()
        self.understood.clear()

    @override
    def check(self) -> None:
        uncounted = self.uncounted()
        hidden = {key: self.desk.plans.in_flight.counts.pop(key) for key in uncounted}
        super().check()
        self.desk.plans.in_flight.counts.update(hidden)

    def uncounted(self) -> frozenset[str]:
        building = self.desk.plans._building
        return frozenset() if building is None else building.keys


def program(rng: random.Random, steps: int) -> SlicedPair:
    pair = SlicedPair(rng)
    for _ in range(12):
        pair.submit()  # so that there is something to be taken in
    for _ in range(steps):
        pair.step()
        pair.check()
    for strategy in pair.strategies:
        pair.take(strategy, 1000)
    pair.check()
    return pair


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 60))
def test_a_plan_made_in_slices_chooses_what_one_made_at_once_chooses(rng: random.Random, steps: int) -> None:
    program(rng, steps)


def test_a_plan_made_in_slices_chooses_what_one_made_at_once_chooses_in_long_programs() -> None:
    built = sum(program(random.Random(seed), 120).built for seed in range(80))
    assert built > 80  # plans became ready in the middle of programs, not only at their ends


def _walk_forgets(building: Building[Any], steps: int) -> bool:
    for run in list(building.unseen.values())[:1]:
        del building.unseen[run.id]
    return not building.unseen


PLANTED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "what is leased before the walk comes counts twice": (
        Plans,
        "_uncounted",
        lambda plans, run: frozenset(),
    ),
    "what waits before the walk comes counts twice": (Plans, "_is_unseen", lambda plans, run: False),
    "a half-made plan counts as made": (Building, "go_on", lambda building, steps: True),
    "the walk leaves a run out": (Building, "go_on", _walk_forgets),
    "what comes while a plan is made is not added": (Building, "add", lambda building, run: None),
    "a lane is young for ever": (Lanes, "grown", lambda lanes: None),
    "a weight is scaled in a young lane": (Lanes, "reweighed", lambda lanes, tenant: None),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_in_the_slices_is_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[mistake])
    with pytest.raises((AssertionError, KeyError)):
        for seed in range(400):
            program(random.Random(seed), 120)


def test_nothing_is_taken_from_a_plan_before_all_runs_are_in_it() -> None:
    desk = Desk(steps=2)
    for _ in range(7):
        desk.submit("a")
    plan = desk.plans.get("OldestFirst")
    slices = 1
    while not plan.ready:
        with pytest.raises(AssertionError):
            plan.take(1, desk.grab)
        assert desk.plans.build() is plan.ready
        slices += 1
    assert slices == 4 and not desk.plans.building
    assert desk.take(9, "OldestFirst") == [(id, 0) for id in range(1, 8)]


def test_a_small_queue_has_its_plan_at_once() -> None:
    desk = Desk()
    for _ in range(limits.PLAN_STEPS):
        desk.submit("a")
    assert desk.plans.get("Fair").ready and not desk.plans.building
    desk.submit("a")
    assert not desk.plans.get("OldestFirst").ready


def test_a_slice_counts_the_additions_to_every_order() -> None:
    desk = Desk(steps=8)
    for _ in range(9):
        desk.submit("a")
    desk.plans.get('PreferDistinct("region", 1, PreferDistinct("tenant", 1, Fair))')  # four orders
    assert desk.plans._building is not None and len(desk.plans._building.unseen) == 7


@pytest.mark.parametrize("strategy", ["Fair", "OldestFirst", "Random", "CustomPriority", LIMITED, GATED])
def test_no_order_is_swept_while_it_is_made(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep looks at every run, in one slice."""
    desk = Desk()
    for i in range(3 * SWEEP_RUNS_MIN):
        desk.submit(f"t{i % 50}", priority=i % 2)
    for order in (FairOrder, AgeOrder, UniformOrder, RankedOrder, ParkingOrder, GatedOrder):
        monkeypatch.setattr(order, "sweep", None)
    desk.plans.get(strategy)
    desk.plans.finish()
    assert len(desk.plans.get(strategy)) == 3 * SWEEP_RUNS_MIN


def test_plans_are_made_one_after_the_other_and_shared_orders_once() -> None:
    desk = Desk(steps=1)
    for _ in range(4):
        desk.submit("a", metadata={"mode": "p"})
    plain = desk.plans.get("Fair")
    desk.plans.finish()
    limited, lane = desk.plans.get(LIMITED), desk.plans.get(LANE)
    both = desk.plans.get('PreferDistinct("tenant", 1, Fair)')  # the orders of the first two
    again = desk.plans.get(f"OrElse(Fair, {LANE})")
    assert plain.ready and not (limited.ready or lane.ready or both.ready or again.ready)
    ready = []
    while desk.plans.building:
        desk.plans.build()
        ready.append([plan.ready for plan in (limited, lane, both, again)])
    first = [row.index(False) if False in row else 4 for row in ready]
    assert first == sorted(first) and all(ready[-1])
    assert desk.plans.live() == 3


def test_a_plan_that_is_dropped_half_made_leaves_nothing_behind() -> None:
    desk = Desk(steps=1)
    desk.plans.places.most = 1
    for _ in range(5):
        desk.submit("a", metadata={"mode": "p"})
    desk.take(1, "Fair")
    desk.plans.get(f"OrElse({LANE}, {LIMITED})")
    assert desk.plans.building and desk.plans.limited
    plan = desk.plans.get("OldestFirst")
    assert not desk.plans.limited and not len(desk.plans.lanes) and not desk.plans.lanes.young
    assert not plan.ready and desk.plans.building
    desk.plans.finish()
    assert plan.ready and not desk.plans.laned and desk.plans.live() == 1
    assert len(desk.take(9, "OldestFirst")) == 4


def test_a_plan_that_waits_to_be_made_may_be_dropped() -> None:
    desk = Desk(steps=1)
    desk.plans.places.most = 2
    for _ in range(5):
        desk.submit(TENANTS[0])
    desk.plans.get("Fair").pinned = 1
    desk.plans.get("OldestFirst")
    desk.plans.get("NewestFirst").pinned = 1
    desk.plans.finish()
    assert desk.plans.live() == 2 and desk.plans.get("NewestFirst").ready


@pytest.mark.parametrize("strategy", [LANE, LIMITED, "CustomPriority", f'PreferDistinct("mode", 1, {LANE})'])
def test_a_run_that_leaves_and_comes_back_while_a_plan_is_made_is_in_it_once(strategy: str) -> None:
    for when in range(8):
        desk = Desk(steps=1)
        for tenant in "abcabc":
            desk.submit(tenant, 2, {"mode": "p"})
        desk.take(2, "OldestFirst")
        plan = desk.plans.get(strategy)
        for at in range(8):
            if at == when:
                row = desk.rows.pop(4)
                row.eligible = False
                desk.plans.leaves(row, row.waiting)
            if at == when + 2:
                desk.plans.enters(row, row.waiting)
                desk.rows[4] = row
                desk.judge(row)
            desk.plans.build()
        if 4 not in desk.rows:
            desk.plans.enters(row, row.waiting)
            desk.rows[4] = row
            desk.judge(row)
        assert plan.ready
        for lane in [lane for group in desk.plans.lanes._lanes.values() for lane in group.values()]:
            assert sum(lane.waiting.values()) == sum(row.waiting for row in desk.rows.values())
        once = Desk()
        for tenant in "abcabc":
            once.submit(tenant, 2, {"mode": "p"})
        once.take(2, "OldestFirst")
        assert desk.take(3, strategy) == once.take(3, strategy)


@pytest.mark.parametrize("steps", [1, limits.PLAN_STEPS])
def test_who_has_nothing_left_before_a_lane_is_made_comes_back_to_it_as_a_newcomer(steps: int) -> None:
    desk = Desk(steps=steps)
    desk.submit("b", 1, {"mode": "p"})
    desk.submit("a", 50, {"mode": "p"})
    desk.submit("c", 50, {"mode": "p"})
    desk.take(0, "OldestFirst")
    if steps == 1:
        desk.plans.get(LANE)  # it has met b alone
    (chunk,) = desk.take(1, "OldestFirst")
    assert desk.served(5, LANE) == ["a", "c", "a", "c", "a"]
    desk.give_back(*chunk)
    assert desk.served(3, LANE) == ["c", "b", "a"]  # not before c, as one who had waited all the time


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("strategy", [LANE, "CustomPriority", LIMITED])
def test_a_run_that_is_redriven_while_a_plan_is_made_is_in_it_once(strategy: str, seen: bool) -> None:
    desk = Desk(steps=1)
    for tenant in "ab" if seen else "ba":
        desk.submit(tenant, 3, {"mode": "p"})
    id = 1 if seen else 2
    plan = desk.plans.get(strategy)  # it has met the first one
    desk.cancel(id)
    row = Row.new(id, "a", 2, {"mode": "p"})
    row.level = (50_000, id)
    desk.acked.placed(row.level)
    if desk.plans.laned:
        desk.plans.enters(row, 2)
    desk.rows[id] = row
    desk.waiting["a"] += 2
    desk.unfinished["a"] += 2
    desk.judge(row)
    desk.plans.finish()
    assert plan.ready
    for lane in [lane for group in desk.plans.lanes._lanes.values() for lane in group.values()]:
        assert lane.waiting == {"a": 2, "b": 3}
    assert sorted(tenant for _ in range(4) for tenant in desk.served(9, strategy)) == [
        "a",
        "a",
        "b",
        "b",
        "b",
    ]
