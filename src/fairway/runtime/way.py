"""A way: how calls of this process reach the engine now.

Guards: a call that is given up is given up wherever it is, also while it goes from one way to another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fairway.engine.commands import Reserved
from fairway.engine.lookups import Lookups
from fairway.face.reads import Where
from fairway.runtime.pending import Pending
from fairway.store.port import Store

if TYPE_CHECKING:  # a part of the engine, which only a host loads
    from fairway.engine.closing import Closing


class Way(Protocol):
    """A host in this process, a connection to one in another, or the time between two."""

    name: str
    commit: Callable[[Closing], None]

    def send(self, pending: Pending, lead: bool = False) -> Lookups | Closing | None: ...
    def look(self, pending: Pending, wanted: Lookups, lead: bool = False) -> Closing | None: ...
    def give_up(self, pending: Pending) -> None: ...
    def unreceived(self, reserved: Reserved) -> None: ...
    def pages(self, wanted: list[Where]) -> dict[Where, bytes]: ...
    def pages_here(self, wanted: list[Where]) -> tuple[dict[Where, bytes], list[Where]]: ...


class Member(Protocol):
    """What ports hold on to, whatever the way is."""

    @property
    def name(self) -> str: ...
    @property
    def way(self) -> Any: ...  # a Way, whichever it is now
    @property
    def store(self) -> Store: ...


def give_up(member: Member, pending: Pending) -> None:
    """The caller is gone."""
    pending.lost = True  # first: a way that takes it from here on knows
    way: Way = member.way
    way.give_up(pending)
    while member.way is not way:
        way = member.way
        way.give_up(pending)
