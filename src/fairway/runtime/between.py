"""Between two hosts: the way of calls that come while a process looks for the next one.

Guards: a call that comes here is handed to the next host or gets an error; it keeps the number it has. A number that
was sent is never forgotten: it stays, without its caller, until the next host hears that nobody asks for it any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairway.engine.commands import Reserved
from fairway.engine.lookups import Lookups
from fairway.errors import Closed, FairwayError, GroupUnknown, NoHost, QueueHeld, StoreFailed
from fairway.face.reads import Where
from fairway.runtime.pending import Pending, copy_of, giving_back, to_give_back
from fairway.store.port import Store

if TYPE_CHECKING:  # a part of the engine, which only a host loads
    from fairway.engine.closing import Closing

_PERHAPS = "Whether the last host carried this call out is not known: look before you repeat it"


class Between:
    """A way that keeps calls; `move` is called whenever there are some, under the lock."""

    commit: Callable[[Closing], None]  # never asked for

    def __init__(self, name: str, move: Callable[[], None], open_store: Callable[[], Store]) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.closed = False
        self._move = move
        self._open_store = open_store
        self._waiting: list[Pending] = []

    @property
    def store(self) -> Store:
        return self._open_store()

    # -- for ports

    def send(self, pending: Pending, lead: bool = False) -> None:
        with self.lock:
            if self.closed:
                pending.leave(None, Closed())
                return
            pending.arm()
            self._waiting.append(pending)
            self._move()

    def look(self, pending: Pending, wanted: Lookups, lead: bool = False) -> None:
        raise AssertionError("nothing is looked up here")

    def give_up(self, pending: Pending) -> None:
        """The caller is gone; what was sent before goes on, for its number and the leases that it may have."""
        with self.lock:
            pending.lost = True
            if pending in self._waiting:
                pending.forsake()
                if not pending.numbered:
                    self._waiting.remove(pending)
            if pending.left:
                self.abandoned(pending)

    def unreceived(self, reserved: Reserved) -> None:
        self.send(giving_back(reserved))

    def abandoned(self, pending: Pending) -> None:
        """An answer left that nobody can receive. Called under the lock."""
        if to_give_back(pending.command, pending.reply):
            self._waiting.append(giving_back(pending.reply))
            self._move()

    def pages(self, wanted: list[Where]) -> dict[Where, bytes]:
        return self.store.pages(wanted)

    def pages_here(self, wanted: list[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        return {}, wanted

    # -- for the member

    @property
    def idle(self) -> bool:
        """Whether nothing waits. Called under the lock."""
        return not self._waiting

    def take(self) -> list[Pending]:
        """What waits, for the next host. Called under the lock."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def fail(self, error: FairwayError) -> None:
        """No host can be had: everybody who waits is told so. Called under the lock."""
        for pending in self.take():
            self._end(pending, _told(error, pending))

    def refuse(self, pending: Pending, error: FairwayError) -> None:
        """This call alone gets an error."""
        with self.lock:
            self._end(pending, error)

    def _end(self, pending: Pending, error: FairwayError) -> None:
        pending.leave(None, error)
        if pending.numbered and not pending.fixed:
            pending.forsake()
            self._waiting.append(pending)


def _told(error: FairwayError, pending: Pending) -> FairwayError:
    """Of a call that was sent before nobody can say that it had no effect."""
    if not pending.numbered or not isinstance(error, StoreFailed | NoHost | QueueHeld):
        return copy_of(error)
    if not isinstance(error, StoreFailed):
        told: FairwayError = type(error)(f"{str(error).rstrip('.')}. {_PERHAPS}", **error.details)
    else:
        told = GroupUnknown(f"its host is gone and the store fails, so the outcome is unknown: {error}")
    told.__cause__ = error
    return told
