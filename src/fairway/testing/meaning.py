"""What a strategy means to the checker: its steps, each with what it selects and limits.

Guards: it is read from the blocks, not from the tiers that the queue makes of them, so what the queue takes for the
meaning of a strategy is held against something else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fairway.strategy.terms import MaxSimultaneous, OrElse, PreferDistinct, SelectOnly, Strategy
from fairway.strategy.text import parse
from fairway.strategy.tiers import Selection


class Limit(NamedTuple):
    """How many chunks of one value may be in flight: a number, a share of the consumers, or the smaller of both."""

    chunks: int | None
    percent: int | None = None

    def among(self, consumers: int | None) -> int | None:
        """The most that it lets through if there are at most so many consumers; None if that cannot be told."""
        if self.percent is None or consumers is None:
            return self.chunks
        share = max(1, consumers * self.percent // 100)
        return share if self.chunks is None else min(share, self.chunks)


class Step(NamedTuple):
    """One step of a strategy."""

    selection: Selection
    limits: dict[str, Limit]  # by key
    order: str  # the name of the block that chooses among what is left


@lru_cache(1000)
def steps_of(text: str) -> list[Step]:
    """The steps of a strategy in their order."""
    return _steps(parse(text))


def _steps(block: object) -> list[Step]:
    match block:
        case SelectOnly(key=key, value=value, inner=inner):
            return [step._replace(selection=((key, value), *step.selection)) for step in _steps(inner)]
        case MaxSimultaneous(key=key, max=most, inner=inner):
            limit = Limit(most) if isinstance(most, int) else Limit(None, int(most.removesuffix("%")))
            return [_limited(step, key, limit) for step in _steps(inner)]
        case PreferDistinct(key=key, max=most, inner=inner):
            return [*(_limited(step, key, Limit(most)) for step in _steps(inner)), *_steps(inner)]
        case OrElse(first=first, fallback=fallback):
            return [*_steps(first), *_steps(fallback)]
        case _:
            assert isinstance(block, Strategy)
            return [Step((), {}, type(block).__name__)]


def _limited(step: Step, key: str, limit: Limit) -> Step:
    """The step with one more limit; of two on one key the smaller counts."""
    other = step.limits.get(key, limit)
    chunks, percents = zip(limit, other, strict=True)
    both = Limit(_least(chunks), _least(percents))
    return step._replace(limits={**step.limits, key: both})


def _least(numbers: tuple[int | None, ...]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
