"""The orders as indexes: what they are told, what they find out, and what they drop."""

from __future__ import annotations

import pytest

from fairway import limits
from fairway.errors import BadStrategy
from fairway.fair.turns import Tables, Turns
from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate
from fairway.strategy.order import SWEEP_RUNS_MIN
from fairway.strategy.orders.fair import FairOrder
from fairway.strategy.plan import Plans
from tests.strategy.desk import Desk

EVERY = [
    *("Fair", "Random", "OldestFirst", "NewestFirst", "CustomPriority"),
    *(
        f'MaxSimultaneous("{key}", 5, {base})'
        for key, bases in (
            ("tenant", ["Fair", "Random", "CustomPriority"]),
            ("region", ["Fair", "OldestFirst"]),
        )
        for base in bases
    ),
    'SelectOnly("region", 1, PreferDistinct("tenant", 2, NewestFirst))',
]


def candidate(id: int, tenant: str = "a", ready: int = 1) -> Candidate:
    run = Candidate(id, tenant, id % 3, {"region": 1}, 0, False)
    run.ready, run.eligible = ready, ready > 0
    return run


def grab(run: Candidate, n: int, shuffled: bool) -> None:
    assert run.eligible and 0 < n <= run.ready
    run.ready -= n
    run.eligible = run.ready > 0


def plans(*runs: Candidate, plans_max: int = limits.PLANS_MAX) -> Plans[Candidate]:
    return Plans(Tables({}), Dice(3), {run.id: run for run in runs}, plans_max=plans_max)


# -- every order


@pytest.mark.parametrize("strategy", EVERY)
def test_never_no_work_while_something_is_eligible(strategy: str) -> None:
    runs = [candidate(i, f"t{i % 3}", i % 4) for i in range(1, 40)]
    order = plans(*runs).get(strategy)
    total = sum(run.ready for run in runs)
    taken = 0
    while taken < total:
        n = order.take(7, grab)
        assert n == min(7, total - taken)
        taken += n
    assert order.take(1, grab) == 0 and len(order) == 0


@pytest.mark.parametrize("strategy", EVERY)
def test_added_twice_is_handed_out_once(strategy: str) -> None:
    live = plans()
    order = live.get(strategy)
    run = candidate(5, ready=2)
    for _ in range(3):
        live.add(run)
    assert len(order) == 1
    assert order.take(10, grab) == 2


@pytest.mark.parametrize("strategy", EVERY)
def test_a_run_that_was_over_comes_back(strategy: str) -> None:
    live = plans(candidate(9, "b"))
    order = live.get(strategy)
    run = candidate(5)
    live.add(run)
    run.eligible = False  # paused, and nobody looked
    run.eligible = True
    live.add(run)
    assert order.take(10, grab) == 2
    run.ready, run.eligible = 1, True  # returned
    live.add(run)
    assert order.take(10, grab) == 1
    run.eligible = False
    assert order.take(10, grab) == 0
    run.ready, run.eligible = 3, True
    live.add(run)
    assert order.take(10, grab) == 3


@pytest.mark.parametrize("strategy", EVERY)
def test_the_latest_object_of_a_run_counts(strategy: str) -> None:
    live = plans()
    order = live.get(strategy)
    old, new = candidate(5, ready=4), candidate(5, ready=2)
    live.add(old)
    old.eligible = False
    live.add(new)
    assert order.take(10, grab) == 2 and new.ready == 0


@pytest.mark.parametrize("strategy", EVERY)
def test_a_grab_that_fails_leaves_the_pick_undone(strategy: str) -> None:
    tables = Tables({})
    runs = [candidate(1, "a", 2), candidate(2, "b", 2)]
    order = Plans(tables, Dice(1), {run.id: run for run in runs}).get(strategy)
    before = dict(tables.plain.turn)

    def broken(run: Candidate, n: int, shuffled: bool) -> None:
        raise OSError("no")

    with pytest.raises(OSError):
        order.take(3, broken)
    assert tables.plain.turn == before and tables.plain.v == 0
    assert order.take(10, grab) == 4


@pytest.mark.parametrize("strategy", EVERY)
def test_what_others_finished_is_dropped_though_nobody_takes_here(strategy: str) -> None:
    live = plans()
    order = live.get(strategy)
    kept = 0
    for id in range(1, 50_000):
        run = candidate(id, f"t{id % 900}", 2)
        live.add(run)
        if id % 4999 == 0:
            kept += 1
        else:
            run.ready, run.eligible = 0, False
        assert len(order) <= 2 * SWEEP_RUNS_MIN
    assert kept == 10 and order.take(1000, grab) == 20


def test_taking_nothing_gives_nothing() -> None:
    for strategy in EVERY:
        assert plans(candidate(1)).get(strategy).take(0, grab) == 0


# -- several chunks at once


def test_ordered_by_age_takes_many_chunks_of_a_run_at_once() -> None:
    for strategy, ids in (("OldestFirst", [1, 2]), ("NewestFirst", [3, 2])):
        runs = [candidate(i, ready=4) for i in (2, 3, 1)]
        seen: list[tuple[int, int, bool]] = []

        def note(run: Candidate, n: int, shuffled: bool, seen: list[tuple[int, int, bool]] = seen) -> None:
            seen.append((run.id, n, shuffled))
            grab(run, n, shuffled)

        assert plans(*runs).get(strategy).take(6, note) == 6
        assert seen == [(ids[0], 4, False), (ids[1], 2, False)]


def test_a_tenant_alone_is_taken_and_charged_many_chunks_at_once() -> None:
    desk = Desk()
    desk.set_weight("a", 3)
    desk.submit("a", 5)
    desk.submit("a", 100)
    assert len(desk.take(50)) == 50
    assert len(desk.shuffled) == 2
    single = Turns({"a": 3000})
    single.appear("a")
    for _ in range(50):
        single.charge("a")
    assert (desk.turns.v, desk.turns.turn, desk.turns.rest) == (single.v, single.turn, single.rest)


def test_random_takes_single_chunks_in_the_permutation_of_the_run() -> None:
    desk = Desk()
    desk.submit("a", 5)
    desk.take(5, "Random")
    assert desk.shuffled == [True] * 5


# -- Fair


def test_an_older_run_that_becomes_eligible_takes_its_place_at_once() -> None:
    live = plans()
    order = live.get("Fair")
    seen: list[int] = []

    def note(run: Candidate, n: int, shuffled: bool) -> None:
        seen.append(run.id)
        grab(run, n, shuffled)

    for id, tenant in ((10, "a"), (20, "b"), (5, "b")):
        live.add(candidate(id, tenant, 3))
    order.take(4, note)
    assert seen == [5, 10, 5, 10]


def test_a_forgotten_tenant_that_gets_a_chunk_back_starts_like_a_newcomer() -> None:
    tables = Tables({})
    live: Plans[Candidate] = Plans(tables, Dice(1), {})
    order = live.get("Fair")
    live.add(candidate(1, "a", 50))
    order.take(40, grab)
    live.add(candidate(2, "b"))
    assert tables.plain.turn["b"] == tables.plain.v + 9999
    tables.plain.forget("b")
    assert order.take(11, grab) == 11  # forgotten under its run: looked up again


@pytest.mark.parametrize(
    "strategy", ["Fair", 'MaxSimultaneous("tenant", 9, Fair)', 'MaxSimultaneous("r", 9, Fair)']
)
def test_a_tenant_that_comes_back_heavier_over_dead_runs_is_not_held_to_its_old_turn(strategy: str) -> None:
    desk = Desk()
    desk.submit("a", 1000)
    desk.submit("b", 1)
    desk.plans.get(strategy)
    for id, index in list(desk.take(1, "NewestFirst")):
        desk.complete(id, index)
    desk.turns.v = 1
    assert desk.tables.forget_due() == ["b"]
    desk.set_weight("b", 100)
    desk.submit("b", 1)
    assert desk.turns.turn["b"] < desk.turns.turn["a"]
    assert desk.served(1, strategy) == ["b"]


def test_rebase_keeps_the_order_at_any_point() -> None:
    orders = []
    for at in (None, 0, 7, 8, 9, 200):
        desk = Desk()
        for tenant, weight in (("a", 1), ("b", 3), ("c", 0.777)):
            desk.set_weight(tenant, weight)
            desk.submit(tenant, 1000)
        desk.pause_tenant("c", True)
        order = ""
        for step in range(300):
            if step == at:
                desk.turns.rebase()
            if step == 150:
                desk.pause_tenant("c", False)
            order += desk.order(1)
        orders.append(order)
    assert len(set(orders)) == 1


def test_v_is_lowered_by_itself_when_it_passes_its_bound() -> None:
    top = limits.V_REBASE_MAX
    turns = Turns.restore({}, top - 15_000, [("a", top - 5000, 0), ("b", top - 5001, 0)])
    runs = [candidate(1, "a", 100), candidate(2, "b", 100)]
    order = Plans(Tables({}, turns), Dice(1), {run.id: run for run in runs}).get("Fair")
    seen: list[str] = []

    def note(run: Candidate, n: int, shuffled: bool) -> None:
        seen.append(run.tenant)
        grab(run, n, shuffled)

    order.take(3, note)
    assert turns.era == 1 and turns.v == 0 and turns.take_moved() == {"a", "b"}
    for _ in range(20):
        order.take(1, note)
    assert "".join(seen) == "ba" * 11 + "b"


# -- plans


def test_a_plan_is_made_once_and_shared_by_every_spelling() -> None:
    live = plans(candidate(1))
    assert live.get("Fair") is live.get(" Fair ( ) ") is live.get("Fair()")
    assert live.get("OldestFirst") is not live.get("NewestFirst")
    assert live.live() == 3


def test_the_plan_used_longest_ago_is_dropped_and_filled_again_when_asked() -> None:
    live = plans(candidate(1, ready=5), plans_max=2)
    fair, oldest = live.get("Fair"), live.get("OldestFirst")
    assert live.get("Fair") is fair
    live.get("NewestFirst")
    assert live.live() == 2
    assert live.get("Fair") is fair
    again = live.get("OldestFirst")
    assert again is not oldest and again.take(9, grab) == 5


def test_endless_spellings_of_a_strategy_are_not_all_kept() -> None:
    live = plans()
    for i in range(10 * limits.PLANS_MAX):
        live.get("Fair" + " " * i)
    assert len(live._tiers) <= 4 * limits.PLANS_MAX and live.live() == 1


def test_what_is_no_strategy_makes_no_plan() -> None:
    live = plans()
    with pytest.raises(BadStrategy):
        live.get("Fare")
    assert live.live() == 0


@pytest.mark.parametrize("seed", range(20))
def test_many_that_come_at_once_are_picked_as_if_they_came_one_by_one(seed: int) -> None:
    dice = Dice(seed)
    found: list[list[int]] = []
    made = [(id + 1, f"t{dice.below(4)}", 1 + dice.below(3)) for id in range(60)]
    cut = dice.below(60)
    for at_once in (True, False):
        turns = Turns({"t1": 3000})
        order = FairOrder[Candidate](turns)
        runs = [candidate(*one) for one in made]
        picked: list[int] = []

        def note(run: Candidate, n: int, shuffled: bool, picked: list[int] = picked) -> None:
            grab(run, n, shuffled)
            picked += [run.id] * n

        for some in (runs[cut:], runs[:cut], runs[: cut // 2]):  # older ones come later, some of them again
            if at_once:
                order.add_all(some)
            else:
                for run in some:
                    order.add(run)
            order.take(11, note)
        order.take(1000, note)
        assert len(picked) == sum(one[2] for one in made) and not len(order)
        found.append(picked)
    assert found[0] == found[1]
