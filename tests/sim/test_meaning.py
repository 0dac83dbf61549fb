"""What a strategy means to the checker, and to the queue: two readings, one meaning."""

from __future__ import annotations

import pytest

from fairway.strategy.text import parse
from fairway.testing.meaning import Limit, Step, steps_of
from fairway.testing.profile import COMPOSED, PLAIN

DEEP = (
    'MaxSimultaneous("tenant", 9, SelectOnly("mode", "full", MaxSimultaneous("tenant", 4, Fair)))',
    'MaxSimultaneous("tenant", "50%", PreferDistinct("tenant", 3, OrElse(SelectOnly("n", 1, Random), Fair)))',
)


def test_a_limit_stands_in_every_step_and_the_smaller_counts() -> None:
    assert steps_of(DEEP[0]) == [Step((("mode", "full"),), {"tenant": Limit(4)}, "Fair")]
    shared, both = {"tenant": Limit(None, 50)}, {"tenant": Limit(3, 50)}
    assert steps_of(DEEP[1]) == [
        Step((("n", 1),), both, "Random"),
        Step((), both, "Fair"),
        Step((("n", 1),), shared, "Random"),
        Step((), shared, "Fair"),
    ]


@pytest.mark.parametrize("text", [*filter(None, PLAIN), *COMPOSED, *DEEP])
def test_the_queue_means_the_same(text: str) -> None:
    told = [(set(step.selection), step.limits, step.order) for step in steps_of(text)]
    tiers = [
        (
            set(tier.selection),
            {key: Limit(cap.chunks, cap.percent) for key, cap in tier.limits},
            tier.base.__name__,
        )
        for tier in parse(text).tiers()
    ]
    assert told == tiers
