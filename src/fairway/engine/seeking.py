"""Seeking: which calls need the store first, and how long what is newly stored must be remembered for them.

Guards: a read that began before a group was stored is answered together with what that group changed.
"""

from __future__ import annotations

from fairway.engine.clients import decode_reply
from fairway.engine.closing import Closing
from fairway.engine.commands import (
    Call,
    Cancel,
    Complete,
    Purge,
    Redrive,
    Reserve,
    Reserved,
    Show,
    Submit,
    Wait,
    Winners,
)
from fairway.engine.lookups import Lookups
from fairway.engine.state import State
from fairway.limits import CHUNKS_MAX, PAGE_CHUNKS


def _pages(id: int, start: int, count: int) -> list[tuple[int, int]]:
    """The pages that hold these chunks."""
    first, last = max(0, start), min(start + count, CHUNKS_MAX) - 1
    return [(id, page) for page in range(first // PAGE_CHUNKS, last // PAGE_CHUNKS + 1)]


class Seeking:
    """Open lookups, by the order in which they began."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._begun = 0
        self._open: dict[int, Lookups] = {}

    def lookups(self, call: Call) -> Lookups | None:
        """What to look for; None if the engine knows all it needs."""
        wanted = Lookups(0)
        match call.command:
            case Submit() as command:
                wanted.keys = self._keys(command)
            case Complete() as command:
                for part in command.parts:
                    for id, start, count in part.spans:
                        if self._unknown(id):
                            wanted.runs.append(id)
                            wanted.pages += _pages(id, start, count)
            case Reserve() as command:
                wanted.runs = [id for id in self._handed_back(call, command) if self._unknown(id)]
            case Show() | Wait() | Cancel() as command:
                wanted.runs = [command.id] if self._unknown(command.id) else []
            case Redrive() as command:
                wanted.whole = [command.id] if self._unknown(command.id) else []
            case Winners() as command:
                if self._unknown(command.id):
                    wanted.runs = [command.id]
                    wanted.pages = _pages(command.id, command.start, command.count)
            case Purge() as command:
                wanted.runs, wanted.keys = command.ids, command.keys
            case _:
                return None
        if not (wanted.runs or wanted.keys or wanted.whole):
            return None
        self._begun += 1
        wanted.ticket = self._begun
        self._open[self._begun] = wanted
        return wanted

    def _keys(self, command: Submit) -> list[tuple[str, str]]:
        recent = self._state.recent_keys
        given = (
            (offer.described.tenant, offer.described.key) for offer in command.offers if offer.described.key
        )
        return [where for where in given if where not in recent]

    def _handed_back(self, call: Call, command: Reserve) -> set[int]:
        """The submissions of a reservation that was made before and is asked for again."""
        client = self._state.clients.get(call.client) if call.number else None
        outcome = client.outcomes.get(call.number) if client is not None else None
        if outcome is not None:
            reply = decode_reply(outcome)
            return {span[0] for span in reply.spans} if isinstance(reply, Reserved) else set()
        consumer = self._state.consumers.get(command.consumer) if command.consumer else None
        named = consumer.open.get(command.seq) if consumer is not None else None
        return {span[0] for span in named.spans} if named is not None else set()

    def _unknown(self, id: int) -> bool:
        return id not in self._state.runs and id not in self._state.recent_ends and 0 < id < 1 << 63

    def looked_at(self, but: int) -> set[int]:
        """The runs that are being looked up for other calls than the one with this ticket."""
        return {id for n, wanted in self._open.items() if n != but for id in (*wanted.runs, *wanted.whole)}

    def close(self, ticket: int) -> None:
        """A lookup was used or given up."""
        self._open.pop(ticket, None)

    def stored(self, closed: Closing) -> None:
        """A group is stored: let go of what no open lookup can be older than."""
        oldest = next(iter(self._open), self._begun + 1) - 1
        state = self._state
        state.recent_ends.stored(closed.ends, closed.number, self._begun, oldest)
        state.recent_keys.stored(closed.keys, closed.number, self._begun, oldest)
