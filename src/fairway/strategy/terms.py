"""The blocks of strategies: frozen values that mean an ordered list of tiers.

Guards: strategies with the same tiers choose alike; `str` gives the one text form, which `parse` reads back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tier:
    """One step of a strategy: among what is selected and below its limits, choose by the base order.

    A pick is made in the first tier that has a candidate.
    """

    base: type[Base]
    selection: tuple[tuple[str, str | int], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()


class Strategy(ABC):
    """What every block is. A block without arguments may stand for its value: `Fair` is `Fair()`."""

    __slots__ = ()

    @abstractmethod
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers in the order in which a pick tries them."""

    @abstractmethod
    def __str__(self) -> str:
        """The text form."""


class Base(Strategy):
    """A block that is an order and nothing else."""

    __slots__ = ()

    def tiers(self) -> tuple[Tier, ...]:
        return (Tier(type(self)),)

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class Fair(Base):
    """Tenants take turns by weight; inside a tenant the oldest submission is first."""


@dataclass(frozen=True, slots=True)
class Random(Base):
    """Every chunk that can be handed out is equally likely."""


@dataclass(frozen=True, slots=True)
class OldestFirst(Base):
    """The submission that came first is first."""


@dataclass(frozen=True, slots=True)
class NewestFirst(Base):
    """The submission that came last is first; older ones starve when work comes faster than it goes."""


StrategyLike = Strategy | type[Base] | str
"""Where a strategy is expected: a value, a block without arguments, or the text form."""

BLOCKS: dict[str, type[Base]] = {block.__name__: block for block in (Fair, Random, OldestFirst, NewestFirst)}
"""Every block by the name that the text form uses."""
