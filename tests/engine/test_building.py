"""A strategy that is new to a large queue is made in slices: commands go on, and who asked is answered at the end."""

from __future__ import annotations

import math
import random

import pytest

from fairway import limits
from fairway.engine.commands import Explain, Goodbye, Reserve
from fairway.errors import TooManyStrategies
from fairway.strategy.text import parse
from tests.engine.desk import Desk, answer, chunks

LANE = 'SelectOnly("mode", "p", Fair)'
LIMITED = 'MaxSimultaneous("tenant", 2, Fair)'
MANY = [
    "OldestFirst",
    "NewestFirst",
    "Fair",
    "CustomPriority",
    LANE,
    LIMITED,
    f"OrElse({LANE}, {LIMITED})",
    'PreferDistinct("mode", 1, CustomPriority)',
]


def desk_with(n: int, steps: int = 2, **told: int) -> Desk:
    """A queue of n submissions of two chunks; reads and slices are made by the test."""
    desk = Desk(steps=steps, **told)
    for i in range(n):
        desk.submit("abc"[i % 3], 2, metadata={"mode": "pq"[i % 2]}, priority=i % 2)
    desk.reads_go_on = False
    return desk


def slice_of(desk: Desk) -> None:
    assert desk.engine.begin_reads(desk.now) == []
    desk.settle()


@pytest.mark.parametrize("strategy", MANY)
def test_commands_go_on_while_a_plan_is_made(strategy: str) -> None:
    desk = desk_with(9)
    asked = desk.send(Reserve(3, strategy))
    slices = 0
    while not asked.answered:
        assert desk.engine.wants_reads() and desk.engine.builds
        id = desk.submit("c", 1, metadata={"mode": "p"})
        assert desk.show(id).state == "active"
        desk.cancel(id)
        slice_of(desk)
        slices += 1
    assert slices >= 4 and not desk.engine.builds
    got = answer(asked)
    once = desk_with(9, steps=1000)
    at_once = once.reserve(3, strategy)
    assert desk.tenants_of(got) == once.tenants_of(at_once)
    assert [index for _, index in chunks(got)] == [index for _, index in chunks(at_once)]


@pytest.mark.parametrize("wait", [0.0, 5.0])
def test_nobody_is_told_no_work_because_a_plan_is_being_made(wait: float) -> None:
    desk = desk_with(9)
    asked = desk.send(Reserve(1, "OldestFirst", wait_seconds=wait))
    desk.now += 60.0
    desk.engine.tick(desk.now)  # its time is over, and the plan is not ready
    desk.settle()
    assert not asked.answered
    while not asked.answered:
        slice_of(desk)
    assert len(chunks(answer(asked))) == 1


def test_who_finds_nothing_is_told_so_when_the_plan_is_ready() -> None:
    desk = desk_with(9)
    asked = desk.send(Reserve(1, 'SelectOnly("mode", "other", Fair)'))
    waits = desk.send(Reserve(1, 'SelectOnly("mode", "other", Fair)', wait_seconds=50.0))
    while not asked.answered:
        slice_of(desk)
    assert not chunks(answer(asked)) and not waits.answered
    desk.submit("a", 1, metadata={"mode": "other"})
    assert len(chunks(answer(waits))) == 1


def test_those_who_ask_for_a_plan_that_is_being_made_are_served_in_order() -> None:
    desk = desk_with(9)
    asked = [desk.send(Reserve(1, "OldestFirst", worker=worker)) for worker in range(4)]
    while not asked[-1].answered:
        slice_of(desk)
    ids = sorted(desk.state.runs)
    assert [chunks(answer(draft))[0] for draft in asked] == [(id, i) for id in ids[:2] for i in range(2)]


def test_a_start_makes_plans_in_slices_and_takes_submits_meanwhile() -> None:
    desk = desk_with(9)
    held = desk.send(Reserve(2, LIMITED))
    while not held.answered:
        slice_of(desk)
    desk.restart()
    asked = desk.send(Reserve(9, LIMITED))
    assert not asked.answered
    new = desk.submit("new", 1)
    while not asked.answered:
        slice_of(desk)
    got = answer(asked)
    assert (new, 0) in chunks(got)
    assert sorted(desk.tenants_of(got).replace("new", "")) == sorted("abcc")  # a and b had one out already


def test_a_paused_queue_says_no_work_while_a_plan_is_made() -> None:
    desk = desk_with(9)
    desk.pause()
    assert not chunks(desk.reserve(1, "OldestFirst"))
    desk.resume()
    asked = desk.send(Reserve(1, "OldestFirst"))
    while not asked.answered:
        slice_of(desk)
    assert chunks(answer(asked))


def test_a_caller_who_leaves_while_a_plan_is_made_takes_nothing() -> None:
    desk = desk_with(9)
    client = desk.register()
    gone = desk.send(Reserve(1, "OldestFirst"), client, 1)
    other = desk.send(Reserve(1, "NewestFirst"))
    desk.engine.abandon(other)
    desk.call(Goodbye(), client)
    assert gone.answered and not chunks(answer(gone))
    while desk.engine.wants_reads():
        slice_of(desk)
    assert desk.stats().chunks_leased == 0


def test_explain_waits_for_its_own_plan_and_commands_go_on() -> None:
    desk = desk_with(9)
    asked = desk.send(Explain(LIMITED, 3))
    slices = 0
    while not asked.answered:
        assert desk.engine.builds and desk.stats().chunks_leased == 0
        slice_of(desk)
        slices += 1
    told = str(answer(asked))
    assert slices >= 4 and not desk.state.askers and desk.state.plans.get(LIMITED).pinned == 0
    for n, tenant in enumerate(desk.tenants_of(desk.reserve(3, LIMITED)), 1):
        assert f"{n}. tenant '{tenant}'" in told, "it says what comes"


def test_explain_of_a_plan_that_is_there_makes_no_other() -> None:
    desk = desk_with(9)
    first = desk.send(Reserve(1, LIMITED))
    while not first.answered:
        slice_of(desk)
    asked, other = desk.send(Reserve(1, "OldestFirst")), desk.send(Explain("NewestFirst"))
    unseen = len(desk.state.plans._building.unseen)
    assert "1. tenant" in desk.call(Explain(LIMITED))
    assert len(desk.state.plans._building.unseen) == unseen and not asked.answered and not other.answered
    while not asked.answered:
        slice_of(desk)
    assert not other.answered, "each is told when its own plan is ready"
    while not other.answered:
        slice_of(desk)
    assert "starve" in str(answer(other))


def test_who_no_longer_wants_to_be_told_leaves_nothing_behind() -> None:
    desk = desk_with(9)
    asked = desk.send(Explain(LIMITED))
    assert asked in desk.engine.drafts_open()
    desk.engine.abandon(asked)
    assert not desk.state.askers and desk.state.plans.get(LIMITED).pinned == 0
    while desk.engine.wants_reads():
        slice_of(desk)
    assert asked not in desk.engine.drafts_open()


def test_explain_drops_no_plan_and_one_made_for_it_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_with(3)
    desk.state.plans.places.most = 2
    desk.reads_go_on = True
    desk.reserve(1), desk.reserve(1, LANE)
    plans = desk.state.plans._plans
    used = list(plans.values())
    assert "1. tenant" in desk.call(Explain(LIMITED))
    assert list(plans.values()) == used
    assert desk.call(Explain(LANE)) and list(plans.values()) == used, "nor is one younger for it"
    desk.reads_go_on = False
    monkeypatch.setattr(limits, "PLANS_EXPLAINED_MAX", 2)
    asked = [desk.send(Explain(strategy)) for strategy in ("OldestFirst", "NewestFirst", LIMITED)]
    with pytest.raises(TooManyStrategies, match="being explained"):
        answer(asked.pop())
    desk.reads_go_on = True
    desk.settle()
    assert all(draft.answered and "submission" in str(answer(draft)) for draft in asked)
    assert list(plans.values()) == used
    desk.reserve(1, LIMITED)
    assert len(plans) == 2, "whoever reserves does drop one"


def test_a_plan_that_is_reserved_from_while_it_is_explained_stays() -> None:
    desk = desk_with(9)
    desk.state.plans.places.most = 2
    asked, waits = desk.send(Explain(LIMITED)), desk.send(Reserve(1, LIMITED))
    while not (asked.answered and waits.answered):
        slice_of(desk)
    assert chunks(answer(waits)) and desk.state.plans.get(LIMITED).ready


def test_plans_that_nobody_uses_are_dropped_after_a_while() -> None:
    desk = desk_with(3)
    desk.reads_go_on = True
    waits = desk.send(Reserve(1, 'SelectOnly("mode", "other", Fair)', wait_seconds=3600.0))
    held = [desk.reserve(1), desk.reserve(1, LANE), desk.reserve(1, "OldestFirst")]
    for leases in held:
        desk.complete(leases)

    def live() -> set[str]:
        texts = ["Fair", LANE, "OldestFirst", LIMITED, 'SelectOnly("mode", "other", Fair)']
        return {text for text in texts if parse(text).tiers() in desk.state.plans._plans}

    assert len(live()) == 4
    for _ in range(3):
        desk.pass_time(limits.PLAN_IDLE_SECONDS / 2)
        desk.reserve(1, LANE)
    assert live() == {"Fair", LANE, waits.waits.strategy}, (
        "the default, the used one and the awaited one stay"
    )
    assert not waits.answered
    desk.pass_time(2 * limits.PLAN_IDLE_SECONDS)
    assert live() == {"Fair", waits.waits.strategy}
    assert not desk.state.plans.get("Fair").used and desk.state.idle_check < math.inf
    desk.pass_time(3600.0 + 2 * limits.PLAN_IDLE_SECONDS)
    assert waits.answered and live() == {"Fair"} and desk.state.idle_check == math.inf
    assert desk.state.plans.live() == 1 and not desk.state.plans.limited
    assert chunks(desk.reserve(1, LIMITED)), "and it is made again when it is wanted"


def test_a_lane_that_is_used_seldom_goes_on_where_it_was() -> None:
    desk = Desk()
    for tenant in "abc":
        desk.submit(tenant, 9, metadata={"mode": "p"})
    served = ""
    for _ in range(6):
        served += desk.tenants_of(desk.reserve(1, LANE))
        desk.pass_time(2 * limits.PLAN_IDLE_SECONDS)
        assert parse(LANE).tiers() not in desk.state.plans._plans
    assert served == "abcabc"


def test_a_call_repeated_while_a_plan_is_made_gets_the_same_answer() -> None:
    desk = desk_with(9)
    client = desk.register()
    first = desk.send(Reserve(1, "OldestFirst"), client, 1)
    second = desk.send(Reserve(1, "OldestFirst"), client, 1)
    while not (first.answered and second.answered):
        slice_of(desk)
    assert chunks(answer(first)) == chunks(answer(second)) and desk.stats().chunks_leased == 1


@pytest.mark.parametrize("window", [0, 1, 2, 8])
@pytest.mark.parametrize("seed", range(12))
def test_plans_made_in_slices_hand_everything_out_once(seed: int, window: int) -> None:
    """Calls between the slices, restarts, and a window through which runs come and go."""
    rng = random.Random(f"{seed} {window}")
    desk = Desk(steps=rng.choice([1, 3]), window=window, fetched=3)
    submitted: set[tuple[int, int]] = set()
    done: set[tuple[int, int]] = set()
    open_ = []
    for _ in range(80):
        desk.reads_go_on = rng.random() < 0.3
        x = rng.random()
        if x < 0.45:
            n = rng.randint(1, 3)
            id = desk.submit(rng.choice("abc"), n, metadata={"mode": rng.choice("pq")}, priority=n)
            submitted |= {(id, index) for index in range(n)}
        elif x < 0.75:
            open_.append(desk.send(Reserve(rng.randint(1, 3), rng.choice(MANY))))
        elif x < 0.9 and open_ and open_[0].answered:
            got = answer(open_.pop(0))
            assert not set(chunks(got)) & done
            done |= set(chunks(got))
            desk.complete(got)
        elif x < 0.92:
            desk.restart()
            open_.clear()
        elif desk.engine.wants_reads():
            for read in desk.engine.begin_reads(desk.now):
                desk.engine.delivered(read, read.read(desk.store), desk.now)
            desk.settle()
    desk.reads_go_on = True
    desk.settle()
    desk.restart(forget=True)
    for strategy in MANY[:4] * 2:
        done |= set(desk.drain(strategy, 5))
    assert done == submitted
