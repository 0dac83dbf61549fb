"""What a strategy means to the checker: its steps, each with what it selects and limits.

Guards: it is read from the blocks, not from the tiers that the queue makes of them, so what the queue takes for the
meaning of a strategy is held against something else.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.strategy.terms import MaxSimultaneous, OrElse, PreferDistinct, SelectOnly, Strategy
from fairway.strategy.text import parse
from fairway.strategy.tiers import Selection


class Limit(NamedTuple):
    """How many chunks of one value may be in flight, as far as it is a number; `share`: a share counts as well."""

    chunks: int | None
    share: bool = False


class Step(NamedTuple):
    """One step of a strategy."""

    selection: Selection
    limits: dict[str, Limit]  # by key


def steps_of(text: str) -> list[Step]:
    """The steps of a strategy in their order."""
    return _steps(parse(text))


def _steps(block: object) -> list[Step]:
    match block:
        case SelectOnly(key=key, value=value, inner=inner):
            return [step._replace(selection=((key, value), *step.selection)) for step in _steps(inner)]
        case MaxSimultaneous(key=key, max=most, inner=inner):
            limit = Limit(most) if isinstance(most, int) else Limit(None, share=True)
            return [_limited(step, key, limit) for step in _steps(inner)]
        case PreferDistinct(key=key, max=most, inner=inner):
            return [*(_limited(step, key, Limit(most)) for step in _steps(inner)), *_steps(inner)]
        case OrElse(first=first, fallback=fallback):
            return [*_steps(first), *_steps(fallback)]
        case _:
            assert isinstance(block, Strategy)
            return [Step((), {})]


def _limited(step: Step, key: str, limit: Limit) -> Step:
    """The step with one more limit; of two on one key the smaller counts."""
    other = step.limits.get(key, limit)
    numbers = [one.chunks for one in (limit, other) if one.chunks is not None]
    both = Limit(min(numbers, default=None), limit.share or other.share)
    return step._replace(limits={**step.limits, key: both})
