"""Levels: where a run is placed, and how far the ack level may move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.errors import TooLarge
from fairway.fair.levels import START, Acked, Forecast, Level, after
from fairway.fair.turns import Turns
from fairway.fair.weights import U


@given(st.integers(10, 100_000), st.integers(0, 10**12), st.integers(0, 9), st.integers(0, 200))
def test_after_n_chunks_is_where_n_charges_lead(w: int, turn: int, rest: int, n: int) -> None:
    turns = Turns.restore({"a": w}, 0, [("a", turn, rest)])
    for _ in range(n):
        turns.charge("a")
    assert after(turn, rest, n, w) == (turns.turn["a"], turns.rest["a"])


def test_a_run_without_backlog_is_placed_at_its_turn() -> None:
    forecast = Forecast({})
    assert forecast.place("a", 5, 9999, 0, False, 0) == 9999
    assert forecast.place("a", 5, 123_456, 0, False, 0) == 123_456  # the earlier runs have been handed out


def test_a_run_behind_a_backlog_is_placed_its_chunks_later() -> None:
    forecast = Forecast({"a": 3000})
    assert forecast.place("a", 5, 3332, 0, False, 0) == 3332
    assert forecast.place("a", 1, 1, 1, True, 0) == 3332 + 5 * U // 3000
    assert forecast.place("a", 1, 1, 1, True, 0) == 3332 + 6 * U // 3000
    assert forecast.last("a") == (3332 + 20_000, 0, 1)


def test_the_forecast_is_made_at_the_present_weight() -> None:
    weight = {"a": 1000}
    forecast = Forecast(weight)
    forecast.place("a", 10, 9999, 0, False, 0)
    weight["a"] = 10_000
    assert forecast.place("a", 1, 0, 0, True, 0) == 9999 + 10 * 1000


def test_a_run_is_never_placed_below_the_ack_level() -> None:
    forecast = Forecast({"a": 3000})
    assert forecast.place("a", 1, 100, 2999, False, 5000) == 5000
    assert forecast.place("a", 1, 0, 0, True, 5000) == 8333  # the rest was dropped with the old place
    assert forecast.place("a", 1, 0, 0, True, 8333) == 5000 + 2 * U // 3000


def test_a_level_above_the_bound_is_refused_before_anything_changes() -> None:
    forecast = Forecast({"a": 10})
    assert forecast.place("a", 2**31 - 1, 5, 0, False, limits.PASS_MAX) == limits.PASS_MAX
    kept = forecast.last("a")
    with pytest.raises(TooLarge, match="'a'"):
        forecast.place("a", 1, 0, 0, True, 0)
    assert forecast.last("a") == kept
    with pytest.raises(TooLarge):
        forecast.place("b", 1, limits.PASS_MAX + 1, 0, False, 0)
    assert forecast.last("b") is None


def test_a_restored_forecast_goes_on_where_it_was() -> None:
    one, other = Forecast({"a": 3000}), Forecast({"a": 3000})
    one.place("a", 7, 3332, 0, False, 0)
    one.place("a", 4, 0, 0, True, 0)
    last = one.last("a")
    assert last is not None
    other.restore("a", *last)
    assert one.place("a", 1, 0, 0, True, 0) == other.place("a", 1, 0, 0, True, 0)


def test_a_forgotten_tenant_is_placed_at_its_turn_again() -> None:
    forecast = Forecast({})
    forecast.place("a", 7, 9999, 0, False, 0)
    forecast.forget("a")
    forecast.forget("nobody")
    assert forecast.ahead("a") is None
    assert forecast.place("a", 1, 50, 0, True, 0) == 50  # with nothing known its turn is the best guess


# -- the ack level


def test_the_ack_level_moves_up_to_the_lowest_unfinished_level() -> None:
    acked = Acked()
    levels = [(10, 1), (10, 2), (20, 3), (5, 4)]
    for level in levels:
        acked.placed(level)
    acked.finished((10, 1))
    assert acked.advance() == START
    acked.finished((5, 4))
    assert acked.advance() == (10, 1)
    acked.finished((20, 3))
    assert acked.advance() == (10, 1) and acked.unfinished == 1
    acked.finished((10, 2))
    assert acked.advance() == (20, 3) and acked.unfinished == 0


def test_the_ack_level_stays_below_a_pin() -> None:
    # A = 10, loaded 11, 21, 31; the writer picks 13, 15, 25; 11 and 21 finish.
    acked = Acked((10, 0))
    for level in ((11, 1), (21, 2), (31, 3)):
        acked.placed(level)
    for level in ((13, 4), (15, 5), (25, 6)):
        acked.pin(level)
    acked.finished((11, 1))
    acked.finished((21, 2))
    assert acked.advance() == (11, 1)
    for level in ((13, 4), (15, 5), (25, 6)):
        acked.placed(level)
        acked.unpin(level)
    assert acked.advance() == (11, 1)
    acked.finished((13, 4))
    acked.finished((15, 5))
    assert acked.advance() == (21, 2)


def test_a_level_pinned_twice_is_free_when_both_are_gone() -> None:
    acked = Acked()
    acked.placed((5, 1))
    acked.finished((5, 1))
    acked.pin((5, 1))
    acked.pin((5, 1))
    acked.unpin((5, 1))
    assert acked.advance() == START
    acked.unpin((5, 1))
    assert acked.advance() == (5, 1)


def test_a_row_below_the_ack_level_is_an_error() -> None:
    acked = Acked((10, 5))
    for call in (acked.placed, acked.finished, acked.pin):
        with pytest.raises(AssertionError):
            call((10, 5))


def test_a_new_era_starts_when_nothing_is_left() -> None:
    acked = Acked()
    acked.placed((10, 1))
    with pytest.raises(AssertionError):
        acked.reset()
    acked.finished((10, 1))
    acked.advance()
    acked.pin((20, 2))
    with pytest.raises(AssertionError):
        acked.reset()
    acked.unpin((20, 2))
    acked.reset()
    assert acked.ack == START
    acked.placed((1, 3))
    assert acked.advance() == START


def test_a_new_era_does_not_remember_what_the_old_one_finished() -> None:
    acked = Acked()
    acked.placed((10, 1))
    acked.finished((10, 1))
    acked.reset()  # before advance
    acked.placed((10, 1))
    assert acked.advance() == START
    acked.finished((10, 1))
    assert acked.advance() == (10, 1)


@given(
    st.lists(st.tuples(st.sampled_from(["place", "finish", "pin", "unpin"]), st.integers(0, 30)), max_size=80)
)
def test_the_ack_level_is_the_last_finished_one_below_everything_open(steps: list[tuple[str, int]]) -> None:
    acked, ack = Acked(), START
    open_, done, pins = set[Level](), set[Level](), list[Level]()
    for id, (what, x) in enumerate(steps, 1):
        if what == "place":
            level = (ack[0] + x, id)
            acked.placed(level)
            open_.add(level)
        elif what == "finish" and open_:
            level = sorted(open_)[x % len(open_)]
            acked.finished(level)
            open_.remove(level)
            done.add(level)
        elif what == "pin":
            level = (ack[0] + x, id)
            acked.pin(level)
            pins.append(level)
        elif what == "unpin" and pins:
            acked.unpin(pins.pop(x % len(pins)))
        ack = max([ack, *(level for level in done if all(level < other for other in [*open_, *pins]))])
        assert acked.advance() == ack
        assert acked.unfinished == len(open_)
        assert acked._done == {level for level in done if level > ack}  # what A passed is not kept
