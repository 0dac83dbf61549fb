"""The text form of strategies: it comes back, and an error points at its place."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.terms import BLOCKS, Base, Fair, NewestFirst, OldestFirst, Random, Tier
from fairway.strategy.text import as_strategy, canonical, parse

BASES: list[type[Base]] = [Fair, Random, OldestFirst, NewestFirst]


@pytest.mark.parametrize("block", BASES)
def test_a_block_a_value_and_a_text_mean_the_same(block: type[Base]) -> None:
    name = block.__name__
    assert str(block()) == name == canonical(block) == canonical(block()) == canonical(f" {name}\n(\t) ")
    assert parse(name) == parse(f"{name}()") == block() == as_strategy(block)
    assert block().tiers() == (Tier(block),)
    assert BLOCKS[name] is block


def test_strategies_are_frozen_values() -> None:
    assert len({Fair(), Fair(), Random(), OldestFirst(), NewestFirst()}) == 4
    assert repr(Fair()) == "Fair()"
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        Fair().weight = 3  # type: ignore[attr-defined]


KNOWN = "known are Fair, NewestFirst, OldestFirst, Random"


@pytest.mark.parametrize(
    ("text", "why", "caret_at"),
    [
        ("Fare", f"unknown block 'Fare'; {KNOWN}", 0),
        ("  fair", f"unknown block 'fair'; {KNOWN}", 2),
        ("", f"a strategy is missing here; {KNOWN}", 0),
        ("   ", f"a strategy is missing here; {KNOWN}", 3),
        ("Fair(", "a ')' is missing here", 5),
        ("Fair ( ", "a ')' is missing here", 7),
        ("Fair(3)", "Fair takes no argument", 5),
        ("Fair(Random)", "Fair takes no argument", 5),
        ("Fair)", "unexpected ')' after the end of the strategy", 4),
        ("Fair() Random", "unexpected 'Random' after the end of the strategy", 7),
        ("Fair()()", "unexpected '(' after the end of the strategy", 6),
        ("(Fair)", f"unexpected '(' where a block should begin; {KNOWN}", 0),
        ("Fair\n!", "unexpected '!' after the end of the strategy", 5),
        ("MaxSimultaneous", f"unknown block 'MaxSimultaneous'; {KNOWN}", 0),
    ],
)
def test_an_error_says_why_and_points_at_the_place(text: str, why: str, caret_at: int) -> None:
    with pytest.raises(BadStrategy) as caught:
        parse(text)
    said, shown, caret = str(caught.value).split("\n")
    assert said == why
    assert shown == "  " + text.replace("\n", " ")
    assert caret == "  " + " " * caret_at + "^"
    assert caught.value.details["at"] == caret_at


def test_a_long_text_is_shown_around_the_place() -> None:
    with pytest.raises(BadStrategy) as caught:
        parse("Fair" + " " * 3000 + "?" + " " * 500)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 120 and shown[len(caret) - 1] == "?"


def test_a_text_without_end_is_refused() -> None:
    assert parse("Fair".ljust(limits.STRATEGY_CHARS_MAX)) == Fair()
    with pytest.raises(BadStrategy, match="at most 4096 characters"):
        parse("Fair".ljust(limits.STRATEGY_CHARS_MAX + 1))


@given(st.one_of(st.text(), st.text("FairRandom()\n\t ,", max_size=12)))
def test_any_text_is_a_strategy_or_a_bad_strategy(text: str) -> None:
    try:
        strategy = parse(text)
    except BadStrategy as error:
        assert str(error).count("\n") == 2
    else:
        assert parse(str(strategy)) == strategy


@pytest.mark.parametrize("other", [None, 3, b"Fair", object, ["Fair"], Base])
def test_anything_else_is_a_bad_strategy(other: object) -> None:
    with pytest.raises(BadStrategy):
        as_strategy(other)
