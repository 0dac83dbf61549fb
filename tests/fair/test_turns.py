"""The table of turns: its arithmetic, what it forgets, and what it gives to the store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.fair.turns import Tables, Turns
from fairway.fair.weights import U

weights = st.integers(10, 100_000)


def table(**weight: int) -> Turns:
    return Turns(weight)


def test_a_newcomer_starts_one_unit_less_than_a_stride_ahead_of_v() -> None:
    turns = table(b=5000)
    assert turns.appear("a") == 9999 and turns.appear("b") == 1999
    turns.v = 70_000
    assert turns.appear("c") == 79_999
    assert turns.appear("a") == 79_999  # it was below, and had nothing
    turns.turn["a"], turns.rest["a"] = 85_000, 7
    assert turns.appear("a") == 85_000 and turns.rest["a"] == 7


def test_a_charge_moves_v_to_the_turn_and_the_turn_by_a_stride() -> None:
    turns = table(a=3000)
    turns.appear("a")
    assert turns.charge("a") == 3332 + 3333 and turns.v == 3332 and turns.rest["a"] == 1000
    assert [turns.charge("a") for _ in range(3)] == [9998, 13_332, 16_665]  # 3333 + 1/3 each
    assert turns.v == 13_332


def test_a_turn_below_v_is_lifted_and_loses_its_rest() -> None:
    turns = Turns.restore({"a": 3000}, 50_000, [("a", 40_000, 2999)])
    assert turns.charge("a") == 53_333
    assert (turns.v, turns.rest["a"]) == (50_000, 1000)


@given(weights, st.integers(0, 10**7), st.integers(-(10**7), 10**7), st.data(), st.integers(1, 300))
def test_n_charges_at_once_are_n_single_charges(
    w: int, v: int, ahead: int, data: st.DataObject, n: int
) -> None:
    rest = data.draw(st.integers(0, w - 1))
    once = Turns.restore({"a": w}, v, [("a", v + ahead, rest)])
    each = Turns.restore({"a": w}, v, [("a", v + ahead, rest)])
    given_back = once.charge("a", n)
    for _ in range(n):
        each.charge("a")
    assert (once.v, once.turn, once.rest) == (each.v, each.turn, each.rest)
    assert given_back == once.turn["a"]


@given(weights, st.integers(1, 2000))
def test_no_rounding_adds_up(w: int, n: int) -> None:
    turns = table(a=w)
    start = turns.appear("a")
    turns.charge("a", n)
    assert (turns.turn["a"] - start) * w + turns.rest["a"] == n * U


@given(weights, weights, st.integers(-(10**6), 10**6), st.integers(0, 9))
def test_a_new_weight_scales_what_is_left_to_wait_and_never_beyond_a_stride(
    old: int, new: int, ahead: int, rest: int
) -> None:
    ahead = min(ahead, U // old)
    weight = {"a": old}
    turns = Turns.restore(weight, 10**9, [("a", 10**9 + ahead, rest)])
    Tables(weight, turns).reweigh("a", new)
    assert weight == {"a": new} and turns.rest["a"] == 0
    if ahead <= 0:
        assert turns.turn["a"] == 10**9 + ahead
    else:
        assert turns.turn["a"] - 10**9 == min(ahead * old // new, U // new)
    turns.charge("a")
    assert (turns.turn["a"] - turns.v - 1) * new < U


def test_a_rest_of_the_old_weight_does_not_outlive_it() -> None:
    # Kept, 99,990 parts of the old weight would be 9,999 units of the new one.
    weight = {"a": 99_991}
    turns = Turns.restore(weight, 500, [("a", 500, 99_990)])
    Tables(weight, turns).reweigh("a", 10)
    assert turns.charge("a") == 500 + 1_000_000


# -- forgetting


def idle_table(turn: int, rest: int = 0, v: int = 100_000, **weight: int) -> Turns:
    turns = Turns.restore(dict(weight), v, [("a", turn, rest)])
    turns.idle("a")
    return turns


def test_an_idle_tenant_is_forgotten_as_soon_as_it_would_start_at_the_same_turn() -> None:
    turns = idle_table(110_000)
    assert turns.forget_due() == [] and not turns.may_forget("a")
    turns.v += 1
    assert turns.may_forget("a") and turns.forget_due() == ["a"]
    assert turns.turn == {} and turns.rest == {} and turns.take_moved() == {"a"}
    assert turns.appear("a") == 110_000


def test_a_rest_is_kept_until_a_fresh_start_is_later() -> None:
    turns = idle_table(103_333, rest=1000, v=100_001, a=3000)
    assert turns.v + U // 3000 - 1 == 103_333  # equal: remembered, it would keep its rest
    assert not turns.may_forget("a") and turns.forget_due() == []
    turns.v += 1
    assert turns.forget_due() == ["a"]


def test_a_busy_tenant_is_not_forgotten() -> None:
    turns = idle_table(90_000)
    turns.busy("a")
    assert turns.forget_due() == []
    turns.idle("a")
    assert turns.forget_due() == ["a"]


def test_a_tenant_that_was_never_told_idle_is_kept() -> None:
    turns = Turns.restore({}, 10**6, [("a", 0, 0)])
    assert turns.forget_due() == [] and "a" in turns.turn


def test_an_idle_tenant_with_a_new_weight_is_forgotten_as_soon_as_the_new_one_allows() -> None:
    for old_w, turn, rest, new_w in (
        (1000, 10_000, 0, 10),
        (1000, 10_000, 0, 100_000),
        (3000, 3334, 1, 1000),
    ):
        weight = {"a": old_w}
        turns = Turns.restore(weight, 0, [("a", turn, rest)])
        turns.idle("a")
        Tables(weight, turns).reweigh("a", new_w)
        while not turns.forget_due():
            assert not turns.may_forget("a")
            turns.v += 1
        assert turns.appear("a") == turns.v + U // new_w - 1


def test_a_tenant_that_a_new_weight_made_forget_is_named_unless_it_came_back() -> None:
    for back in (False, True):
        weight = {"a": 1000}
        turns = Turns.restore(weight, 100_000, [("a", 90_000, 0)])
        turns.idle("a")
        Tables(weight, turns).reweigh("a", 2000)
        assert turns.turn == {} and turns.moved == {"a"}
        if back:
            turns.busy("a")
            turns.appear("a")
        assert turns.forget_due() == ([] if back else ["a"])
        assert turns.forget_due() == []


def test_a_tenant_that_comes_and_goes_while_v_stands_leaves_one_entry() -> None:
    turns = idle_table(110_000)
    for _ in range(1000):
        turns.busy("a")
        turns.idle("a")
    assert len(turns._heap) == 1


@given(weights, weights, st.integers(-200, 200), st.integers(0, 9), st.integers(0, 50))
def test_forgotten_or_remembered_a_tenant_starts_at_the_same_number(
    w: int, new_w: int, below: int, rest: int, later: int
) -> None:
    v = 10**7
    starts = []
    for forget in (True, False):
        weight = {"a": w}
        turns = Turns.restore(weight, v, [("a", v + U // w - 1 - below, rest)])
        turns.idle("a")
        if forget:
            turns.forget_due()
        Tables(weight, turns).reweigh("a", new_w)
        turns.v += later
        turns.busy("a")
        turns.appear("a")
        starts.append((turns.turn["a"], turns.rest["a"]))
    assert starts[0] == starts[1]


# -- numbers that grow, and the store


def test_rebase_lowers_v_and_all_turns_alike() -> None:
    turns = Turns.restore(
        {}, 10**18, [("a", 10**18 + 9, 1), ("b", 10**18 - 5, 2), ("idle", 10**18 + 10_000, 0)]
    )
    turns.idle("idle")
    era = turns.era
    turns.rebase()
    assert (turns.v, turns.turn) == (0, {"a": 9, "b": -5, "idle": 10_000})
    assert turns.rest == {"a": 1, "b": 2, "idle": 0}
    assert turns.era == era + 1 and turns.take_moved() == {"a", "b", "idle"}
    assert turns.forget_due() == []
    turns.v = 1
    assert turns.forget_due() == ["idle"]


def test_rebase_is_due_when_v_passes_its_bound() -> None:
    turns = Turns.restore({}, limits.V_REBASE_MAX, [("a", limits.V_REBASE_MAX, 0)])
    assert not turns.rebase_due()
    turns.charge("a", 2)
    assert turns.rebase_due() and turns.v == 0 and turns.turn == {"a": 10_000}


def test_moved_names_exactly_what_changed() -> None:
    turns = Turns.restore({}, 0, [("a", 9999, 0), ("b", 19_998, 0), ("c", 9999, 0)])
    assert turns.take_moved() == set()
    turns.charge("a")
    turns.appear("b")  # nothing new
    assert turns.take_moved() == {"a"}
    assert turns.take_moved() == set()
    turns.appear("d")
    turns.forget("c")
    turns.forget("nobody")
    assert turns.take_moved() == {"c", "d"}


def test_a_table_made_late_starts_level() -> None:
    tables = Tables({"b": 2000})
    tables.plain.appear("a")
    tables.plain.charge("a", 1000)
    late = tables.table((("mode", "preview"),), ["a", "b"])
    assert late.v == 0 and late.turn == {"a": 9999, "b": 4999} and late.rest == {"a": 0, "b": 0}
    assert tables.table((("mode", "preview"),), ["x"]) is late
    assert tables.table() is tables.plain


def test_a_dropped_table_starts_anew_and_the_plain_one_stays() -> None:
    tables = Tables({})
    late = tables.table((("mode", "x"),), ["a"])
    tables.drop((("mode", "x"),))
    tables.drop(())
    assert tables.table((("mode", "x"),)) is not late and tables.table() is tables.plain


@pytest.mark.parametrize("known", [True, False])
def test_tables_tell_every_table(known: bool) -> None:
    tables = Tables({})
    late = tables.table((("mode", "x"),), ["a"] if known else [])
    tables.plain.appear("a")
    tables.reweigh("a", 100_000)
    assert tables.plain.turn == {"a": 99} and late.turn == ({"a": 99} if known else {})
    tables.idle("a")
    tables.busy("a")
    assert tables.forget_due() == []
    tables.idle("a")
    assert tables.forget_due() == ["a"] and late.turn == {}
