"""The blocks of strategies: frozen values that mean an ordered list of tiers.

Guards: strategies with the same tiers choose alike; `str` gives the one text form, which `parse` reads back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import cast

import msgspec

from fairway import limits
from fairway.errors import BadStrategy
from fairway.strategy import arguments
from fairway.strategy.tiers import Cap, Tier, Value, once


class Strategy(ABC):
    """What every block is. A block without arguments may stand for its value: `Fair` is `Fair()`."""

    __slots__ = ()

    @abstractmethod
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers in the order in which a pick tries them."""

    @abstractmethod
    def levels(self) -> int:
        """How many blocks stand inside one another, this one included."""

    @abstractmethod
    def __str__(self) -> str:
        """The text form."""


class Base(Strategy):
    """A block that is an order and nothing else."""

    __slots__ = ()

    def tiers(self) -> tuple[Tier, ...]:
        return (Tier(type(self)),)

    def levels(self) -> int:
        return 1

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


@dataclass(frozen=True, slots=True)
class CustomPriority(Base):
    """The highest priority is first; inside a priority tenants take turns by weight."""


ORDERS: tuple[type[Base], ...] = (Fair, Random, OldestFirst, NewestFirst, CustomPriority)


@dataclass(frozen=True, slots=True)
class Nested(Strategy):
    """A block around others; it knows its tiers and levels from when it is made."""

    _tiers: tuple[Tier, ...] = field(init=False, repr=False, compare=False)
    _levels: int = field(init=False, repr=False, compare=False)

    def tiers(self) -> tuple[Tier, ...]:
        return self._tiers

    def levels(self) -> int:
        return self._levels

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_shown, arguments_of(self)))})"

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _inner(self, name: str, given: object) -> Strategy:
        block = type(self).__name__
        inner = next((order() for order in ORDERS if given is order), given)
        if not isinstance(inner, Strategy):
            arguments.refuse(block, name, "a block such as Fair or SelectOnly(...)", inner)
        self._keep(name, inner)
        return inner

    def _mean(self, tiers: Iterable[Tier], *inner: Strategy) -> None:
        block = type(self).__name__
        levels = 1 + max(part.levels() for part in inner)
        if levels > limits.STRATEGY_LEVELS_MAX:
            raise BadStrategy(
                f"{block} is at the top of {levels} blocks inside one another;"
                f" {limits.STRATEGY_LEVELS_MAX} are the most"
            )
        steps = once(tiers)
        if len(steps) > limits.TIERS_MAX:
            doubles = ", and each PreferDistinct doubles them" if isinstance(self, PreferDistinct) else ""
            raise BadStrategy(
                f"{block} would make a strategy of {len(steps)} steps; {limits.TIERS_MAX} are the most{doubles}"
            )
        self._keep("_tiers", steps)
        self._keep("_levels", levels)


@dataclass(frozen=True, slots=True)
class SelectOnly(Nested):
    """Only submissions that have this value at this key; `inner` chooses among them."""

    key: str
    value: Value
    inner: Strategy | type[Base]

    def __post_init__(self) -> None:
        self._keep("key", arguments.key("SelectOnly", self.key))
        self._keep("value", arguments.value("SelectOnly", self.key, self.value))
        inner = self._inner("inner", self.inner)
        self._mean((tier.selecting(self.key, self.value) for tier in inner.tiers()), inner)


@dataclass(frozen=True, slots=True)
class PreferDistinct(Nested):
    """First what has fewer than `max` chunks of its value in flight, then everything; `inner` chooses in both."""

    key: str
    max: int
    inner: Strategy | type[Base]

    def __post_init__(self) -> None:
        self._keep("key", arguments.key("PreferDistinct", self.key))
        self._keep("max", arguments.count("PreferDistinct", self.max))
        inner = self._inner("inner", self.inner)
        preferred = [tier.limiting(self.key, Cap(self.max)) for tier in inner.tiers()]
        self._mean([*preferred, *inner.tiers()], inner)


@dataclass(frozen=True, slots=True)
class MaxSimultaneous(Nested):
    """Never a chunk whose value has `max` or more in flight; "10%" is that share of the consumers, at least 1."""

    key: str
    max: int | str
    inner: Strategy | type[Base]

    def __post_init__(self) -> None:
        self._keep("key", arguments.key("MaxSimultaneous", self.key))
        self._keep("max", arguments.count_or_percent("MaxSimultaneous", self.max))
        inner = self._inner("inner", self.inner)
        cap = arguments.cap(self.max)
        self._mean((tier.limiting(self.key, cap) for tier in inner.tiers()), inner)


@dataclass(frozen=True, slots=True)
class OrElse(Nested):
    """What `first` chooses; if it has nothing, what `fallback` chooses."""

    first: Strategy | type[Base]
    fallback: Strategy | type[Base]

    def __post_init__(self) -> None:
        first, fallback = self._inner("first", self.first), self._inner("fallback", self.fallback)
        self._mean([*first.tiers(), *fallback.tiers()], first, fallback)


StrategyLike = Strategy | type[Base] | str
"""Where a strategy is expected: a value, a block without arguments, or the text form."""

BLOCKS: dict[str, type[Strategy]] = {
    block.__name__: block for block in (*ORDERS, SelectOnly, PreferDistinct, MaxSimultaneous, OrElse)
}
"""Every block by the name that the text form uses."""

INNER = ("inner", "first", "fallback")
"""Arguments that are strategies themselves."""


def parameters_of(block: type[Strategy]) -> tuple[str, ...]:
    """The names of a block's arguments in their order; none for an order."""
    if not issubclass(block, Nested):
        return ()
    return tuple(field.name for field in fields(block) if field.init)


def arguments_of(strategy: Strategy) -> list[Value | Strategy]:
    """The arguments of a block in their order."""
    return [cast("Value | Strategy", getattr(strategy, name)) for name in parameters_of(type(strategy))]


def _shown(argument: Value | Strategy) -> str:
    return msgspec.json.encode(argument).decode() if isinstance(argument, str) else str(argument)
