"""What a strategy means: its tiers; and what is refused because it means nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy.terms import (
    Base,
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
from fairway.strategy.text import parse
from fairway.strategy.tiers import Cap, Tier
from tests.strategy.growing import strategies
from tests.strategy.naive_plans import passes


def tier(base: type[Base], selection: tuple = (), **caps: int | Cap) -> Tier:
    limits = tuple((key, cap if isinstance(cap, Cap) else Cap(cap)) for key, cap in sorted(caps.items()))
    return Tier(base, selection, limits)


@pytest.mark.parametrize(
    ("strategy", "means"),
    [
        (SelectOnly("m", "p", Fair), [tier(Fair, (("m", "p"),))]),
        (MaxSimultaneous("t", 5, Random), [tier(Random, t=5)]),
        (PreferDistinct("t", 1, OldestFirst), [tier(OldestFirst, t=1), tier(OldestFirst)]),
        (OrElse(Fair, Random), [tier(Fair), tier(Random)]),
        (OrElse(Fair, Fair), [tier(Fair)]),
        (
            PreferDistinct("o", 1, PreferDistinct("i", 2, Fair)),  # the outer key first
            [tier(Fair, o=1, i=2), tier(Fair, o=1), tier(Fair, i=2), tier(Fair)],
        ),
        (
            PreferDistinct("t", 1, OrElse(SelectOnly("m", 1, Fair), NewestFirst)),
            [
                tier(Fair, (("m", 1),), t=1),
                tier(NewestFirst, t=1),
                tier(Fair, (("m", 1),)),
                tier(NewestFirst),
            ],
        ),
        (MaxSimultaneous("t", 5, MaxSimultaneous("t", 3, Fair)), [tier(Fair, t=3)]),
        (MaxSimultaneous("t", 3, MaxSimultaneous("t", 5, Fair)), [tier(Fair, t=3)]),
        (PreferDistinct("t", 5, MaxSimultaneous("t", 3, Fair)), [tier(Fair, t=3)]),
        (PreferDistinct("t", 2, MaxSimultaneous("t", 3, Fair)), [tier(Fair, t=2), tier(Fair, t=3)]),
        (
            MaxSimultaneous("t", "10%", MaxSimultaneous("t", 3, MaxSimultaneous("t", "20%", Fair))),
            [tier(Fair, t=Cap(3, 10))],
        ),
        (
            SelectOnly("b", 2, SelectOnly("a", "1", SelectOnly("a", 1, SelectOnly("b", 2, Fair)))),
            [tier(Fair, (("a", 1), ("a", "1"), ("b", 2)))],
        ),
    ],
)
def test_a_strategy_means_its_tiers(strategy: Strategy, means: list[Tier]) -> None:
    assert list(strategy.tiers()) == means


@given(strategies())
def test_tiers_are_those_of_the_definition(strategy: Strategy) -> None:
    assert [(t.selection, t.limits, t.base) for t in strategy.tiers()] == passes(strategy)


@pytest.mark.parametrize(
    ("cap", "consumers", "most"),
    [
        (Cap(5), 1000, 5),
        (Cap(percent=10), 1, 1),
        (Cap(percent=10), 19, 1),
        (Cap(percent=10), 20, 2),
        (Cap(percent=33), 100, 33),
        (Cap(percent=100), 0, 1),
        (Cap(3, 10), 100, 3),
        (Cap(30, 10), 100, 10),
    ],
)
def test_a_share_is_of_the_consumers_and_at_least_one(cap: Cap, consumers: int, most: int) -> None:
    assert cap.at(consumers) == most


def nested(levels: int) -> Strategy:
    strategy: Strategy = Fair()
    for _ in range(levels - 1):
        strategy = SelectOnly("a", 1, strategy)
    return strategy


def prefer(n: int) -> Strategy:
    strategy: Strategy = Fair()
    for i in range(n):
        strategy = PreferDistinct(f"k{i}", 1, strategy)
    return strategy


LONG = "k" * (limits.METADATA_KEY_BYTES_MAX + 1)
COUNT = "a whole number from 1 to 2147483647"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: PreferDistinct("a", 0, Fair), f"max of PreferDistinct must be {COUNT}, not 0"),
        (lambda: PreferDistinct("a", True, Fair), "not True"),
        (lambda: PreferDistinct("a", "10%", Fair), f"max of PreferDistinct must be {COUNT}, not '10%'"),
        (lambda: MaxSimultaneous("a", 0, Fair), "not 0"),
        (lambda: MaxSimultaneous("a", -1, Fair), "not -1"),
        (lambda: MaxSimultaneous("a", 1.0, Fair), "not 1.0"),
        (lambda: MaxSimultaneous("a", 2**31, Fair), "not 2147483648"),
        (lambda: MaxSimultaneous("a", "101%", Fair), 'from "1%" to "100%", not \'101%\''),
        (lambda: MaxSimultaneous("a", "0%", Fair), "not '0%'"),
        (lambda: MaxSimultaneous("a", "5", Fair), "not '5'"),
        (lambda: MaxSimultaneous("a", "1.5%", Fair), "not '1.5%'"),
        (lambda: SelectOnly(LONG, 1, Fair), "key of SelectOnly must be a text of 1 to 128 bytes, not 'kkk"),
        (lambda: SelectOnly("é" * 65, 1, Fair), "a text of 1 to 128 bytes"),
        (lambda: SelectOnly("", 1, Fair), "key of SelectOnly must be a text of 1 to 128 bytes, not ''"),
        (lambda: SelectOnly(1, 1, Fair), "key of SelectOnly must be a text"),
        (lambda: SelectOnly("a", True, Fair), "a text or a whole number of 64 bits, not True"),
        (lambda: SelectOnly("a", 1.0, Fair), "a text or a whole number of 64 bits, not 1.0"),
        (lambda: SelectOnly("a", None, Fair), "not None"),
        (lambda: SelectOnly("a", 2**63, Fair), "a text or a whole number of 64 bits"),
        (lambda: SelectOnly("a", -(2**63) - 1, Fair), "a text or a whole number of 64 bits"),
        (lambda: SelectOnly("a", 1 << 20_000, Fair), "not such a long number"),
        (lambda: SelectOnly("a", "x" * 513, Fair), "value of SelectOnly must be a text of at most 512 bytes"),
        (lambda: SelectOnly("a", "\ud800", Fair), "can be written as UTF-8"),
        (
            lambda: SelectOnly("tenant", 5, Fair),
            "value of SelectOnly must be a text, for a tenant is one, not 5",
        ),
        (lambda: SelectOnly("a", 1, "Fair"), "inner of SelectOnly must be a block such as Fair"),
        (lambda: SelectOnly("a", 1, Base), "inner of SelectOnly must be a block"),
        (lambda: OrElse(Fair, OrElse), "fallback of OrElse must be a block"),
        (lambda: nested(17), "SelectOnly is at the top of 17 blocks inside one another; 16 are the most"),
        (lambda: prefer(7), "PreferDistinct would make a strategy of 128 steps; 64 are the most, and each"),
        (lambda: OrElse(prefer(6), Random), "OrElse would make a strategy of 65 steps; 64 are the most"),
    ],
)
def test_nonsense_is_refused_with_a_clear_error(make: Callable[[], object], why: str) -> None:
    with pytest.raises(BadStrategy) as caught:
        make()
    assert why in str(caught.value) and len(str(caught.value)) < 250


def test_the_largest_that_is_allowed_is_allowed() -> None:
    assert nested(16).levels() == 16
    assert len(prefer(6).tiers()) == 64
    assert SelectOnly(LONG[1:], "x" * 512, Fair).levels() == 2
    SelectOnly("a", 2**63 - 1, SelectOnly("a", -(2**63), Fair))
    MaxSimultaneous("a", "100%", MaxSimultaneous("b", "1%", Fair))


def test_a_text_that_is_too_deep_or_too_wide_is_refused_at_its_place() -> None:
    for text, why, at in (
        ("OrElse(" * 500, "OrElse is inside 16 blocks", 16 * 7),
        (f"OrElse({prefer(6)}, Random)", "OrElse would make a strategy of 65 steps", 0),
        (f'OrElse(Random, PreferDistinct("x", 1, {prefer(6)}))', "of 128 steps", 15),
    ):
        with pytest.raises(BadStrategy, match=why) as caught:
            parse(text)
        assert caught.value.details["at"] == at


def test_a_strategy_shared_many_times_is_quickly_understood() -> None:
    strategy: Strategy = PreferDistinct("a", 1, Fair)
    for _ in range(14):
        strategy = OrElse(strategy, strategy)
    assert len(strategy.tiers()) == 2 and strategy.levels() == 16
