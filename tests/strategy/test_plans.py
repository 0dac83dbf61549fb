"""Plans: what they share, when they leave, what they count, and that nothing grows without end."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest

from fairway import limits
from fairway.errors import TooManyStrategies
from fairway.strategy.order import SWEEP_RUNS_MIN
from fairway.strategy.orders.cells import Cell, Flow, Gate
from tests.strategy.desk import Desk

LIMITED = 'MaxSimultaneous("tenant", 5, Fair)'
LANE = 'SelectOnly("mode", "p", Fair)'


def fill(desk: Desk, n: int) -> None:
    for i in range(n):
        desk.submit(f"t{i % 7}", 2, {"mode": "pq"[i % 2], "region": i % 3}, i % 4)


# -- sharing and leaving


def test_strategies_share_the_orders_of_their_tiers() -> None:
    desk = Desk()
    plain = desk.plans.get("Fair")
    prefer = desk.plans.get('PreferDistinct("tenant", 5, Fair)')
    assert desk.plans.live() == 2
    assert prefer._orders[1] is plain._orders[0]
    assert desk.plans.get(LIMITED)._orders == prefer._orders[:1] and desk.plans.live() == 2
    assert desk.plans.get('OrElse(MaxSimultaneous("tenant", 5, Fair), Fair)') is prefer  # they mean the same


def test_the_65th_strategy_takes_the_place_of_the_one_used_longest_ago() -> None:
    desk = Desk()
    fill(desk, 20)
    plans = [desk.plans.get(f'SelectOnly("k", {i}, Fair)') for i in range(limits.PLANS_MAX)]
    desk.plans.get('SelectOnly("k", 0, Fair)')
    desk.plans.get("Fair")
    assert desk.plans.get('SelectOnly("k", 0, Fair)') is plans[0]
    assert desk.plans.live() == limits.PLANS_MAX
    assert desk.plans.get('SelectOnly("k", 1, Fair)') is not plans[1]


def test_the_65th_plan_in_use_is_refused() -> None:
    desk = Desk()
    fill(desk, 20)
    for i in range(limits.PLANS_MAX):
        desk.plans.get(f'SelectOnly("k", {i}, Fair)').pinned = 1
    with pytest.raises(TooManyStrategies, match="64 other strategies have waiting consumers"):
        desk.plans.get("Fair")
    desk.plans.get('SelectOnly("k", 7, Fair)').pinned = 0
    assert len(desk.take(5, "Fair")) == 5
    with pytest.raises(TooManyStrategies):
        plan = desk.plans.get("Fair")
        plan.pinned = 1
        desk.plans.get('SelectOnly("k", 7, Fair)')


def test_a_place_is_kept_for_the_queues_own_strategy() -> None:
    desk = Desk()
    desk.plans.own("Fair")
    fill(desk, 20)
    own = desk.plans.get("Fair")
    for i in range(limits.PLANS_MAX):
        desk.plans.get(f'SelectOnly("k", {i}, Fair)')
    assert desk.plans.live() == limits.PLANS_MAX and desk.plans.get("Fair") is own, "others leave for others"
    desk.plans.own("OldestFirst")
    assert desk.plans.live() == limits.PLANS_MAX - 1, "the new one has a place before it is made"
    desk.plans.get("OldestFirst")
    assert desk.plans.live() == limits.PLANS_MAX


def test_a_plan_made_to_be_explained_gets_a_place_when_it_is_reserved_from() -> None:
    desk = Desk()
    desk.plans.places.most = 2
    desk.plans.get("Fair").pinned = 1
    desk.plans.get("OldestFirst").pinned = 1
    lent = desk.plans.lend("NewestFirst")
    assert lent.guest
    with pytest.raises(TooManyStrategies):
        desk.plans.get("NewestFirst")
    desk.plans.get("OldestFirst").pinned = 0
    assert desk.plans.get("NewestFirst") is lent and not lent.guest and desk.plans.live() == 2


def test_what_no_plan_needs_is_dropped() -> None:
    desk = Desk()
    desk.plans.places.most = 2
    fill(desk, 20)
    assert not desk.plans.limited and not desk.plans.laned
    desk.plans.get(f"OrElse({LANE}, {LIMITED})")
    assert desk.plans.limited and desk.plans.laned and set(desk.plans.in_flight.counts) == {"tenant"}
    desk.take(3, 'MaxSimultaneous("region", 1, CustomPriority)')
    assert set(desk.plans.in_flight.counts) == {"tenant", "region"} and len(desk.tables._tables) == 6
    desk.plans.get("Fair")
    assert set(desk.plans.in_flight.counts) == {"region"} and len(desk.tables._tables) == 5
    desk.plans.get("Random")
    assert not desk.plans.limited and not desk.plans.laned and not len(desk.plans.lanes)
    assert desk.plans.live() == 2
    left = set(desk.tables._tables) - {((), None)}
    assert left == set(desk.plans.lanes._resting) and len(left) == 1, "turns that were taken are kept"
    assert len(desk.take(9, 'MaxSimultaneous("region", 1, OldestFirst)')) == 0  # the three are out still


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is found, as after a freeze of the collector: what is in a circle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def made_of() -> int:
    """The parts of limited orders that are in memory, whoever holds them."""
    return sum(
        type(thing) in (Cell, Flow, Gate) for thing in gc.get_objects()
    )  # a weak proxy is asked nothing


@pytest.mark.parametrize("how", ["dropped", "over", "swept"])
@pytest.mark.usefixtures("uncollected")
def test_a_limited_order_leaves_nothing_for_the_collector(how: str) -> None:
    desk, before = Desk(), made_of()
    desk.plans.places.most = 1
    fill(desk, 60)
    strategy = 'MaxSimultaneous("region", 2, MaxSimultaneous("tenant", 3, Fair))'
    taken = desk.take(9, strategy)
    assert taken and made_of() - before > 20
    if how == "dropped":
        desk.plans.get("Fair")
        assert made_of() == before
        return
    for chunk in taken:
        desk.complete(*chunk)
    if how == "over":
        while taken := desk.take(9, strategy):
            for chunk in taken:
                desk.complete(*chunk)
        desk.take(1, strategy)
        assert made_of() == before
    else:
        there = made_of()
        desk.plans._orders[desk.plans.get(strategy).tiers[0]].sweep()
        assert before < made_of() <= there


def test_a_lane_that_two_plans_use_stays_until_both_are_gone() -> None:
    desk = Desk()
    desk.plans.places.most = 2
    fill(desk, 20)
    desk.take(3, LANE)
    desk.plans.get(f'PreferDistinct("tenant", 1, {LANE})')
    table = desk.tables.table((("mode", "p"),))
    assert table.v > 0
    desk.plans.get(f'PreferDistinct("tenant", 1, {LANE})')
    desk.plans.get("Random")
    assert desk.tables.table((("mode", "p"),)) is table


@pytest.mark.parametrize("base", ["Fair", "CustomPriority", 'MaxSimultaneous("tenant", 99, Fair)'])
def test_turns_of_a_lane_outlive_its_plan(base: str) -> None:
    """With more strategies in turn than there are places nobody starves: all are served as if no plan ever left."""

    def served(places: int) -> dict[str, str]:
        desk = Desk()
        desk.plans.places.most = places
        got: dict[str, str] = dict.fromkeys("pqr", "")
        for mode in got:
            for tenant in "abc":
                desk.submit(tenant, 12, {"mode": mode}, 1)
        for turn in range(24):
            if turn == 12:
                desk.set_weight("c", 2.0)
            for mode in got:
                ((id, _),) = desk.take(1, f'SelectOnly("mode", "{mode}", {base})')
                got[mode] += desk.rows[id].tenant
        return got

    assert served(2) == served(3)
    assert set(served(2)["p"][:3]) == set("abc")


@pytest.mark.parametrize("limit", ["TABLES_RESTING_MAX", "TURNS_RESTING_MAX"])
def test_tables_that_rest_have_bounds(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, limit, 3)
    desk = Desk()
    desk.plans.places.most = 1
    for i in range(9):
        desk.submit("a", 2, {"k": i})
        desk.take(1, f'SelectOnly("k", {i}, Fair)')
    assert [selection for selection, _ in desk.plans.lanes._resting] == [(("k", i),) for i in (5, 6, 7)]
    assert len(desk.tables._tables) == 5, "those, the plain one, and the one in use"


# -- bounds


@pytest.mark.parametrize("base", ["Fair", "OldestFirst", "CustomPriority", "Random"])
def test_values_that_are_gone_leave_nothing_behind(base: str) -> None:
    desk = Desk()
    strategy = f'MaxSimultaneous("region", 1, MaxSimultaneous("tenant", 2, {base}))'
    for i in range(3000):
        desk.submit(f"t{i}", 1, {"region": i})
        for id, index in list(desk.take(2, strategy)):
            desk.complete(id, index)
    assert desk.take(1, strategy) == []
    (order,) = desk.plans.get(strategy)._orders
    assert not len(order)
    left = {name: len(kept) for name, kept in vars(order).items() if isinstance(kept, dict | list) and kept}
    assert set(left) <= {"_counts", "most"} and desk.plans.in_flight.counts == {"region": {}, "tenant": {}}


@pytest.mark.parametrize("base", ["Fair", "CustomPriority", "OldestFirst"])
def test_a_gate_that_is_closed_for_long_does_not_fill_up(base: str) -> None:
    """Every pick of a tenant gives its parked cells a new key; the old ones must go."""
    desk = Desk()
    strategy = f'MaxSimultaneous("region", 1, {base})'
    for region in range(5):
        for tenant in "abc":
            desk.submit(tenant, 1, {"region": region})
            desk.submit(tenant, 1, {"region": region})
    assert len(desk.take(5, strategy)) == 5  # every gate is closed
    for tenant in "abc":
        desk.submit(tenant, 4000)
    (order,) = desk.plans.get(strategy)._orders
    for _ in range(100):
        desk.take(100, strategy)
        desk.set_weight("a", 2.0)
        desk.set_weight("a", 1.0)
        desk.pause(1, True)
        desk.pause(1, False)
    heaps = [order._top, *(gate.heap for gate in order._gates.values())]
    heaps += [flow.home for flow in order._flows.values()]
    assert max(map(len, heaps)) < 200


@pytest.mark.parametrize("strategy", ["CustomPriority", 'MaxSimultaneous("tenant", 99, CustomPriority)'])
def test_priorities_without_end_are_not_all_kept(strategy: str) -> None:
    desk = Desk()
    desk.plans.get(strategy)
    low = desk.submit("keeps", 50, priority=-1)
    desk.take(2, strategy)
    for i in range(3 * limits.PRIORITIES_MAX):
        desk.submit(f"t{i % 5}", 1, priority=i)
        ((id, index),) = list(desk.take(1, strategy))
        assert id != low
        desk.complete(id, index)
    assert len(desk.tables._tables) <= limits.PRIORITIES_MAX + 2
    desk.submit("new", 50, priority=-1)
    for priority in (7, 7, 8):
        desk.submit("again", 1, priority=priority)
    assert [desk.rows[id].priority for id, _ in desk.take(4, strategy)] == [8, 7, 7, -1]
    assert desk.tables.table((), (), -1).v > 0  # a lane with chunks was kept


@pytest.mark.parametrize("base", ["Fair", "Random", "OldestFirst", "NewestFirst", "CustomPriority"])
def test_what_is_over_is_dropped_from_limited_orders_though_nobody_takes_there(base: str) -> None:
    desk = Desk()
    strategy = f'MaxSimultaneous("region", 2, {base})'
    (order,) = desk.plans.get(strategy)._orders
    rng = random.Random(1)
    for _ in range(4 * SWEEP_RUNS_MIN):
        desk.submit(f"t{rng.randrange(50)}", 1, {"region": rng.randrange(9)}, rng.randrange(3))
        if desk.next_id % 100:
            for id, index in list(desk.take(1, "OldestFirst")):
                desk.complete(id, index)
    assert len(order) <= SWEEP_RUNS_MIN + 1
    left = sum(row.eligible for row in desk.rows.values())
    got = 0
    while out := list(desk.take(50, strategy)):
        got += len(out)
        for id, index in out:
            desk.complete(id, index)
    assert got == left > 0


# -- a grab that fails


@pytest.mark.parametrize("base", ["Fair", "Random", "OldestFirst", "CustomPriority"])
def test_a_grab_that_fails_leaves_a_limited_pick_undone(base: str) -> None:
    desk = Desk()
    strategy = f'MaxSimultaneous("region", 2, {base})'
    fill(desk, 12)
    before = {key: (dict(t.turn), t.v) for key, t in desk.tables._tables.items()}

    def broken(*_: object) -> None:
        raise OSError("no")

    plan = desk.plans.get(strategy)
    with pytest.raises(OSError):
        plan.take(3, broken)
    assert {
        key: (dict(desk.tables._tables[key].turn), desk.tables._tables[key].v) for key in before
    } == before
    assert len(desk.take(100, strategy)) == 6
