"""Seeking: which calls need the store first, and how long what is newly stored must be remembered for them.

Guards: a read that began before a group was stored is answered together with what that group changed.
"""

from __future__ import annotations

from fairway.engine.closing import Closing
from fairway.engine.commands import Cancel, Command, Complete, Redrive, Show, Submit, Wait, Winners
from fairway.engine.lookups import Lookups
from fairway.engine.state import State
from fairway.limits import PAGE_CHUNKS


class Seeking:
    """Open lookups, by the order in which they began."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._begun = 0
        self._open: dict[int, None] = {}

    def lookups(self, command: Command) -> Lookups | None:
        """What to look for; None if the engine knows all it needs."""
        state = self._state
        wanted = Lookups(0)
        match command:
            case Submit():
                wanted.keys = [
                    (offer.described.tenant, offer.described.key)
                    for offer in command.offers
                    if offer.described.key
                    and (offer.described.tenant, offer.described.key) not in state.recent_keys
                ]
            case Complete():
                runs, ends = state.runs, state.recent_ends
                for part in command.parts:
                    for id, start, _ in part.spans:
                        if id not in runs and id not in ends:
                            wanted.runs.append(id)
                            wanted.pages.append((id, start // PAGE_CHUNKS))
            case Show() | Wait() | Cancel():
                if self._unknown(command.id):
                    wanted.runs = [command.id]
            case Redrive():
                if self._unknown(command.id):
                    wanted.whole = [command.id]
            case Winners():
                if self._unknown(command.id):
                    first, last = (
                        command.start // PAGE_CHUNKS,
                        (command.start + command.count - 1) // PAGE_CHUNKS,
                    )
                    wanted.runs = [command.id]
                    wanted.pages = [(command.id, page) for page in range(first, last + 1)]
            case _:
                return None
        if not (wanted.runs or wanted.keys or wanted.whole):
            return None
        self._begun += 1
        wanted.ticket = self._begun
        self._open[self._begun] = None
        return wanted

    def _unknown(self, id: int) -> bool:
        return id not in self._state.runs and id not in self._state.recent_ends

    def close(self, ticket: int) -> None:
        """A lookup was used or given up."""
        self._open.pop(ticket, None)

    def stored(self, closed: Closing) -> None:
        """A group is stored: let go of what no open lookup can be older than."""
        oldest = next(iter(self._open), self._begun + 1) - 1
        state = self._state
        state.recent_ends.stored(closed.ends, closed.number, self._begun, oldest)
        state.recent_keys.stored(closed.keys, closed.number, self._begun, oldest)
