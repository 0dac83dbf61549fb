"""Seeking: which calls need the store first, and how long what is newly stored must be remembered for them.

Guards: a read that began before a group was stored is answered together with what that group changed.
"""

from __future__ import annotations

from fairway.engine import listing
from fairway.engine.clients import decode_reply
from fairway.engine.closing import Closing
from fairway.engine.commands import (
    Call,
    Cancel,
    Command,
    Complete,
    Fail,
    Finish,
    ListActive,
    ListDead,
    Pause,
    Purge,
    Redrive,
    Release,
    Renew,
    Reserve,
    Reserved,
    Show,
    Submit,
    Trim,
    Wait,
    Winners,
)
from fairway.engine.lookups import Lookups
from fairway.engine.state import State
from fairway.limits import CHUNKS_MAX, PAGE_CHUNKS

_ENDED_MEANWHILE = 2000  # rows that a listing reads more, for those that turn out to have ended


def _pages(id: int, start: int, count: int) -> list[tuple[int, int]]:
    """The pages that hold these chunks."""
    first, last = max(0, start), min(start + count, CHUNKS_MAX) - 1
    return [(id, page) for page in range(first // PAGE_CHUNKS, last // PAGE_CHUNKS + 1)]


class Seeking:
    """Open lookups, by the order in which they began."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._tickets = state.aside.tickets

    def lookups(self, call: Call) -> Lookups | None:
        """What to look for; None if the engine knows all it needs."""
        wanted = Lookups(0)
        match call.command:
            case Submit() as command:
                wanted.keys = self._keys(command)
            case Complete() as command:
                self._completed(wanted, command)
            case Finish() as command:
                for one in command.completed:
                    self._completed(wanted, one)
                for one in command.failed:
                    wanted.runs += self._answered(one)
            case Fail() | Release() | Renew() as command:
                wanted.runs = self._answered(command)
            case Trim() as command:
                wanted.runs = [id for id in self._lapsed(command) if self._unknown(id)]
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
            case Pause() as command:
                wanted.runs = [command.submission] if self._unknown(command.submission) else []
            case ListActive() as command:
                if self._is_away() or listing.asks_index(self._state, command):
                    wanted.listing, wanted.above = command, self._state.stored_id
                    wanted.slack = len(self._state.recent_ends) + _ENDED_MEANWHILE
            case ListDead():
                wanted.dead = self._is_away()
            case _:
                return None
        if not (wanted.runs or wanted.keys or wanted.whole or wanted.listing or wanted.dead):
            return None
        wanted.ticket = self._tickets.begin(wanted)
        return wanted

    def named(self, command: Command) -> list[int]:
        """The submissions that a call names."""
        match command:
            case Show() | Wait() | Cancel() | Redrive() | Winners():
                return [command.id]
            case Pause():
                return [command.submission]
            case Complete():
                return [span[0] for part in command.parts for span in part.spans]
            case Finish():
                return [id for one in command.completed for id in self.named(one)]
            case Trim():
                return [*self._lapsed(command)]
            case _:
                return []

    def _is_away(self) -> bool:
        """Whether some active submission is not in memory."""
        return self._state.live > self._state.aside.here

    def _completed(self, wanted: Lookups, command: Complete) -> None:
        here = self._state.runs
        for part in command.parts:
            for id, start, count in part.spans:
                if id not in here and self._unknown(id):
                    wanted.runs.append(id)
                    wanted.pages += _pages(id, start, count)

    def _answered(self, command: Fail | Release | Renew) -> list[int]:
        """The submissions of leases of which nothing is out any more: ended, or not."""
        ids = {span[0] for part in command.parts for span in part.spans}
        return [id for id in ids if id not in self._state.runs and self._unknown(id)]

    def _keys(self, command: Submit) -> list[tuple[str, str]]:
        recent, stored = self._state.recent_keys, self._state.stored_number
        given = [(d.tenant, d.key) for offer in command.offers if (d := offer.described).key]
        return [where for where in given if not recent.surely_stays(where, stored)]

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

    def _lapsed(self, command: Trim) -> set[int]:
        """The submissions of reservations that are to be completed though chunks of them went back."""
        consumer = self._state.consumers.get(command.consumer) if command.complete else None
        open = consumer.open.items() if consumer is not None else ()
        lapsed = (named for seq, named in open if named.lapsed and seq <= command.seq)
        return {span[0] for named in lapsed for span in named.spans}

    def _unknown(self, id: int) -> bool:
        state = self._state
        here = id in state.runs or state.recent_ends.surely_stays(id, state.stored_number)
        return not here and 0 < id < 1 << 63

    def close(self, ticket: int) -> None:
        """A lookup was used or given up."""
        self._tickets.close(ticket)

    def stored(self, closed: Closing) -> None:
        """A group is stored: let go of what no open lookup can be older than."""
        oldest, begun = self._tickets.oldest, self._tickets.begun
        state = self._state
        state.recent_ends.stored(closed.ends, closed.number, begun, oldest)
        state.recent_keys.stored(closed.keys, closed.number, begun, oldest)
        state.recent_lives.stored(closed.moved, closed.number, begun, oldest)
        state.aside.carried.stored(closed.moved, closed.number, begun, oldest)
