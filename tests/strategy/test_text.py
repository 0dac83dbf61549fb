"""The text form of strategies: it comes back, and an error points at its place."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.lists import from_json, to_json
from fairway.strategy.terms import (
    BLOCKS,
    Base,
    CustomPriority,
    Fair,
    MaxSimultaneous,
    NewestFirst,
    OldestFirst,
    OrElse,
    Random,
    SelectOnly,
    Strategy,
)
from fairway.strategy.text import as_strategy, canonical, parse
from fairway.strategy.tiers import Tier
from tests.strategy.growing import strategies

BASES: list[type[Base]] = [Fair, Random, OldestFirst, NewestFirst, CustomPriority]


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


KNOWN = (
    "known are CustomPriority, Fair, MaxSimultaneous, NewestFirst, OldestFirst, OrElse, PreferDistinct, Random,"
    " SelectOnly"
)
SELECT = "SelectOnly takes 3 arguments: SelectOnly(key, value, inner)"
NO_LITERAL = "should stand here: a text in double quotes or a whole number"


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
        ("MaxSimultaneus", f"unknown block 'MaxSimultaneus'; {KNOWN}", 0),
        ("SelectOnly", SELECT, 10),
        ("SelectOnly()", SELECT, 11),
        ('SelectOnly("a")', SELECT, 14),
        ('SelectOnly("a", 1)', SELECT, 17),
        ('SelectOnly("a", 1, Fair, Fair)', SELECT, 23),
        ('SelectOnly("a" 1, Fair)', "a ',' is missing here", 15),
        ('SelectOnly("a", 1 Fair)', "a ',' is missing here", 18),
        ('SelectOnly("a", 1, Fair', "a ')' is missing here", 23),
        ('SelectOnly("a", 1, Fair Fair)', "a ')' is missing here", 24),
        ('SelectOnly("a", 1,', f"a strategy is missing here; {KNOWN}", 18),
        ('SelectOnly("a", 1, "Fair")', f"unexpected '\"Fair\"' where a block should begin; {KNOWN}", 19),
        ("SelectOnly(a, 1, Fair)", f"key {NO_LITERAL}", 11),
        ("SelectOnly('a', 1, Fair)", f"key {NO_LITERAL}", 11),
        ('SelectOnly("a, 1, Fair)', "the text of key has no end", 11),
        ('SelectOnly("a", "\\x", Fair)', "value has a bad escape: texts are written as in JSON", 16),
        ('SelectOnly("a", 1.5, Fair)', f"value {NO_LITERAL}", 16),
        ('SelectOnly("a", true, Fair)', f"value {NO_LITERAL}", 16),
        ('SelectOnly("a", 1, SelectOnly("b", 1, Fare))', f"unknown block 'Fare'; {KNOWN}", 38),
        (
            'SelectOnly("tenant", 1, Fair)',
            "value of SelectOnly must be a text, for a tenant is one, not 1",
            21,
        ),
        ('MaxSimultaneous("a", 10%, Fair)', 'max stands in double quotes if it is a share: "10%"', 21),
        ("OrElse(Fair)", "OrElse takes 2 arguments: OrElse(first, fallback)", 11),
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


PIECES = [*BLOCKS, *"()(),,,", '"a"', '"1"', "1", "0", "-1", '"10%"', "10%", " ", "\n", '"', "1.5", "\\"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_is_a_strategy_or_a_bad_strategy(text: str) -> None:
    try:
        strategy = parse(text)
    except BadStrategy as error:
        assert str(error).count("\n") == 2
    else:
        assert parse(str(strategy)) == strategy


@pytest.mark.parametrize("other", [None, 3, b"Fair", object, ["Fair"], Base, Strategy, SelectOnly])
def test_anything_else_is_a_bad_strategy(other: object) -> None:
    with pytest.raises(BadStrategy):
        as_strategy(other)


# -- what is written comes back


@given(strategies())
def test_every_strategy_comes_back_from_its_text_and_from_json(strategy: Strategy) -> None:
    text = str(strategy)
    again = parse(text)
    assert again == strategy and hash(again) == hash(strategy) and str(again) == text
    assert again.tiers() == strategy.tiers() and canonical(text) == text
    assert parse(text.replace("(", " (\n").replace(", ", "\t,")) == strategy
    assert from_json(to_json(strategy)) == strategy
    assert from_json(json.loads(json.dumps(to_json(strategy)))) == strategy
    assert from_json(text) == strategy
    assert pickle.loads(pickle.dumps(strategy)) == strategy


@given(
    key=st.text(min_size=1, max_size=20),
    value=st.one_of(st.text(max_size=20), st.integers(-(2**63), 2**63 - 1)),
)
def test_any_key_and_value_come_back(key: str, value: str | int) -> None:
    if key == "tenant":
        value = str(value)
    try:
        strategy = SelectOnly(key, value, Fair)
    except BadStrategy:
        assert any("\ud800" <= c <= "\udfff" for c in key + str(value))  # no text that a store could keep
        return
    again = parse(str(strategy))
    assert again == strategy and type(again.value) is type(value)


def test_the_text_1_and_the_number_1_differ() -> None:
    text, number = SelectOnly("a", "1", Fair), SelectOnly("a", 1, Fair)
    assert text != number and str(text) != str(number)
    assert text.tiers() != number.tiers()


def test_the_form_in_json_is_lists() -> None:
    strategy = OrElse(SelectOnly("mode", "preview", Random), MaxSimultaneous("tenant", "10%", Fair))
    assert to_json(strategy) == [
        "OrElse",
        ["SelectOnly", "mode", "preview", "Random"],
        ["MaxSimultaneous", "tenant", "10%", "Fair"],
    ]
    assert to_json(Fair()) == "Fair"
    assert from_json(["OrElse", 'SelectOnly("mode", "preview", Random)', ["Fair"]]) == OrElse(
        SelectOnly("mode", "preview", Random), Fair
    )


@pytest.mark.parametrize(
    ("given", "path", "why"),
    [
        (3, "", "a strategy is a name or a list"),
        ([], "", "a strategy is a name or a list"),
        ({"Fair": []}, "", "a strategy is a name or a list"),
        (["Fare"], "[0]", "unknown block 'Fare'"),
        ([["Fair"]], "[0]", "unknown block"),
        (["Fair", 1], "", "Fair takes no argument, not 1"),
        (["SelectOnly", "a", 1], "", "SelectOnly takes 3 arguments: SelectOnly(key, value, inner), not 2"),
        (["SelectOnly", "a", 1.5, "Fair"], "[2]", "value of SelectOnly must be a text or a whole number"),
        (["SelectOnly", "a", True, "Fair"], "[2]", "not True"),
        (["SelectOnly", "a", None, "Fair"], "[2]", "not None"),
        (["OrElse", "Fair", ["PreferDistinct", "a", 0, "Fair"]], "[2][2]", "max of PreferDistinct"),
        (["OrElse", "Fair", "Fare"], "[2]", "unknown block 'Fare'"),
    ],
)
def test_an_error_in_json_names_the_place(given: object, path: str, why: str) -> None:
    with pytest.raises(BadStrategy) as caught:
        from_json(given)
    assert caught.value.details["path"] == path
    assert str(caught.value).startswith(f"at {path}: " if path else why[:9]) and why in str(caught.value)


def test_a_list_without_bottom_is_refused() -> None:
    deep: object = "Fair"
    for _ in range(100_000):
        deep = ["OrElse", deep, "Fair"]
    with pytest.raises(BadStrategy, match="16 levels"):
        from_json(deep)
    while isinstance(deep, list):  # its end must not recurse either
        deep = deep.pop(1)
