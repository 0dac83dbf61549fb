"""What each block promises, by example."""

from __future__ import annotations

import pytest

from fairway.strategy.terms import (
    CustomPriority,
    Fair,
    MaxSimultaneous,
    NewestFirst,
    OldestFirst,
    OrElse,
    PreferDistinct,
    Random,
    SelectOnly,
    Strategy,
)
from tests.strategy.desk import Desk


def three(n: int = 100) -> Desk:
    """One big submission for each of three tenants."""
    desk = Desk()
    for tenant in "123":
        desk.submit(tenant, n)
    return desk


def served(desk: Desk, k: int, strategy: Strategy, calls: int = 1) -> list[str]:
    """The tenants of k picks in so many calls, leases kept."""
    return [tenant for _ in range(calls) for tenant in desk.served(k // calls, str(strategy), done=False)]


# -- PreferDistinct


@pytest.mark.parametrize("calls", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("strategy", "tenants"),
    [
        (PreferDistinct("tenant", 1, OldestFirst), "123111"),
        (PreferDistinct("tenant", 2, OldestFirst), "112233"),
        (PreferDistinct("tenant", 1, Fair), "123123"),
        (PreferDistinct("tenant", 1, NewestFirst), "321333"),
    ],
)
def test_one_big_submission_for_each_of_three_tenants(strategy: Strategy, tenants: str, calls: int) -> None:
    assert "".join(served(three(), 6, strategy, calls)) == tenants


def test_submissions_without_the_key_are_not_limited() -> None:
    desk = Desk()
    desk.submit("a", 5)
    desk.submit("b", 5, {"region": "x"})
    desk.submit("c", 5, {"region": "x"})
    assert "".join(served(desk, 20, MaxSimultaneous("region", 2, OldestFirst))) == "aaaaabb"
    desk = Desk()
    desk.submit("b", 5, {"region": "x"})
    desk.submit("a", 3)
    assert "".join(served(desk, 5, PreferDistinct("region", 1, OldestFirst))) == "baaab"


def test_a_batch_comes_from_many_submissions_if_they_are_distinct() -> None:
    desk = Desk()
    for tenant in "aabbcc":
        desk.submit(tenant, 10)
    got = desk.take(3, str(PreferDistinct("tenant", 1, OldestFirst)))
    assert [id for id, _ in got] == [1, 3, 5]


# -- MaxSimultaneous


@pytest.mark.parametrize("base", [Fair, Random, OldestFirst, NewestFirst, CustomPriority])
@pytest.mark.parametrize("key", ["tenant", "region"])
def test_no_more_than_max_are_in_flight(base: type, key: str) -> None:
    desk = Desk()
    for tenant in "abc":
        for _ in range(3):
            desk.submit(tenant, 3, {"region": tenant})
    strategy = str(MaxSimultaneous(key, 2, base))
    out = list(desk.take(100, strategy))
    assert sorted(desk.rows[id].tenant for id, _ in out) == list("aabbcc")
    assert desk.take(1, strategy) == []
    for id, index in out[:3]:
        freed = desk.rows[id].tenant
        desk.woken = False
        desk.complete(id, index)
        assert desk.woken
        assert [desk.rows[id].tenant for id, _ in desk.take(5, strategy)] == [freed]


@pytest.mark.parametrize("ends", ["complete", "give_back"])
def test_leases_of_a_cancelled_submission_count_until_they_end(ends: str) -> None:
    desk = Desk()
    desk.submit("a", 5)
    desk.submit("a", 5)
    strategy = str(MaxSimultaneous("tenant", 2, OldestFirst))
    out = list(desk.take(5, strategy))
    desk.cancel(1)
    assert len(out) == 2 and desk.take(5, strategy) == []
    getattr(desk, ends)(*out[0])
    assert desk.take(5, strategy) == [(2, 0)]


def test_leases_of_every_strategy_count_but_bind_only_their_own() -> None:
    desk = three()
    desk.plans.get(str(MaxSimultaneous("tenant", 2, Fair)))
    assert "".join(desk.served(7, "OldestFirst", done=False)) == "1111111"
    assert "".join(served(desk, 9, MaxSimultaneous("tenant", 2, Fair))) == "2323"
    for index in range(5):
        desk.complete(1, index)
    assert served(desk, 9, MaxSimultaneous("tenant", 2, Fair)) == []
    desk.complete(1, 5)
    assert served(desk, 9, MaxSimultaneous("tenant", 2, Fair)) == ["1"]


def test_what_was_out_before_a_limit_was_first_used_counts() -> None:
    desk = three()
    desk.take(7, "Fair")
    assert not desk.plans.limited
    assert "".join(served(desk, 9, MaxSimultaneous("tenant", 3, Fair))) == "23"
    desk.restart()
    assert not desk.plans.limited
    assert served(desk, 9, MaxSimultaneous("tenant", 3, Fair)) == []


def test_a_share_follows_the_consumers() -> None:
    desk = three()
    strategy = str(MaxSimultaneous("tenant", "10%", Fair))
    assert len(desk.take(100, strategy, consumers=1)) == 3  # at least one each
    assert len(desk.take(100, strategy, consumers=19)) == 0
    assert len(desk.take(100, strategy, consumers=25)) == 3
    assert len(desk.take(100, strategy, consumers=50)) == 9
    assert len(desk.take(100, strategy, consumers=20)) == 0  # lowering revokes nothing
    for id in (1, 2, 3):
        for index in range(3):
            desk.complete(id, index)
    assert len(desk.take(100, strategy, consumers=20)) == 0  # two of each are out, the most for 20
    desk.complete(2, 3)
    assert [id for id, _ in desk.take(100, strategy, consumers=20)] == [2]


def test_the_text_1_and_the_number_1_are_counted_apart() -> None:
    desk = Desk()
    desk.submit("a", 3, {"region": "1"})
    desk.submit("a", 3, {"region": 1})
    assert [id for id, _ in desk.take(9, str(MaxSimultaneous("region", 1, OldestFirst)))] == [1, 2]
    assert [id for id, _ in desk.take(9, str(SelectOnly("region", 1, OldestFirst)))] == [2, 2]


# -- SelectOnly, OrElse, CustomPriority


def test_only_what_is_selected_is_chosen() -> None:
    desk = Desk()
    for tenant, mode in (("a", "normal"), ("b", "preview"), ("a", "preview"), ("c", "")):
        desk.submit(tenant, 2, {"mode": mode} if mode else {})
    preview = SelectOnly("mode", "preview", OldestFirst)
    assert [id for id, _ in desk.take(9, str(SelectOnly("tenant", "a", preview)))] == [3, 3]
    assert [id for id, _ in desk.take(9, str(preview))] == [2, 2]
    assert desk.take(9, str(preview)) == []
    assert len(desk.take(9, "Fair")) == 4


def test_or_else_never_says_no_work_while_the_fallback_has_some() -> None:
    desk = Desk()
    strategy = str(OrElse(SelectOnly("mode", "preview", Random), MaxSimultaneous("tenant", 5, Fair)))
    desk.submit("a", 3, {"mode": "normal"})
    assert desk.take(1, strategy) == [(1, 0)]
    desk.submit("b", 2, {"mode": "preview"})
    assert [id for id, _ in desk.take(9, strategy)] == [2, 2, 1, 1]


def test_a_high_priority_is_first_and_tenants_take_turns_in_it() -> None:
    desk = Desk()
    for tenant, priority in (("a", 0), ("a", 5), ("b", 5), ("c", -1), ("b", 0)):
        desk.submit(tenant, 2, priority=priority)
    assert "".join(desk.served(10, "CustomPriority")) == "ababababcc"


def test_a_busy_high_priority_does_not_delay_newcomers_at_a_low_one() -> None:
    desk = Desk()
    desk.submit("a", 10_000, priority=1)
    desk.submit("a", 10, priority=0)
    desk.take(1, "CustomPriority")
    desk.take(9_000, "CustomPriority")
    desk.submit("b", 10, priority=0)
    desk.take(999, "CustomPriority")
    assert "".join(desk.served(6, "CustomPriority")) == "ababab"


def test_a_lane_has_its_own_turns() -> None:
    """A tenant that is served much in a lane keeps its share outside it."""
    desk = Desk()
    for tenant in "abc":
        desk.submit(tenant, 1000)
    desk.submit("a", 1000, {"mode": "preview"})
    lane = str(SelectOnly("mode", "preview", Fair))
    shares = dict.fromkeys("abc", 0)
    for _ in range(300):
        assert desk.served(3, lane) == ["a"] * 3
        for tenant in desk.served(1):
            shares[tenant] += 1
    assert shares == {"a": 100, "b": 100, "c": 100}


def test_a_tenant_that_comes_back_to_a_lane_has_earned_no_turns() -> None:
    desk = Desk()
    lane = str(SelectOnly("mode", "preview", Fair))
    desk.submit("a", 1, {"mode": "preview"})
    desk.submit("b", 100, {"mode": "preview"})
    desk.submit("a", 100, {"mode": "normal"})  # it waits in the queue all the time, but not in the lane
    assert "".join(desk.served(20, lane)) == "ab" + "b" * 18
    desk.submit("a", 5, {"mode": "preview"})
    assert "".join(desk.served(8, lane)) == "abababab"


@pytest.mark.parametrize("inner", ["Fair", 'MaxSimultaneous("tenant", 99, Fair)'])
def test_what_comes_back_to_a_lane_that_is_younger_than_its_lease_starts_like_a_newcomer(inner: str) -> None:
    desk = Desk()
    desk.submit("a", 2, {"mode": "preview"})
    desk.submit("b", 100, {"mode": "preview"})
    out = list(desk.take(2, "OldestFirst"))
    lane = f'SelectOnly("mode", "preview", {inner})'
    assert "".join(desk.served(5, lane)) == "bbbbb"
    for id, index in out:
        desk.give_back(id, index)
    assert "".join(desk.served(4, lane)) == "abab"


def test_what_is_next_and_what_waits_is_told_in_words() -> None:
    desk = Desk()
    desk.submit("acme", 9, {"mode": "preview"})
    desk.submit("other", 9, {"mode": "normal"})
    desk.submit("third", 9)
    inner = MaxSimultaneous("tenant", "50%", OldestFirst)
    plan = desk.plans.get(str(SelectOnly("mode", "preview", inner)))
    desk.plans.get(str(MaxSimultaneous("tenant", 5, OldestFirst)))
    rows = list(desk.rows.values())
    assert [(run.id, tier) for run, tier in plan.next_up(3, consumers=5)] == [(1, 0), (1, 0)]
    desk.take(5, str(MaxSimultaneous("tenant", 5, OldestFirst)))
    assert plan.held_back(rows[0], 5) == "limit tenant=acme: 5 of 2 in flight (50% of 5 consumers)"
    assert plan.held_back(rows[0], 12) == "older submissions are first"
    assert plan.held_back(rows[1]) == 'not selected: mode is "normal", not "preview"'
    assert plan.held_back(rows[2]) == "not selected: it has no mode"
    prefer = desk.plans.get(str(PreferDistinct("tenant", 5, Fair)))
    said = prefer.held_back(rows[0])
    assert said.startswith(
        "limit tenant=acme: 5 of 5 in flight; after what is free of that, tenants take turns"
    )
    coming = prefer.next_up(100)
    assert [tier for _, tier in coming] == [0] * 10 + [1] * 12  # five of 2 and 3 each, then what is left
    assert [run.id for run, _ in coming] == [
        id for id, _ in desk.take(100, str(PreferDistinct("tenant", 5, Fair)))
    ]
    desk.give_back(3, 0)
    desk.pause(3, True)
    assert prefer.held_back(rows[2]) == "it has no chunk that can be handed out now"
