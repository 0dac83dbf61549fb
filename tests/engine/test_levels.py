"""Levels, A and eras as the engine keeps them, and what happens at their bounds."""

from __future__ import annotations

from random import Random

import pytest

from fairway.engine.commands import Submit
from fairway.errors import TooLarge
from fairway.fair.weights import U
from fairway.limits import CHUNKS_MAX, PASS_MAX, V_REBASE_MAX
from tests.engine import truth
from tests.engine.desk import Desk, chunks, offer, some, through_windows


def test_a_follows_what_is_finished_and_never_reaches_what_is_not() -> None:
    desk = Desk()
    ids = [desk.submit(tenant) for tenant in "abcd"]
    levels = [(desk.state.runs[id].pass_, id) for id in ids]
    held = desk.reserve(4)
    for done, ack in [(1, (0, 0)), (0, levels[1]), (3, levels[1])]:
        desk.complete(some(held, (ids[done], 0)))
        assert desk.state.window.ack == ack
    assert desk.state.era == 0
    desk.complete(some(held, (ids[2], 0)))
    assert (desk.state.window.ack, desk.state.era) == ((0, 0), 1), "an empty queue starts a new era"
    desk.restart()
    assert (desk.state.window.ack, desk.state.era) == ((0, 0), 1)


@through_windows
def test_a_new_run_is_placed_above_a_even_while_a_long_lease_holds_a_back() -> None:
    desk = Desk()
    desk.submit("slow")
    desk.reserve(lease=3600)
    for step in range(30):
        desk.submit("busy")
        desk.complete(desk.reserve())
        if step % 7 == 0:
            desk.restart()
    late = desk.submit("late")
    run = desk.state.runs[late]
    assert desk.state.window.ack == (0, 0)
    assert run.pass_ > desk.state.tables.plain.v, "the floor is never A alone"


@through_windows
@pytest.mark.parametrize("seed", range(8))
def test_a_call_of_many_places_its_runs_as_single_calls_would(seed: int) -> None:
    dice = Random(seed)
    together, apart = Desk(audited=False), Desk(audited=False)
    for _ in range(6):
        offers = [
            offer(
                dice.choice("abc"),
                dice.choice([0, 1, 1, 1, 3, 1000]),
                weight=dice.choice([0, 0, 0, 300, 7000]),
                delay=dice.choice([0.0, 0.0, 0.0, 60.0]),
                deadline=dice.choice([0.0, 0.0, 0.0, 900.0]),
            )
            for _ in range(dice.randrange(1, 12))
        ]
        together.call(Submit(offers))
        with apart.one_group():
            for one in offers:
                apart.call(Submit([one]))
        taken = dice.randrange(1, 8)
        for desk in (together, apart):
            held = desk.reserve(taken)
            if held.spans:
                desk.complete(held)
        assert truth.dump(together.engine) == truth.dump(apart.engine)
        assert truth.dump(together.fresh()) == truth.dump(apart.fresh())


def test_with_fair_consumers_runs_are_first_dispatched_in_level_order() -> None:
    desk = Desk()
    for tenant, n, weight in [
        ("a", 3, 5000),
        ("b", 2, 3000),
        ("c", 1, 2000),
        ("a", 2, 0),
        ("b", 4, 0),
        ("c", 2, 0),
    ]:
        desk.submit(tenant, n, weight=weight)
    order: list[int] = []
    levels = {id: (run.pass_, id) for id, run in desk.state.runs.items()}
    for step in range(14):
        ((id, _),) = chunks(desk.reserve())
        if id not in order:
            order.append(id)
        if step == 4:
            desk.restart()
        if step in (3, 8):
            new = desk.submit("d", 2) if step == 3 else desk.submit("a", 1)
            levels[new] = (desk.state.runs[new].pass_, new)
    later = [id for id in levels if id not in order]
    assert order == sorted(order, key=levels.__getitem__)
    assert all(levels[id] > levels[order[-1]] for id in later)


def fill(desk: Desk) -> int:
    """Give tenant a, of weight 0.01, so many chunks that its next run would lie above PASS_MAX."""
    whole = PASS_MAX // (U // 10 * CHUNKS_MAX)
    desk.call(Submit([offer("a", CHUNKS_MAX)] * whole))
    desk.call(Submit([offer("a", CHUNKS_MAX)]))
    return whole


@pytest.mark.parametrize("last", ["whale", "weight", "many"])
def test_a_level_above_2_62_is_refused_before_anything_is_written(last: str) -> None:
    desk = Desk(audited=False)
    desk.weigh("a", 10)
    whole = fill(desk)
    desk.audited = True
    refused = {
        "whale": [offer("new"), offer("a", 5), offer("a", 1)],
        "weight": [
            offer("new"),
            offer("b", CHUNKS_MAX, weight=100_000),
            *[offer("b", CHUNKS_MAX, weight=10)] * (whole + 2),
        ],
        "many": [offer("new"), offer("b", 7, weight=10), *[offer("b", CHUNKS_MAX)] * (whole + 2)],
    }[last]
    before = (len(desk.groups), desk.stats())
    with pytest.raises(TooLarge):
        desk.call(Submit(refused))
    after = desk.stats()
    assert len(desk.groups) == before[0] and after.submissions_active == before[1].submissions_active
    assert "new" not in desk.state.tenants and "b" not in desk.state.tables.weight
    assert all(run.pass_ <= PASS_MAX for run in desk.state.runs.values())
    desk.submit("b")
    assert desk.tenants_of(desk.reserve(2)) in ("ab", "ba"), "others are not troubled"


def test_a_redrive_that_finds_no_room_is_refused_and_changes_nothing() -> None:
    desk = Desk(audited=False)
    desk.weigh("a", 10)
    x = desk.submit("a", 3, policy="dead_letter")
    desk.fail(desk.reserve(2), retry=False)
    desk.reserve(lease=86400)
    desk.cancel(x)
    fill(desk)
    desk.audited = True
    for _ in range(2):
        with pytest.raises(TooLarge):
            desk.redrive(x)
        assert (desk.show(x).state, desk.show(x).failed) == ("cancelled", 2)
        desk.restart()
    desk.weigh("a", 100_000)
    assert desk.redrive(x).life == 2


def test_v_and_all_turns_are_lowered_together_when_v_passes_2_61() -> None:
    desk = Desk()
    for tenant, weight in [("a", 1000), ("b", 3000), ("c", 10)]:
        desk.submit(tenant, 40, weight=weight)
    plain = Desk()
    for tenant, weight in [("a", 1000), ("b", 3000), ("c", 10)]:
        plain.submit(tenant, 40, weight=weight)
    turns = desk.state.tables.plain
    lift = V_REBASE_MAX - 20_000
    turns.v += lift
    for tenant in turns.turn:
        turns.turn[tenant] += lift
    turns.moved.update(turns.turn)
    turns.era += 1
    order, expected = [], []
    for step in range(12):
        order += desk.tenants_of(desk.reserve(5))
        expected += plain.tenants_of(plain.reserve(5))
        if step % 4 == 3:
            desk.restart()
    assert order == expected, "the order does not notice"
    assert turns.v < 10**6 and desk.state.tables.plain.v < 10**6, "V was lowered"
    late = desk.submit("late")
    assert desk.state.runs[late].pass_ <= PASS_MAX


def test_levels_start_again_in_a_new_era_also_after_a_rebase() -> None:
    desk = Desk()
    x = desk.submit("a", 3)
    turns = desk.state.tables.plain
    turns.v += V_REBASE_MAX
    turns.turn["a"] += V_REBASE_MAX
    turns.moved.add("a")
    turns.era += 1
    y = desk.submit("b")
    assert desk.state.runs[y].pass_ > V_REBASE_MAX
    assert sorted(desk.drain()) == [(x, 0), (x, 1), (x, 2), (y, 0)]
    desk.restart()
    z = desk.submit("b")
    assert desk.state.runs[z].pass_ < 10**6
