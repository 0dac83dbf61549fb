"""Tiers: the ordered steps that a strategy means.

Guards: strategies with equal tiers choose alike; a tier stands once in a strategy, and limits a key once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairway.strategy.terms import Base

Value = str | int
"""A value of strategic metadata; the text "1" and the number 1 differ."""

Selection = tuple[tuple[str, Value], ...]
"""Sorted key = value pairs, all of which a submission must have; () is the whole queue."""


class Cap(NamedTuple):
    """How many chunks of one value may be in flight: a count, a share of the consumers, or the smaller of both.

    A share is known only when a pick is made, so it stays a share until then.
    """

    chunks: int | None = None
    percent: int | None = None

    def at(self, consumers: int) -> int:
        """The number that counts while so many consumers are seen; a share is at least 1."""
        if self.percent is None:
            assert self.chunks is not None
            return self.chunks
        share = max(1, self.percent * consumers // 100)
        return share if self.chunks is None else min(self.chunks, share)

    def under(self, other: Cap) -> Cap:
        """The stricter of two limits of one key."""
        return Cap(_least(self.chunks, other.chunks), _least(self.percent, other.percent))


@dataclass(frozen=True, slots=True)
class Tier:
    """One step of a strategy: among what is selected and below its limits, choose by the base order.

    A pick is made in the first tier that has a candidate.
    """

    base: type[Base]
    selection: Selection = ()
    limits: tuple[tuple[str, Cap], ...] = ()

    def selecting(self, key: str, value: Value) -> Tier:
        """This step over the submissions that have the pair as well."""
        pairs = sorted({*self.selection, (key, value)}, key=_pair_order)
        return replace(self, selection=tuple(pairs))

    def limiting(self, key: str, cap: Cap) -> Tier:
        """This step with one more limit; of two on one key the smaller counts."""
        caps = dict(self.limits)
        caps[key] = cap.under(caps[key]) if key in caps else cap
        return replace(self, limits=tuple(sorted(caps.items(), key=_first)))


def once(tiers: Iterable[Tier]) -> tuple[Tier, ...]:
    """Equal tiers at their first place only: a later one would never have a candidate."""
    return tuple(dict.fromkeys(tiers))


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _pair_order(pair: tuple[str, Value]) -> tuple[str, bool, Value]:
    return pair[0], isinstance(pair[1], str), pair[1]  # a number and a text cannot be compared


def _first(limit: tuple[str, Cap]) -> str:
    return limit[0]
