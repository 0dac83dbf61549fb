"""Purging: what ended long ago leaves for good.

Guards: only what is over by what the engine knows now is removed, whatever it was when the caller looked.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.engine.commands import Purge
from fairway.engine.lookups import Found, Lookups
from fairway.engine.progress import decode_end
from fairway.engine.state import State


def purge(state: State, command: Purge, found: Found) -> int:
    """Remove ended submissions, keys and events whose time is over; gives how many submissions and keys go."""
    filling = state.filling
    kept = _looked_at(state, found.ticket) | _handed_back(state)
    ids = [id for id in command.ids if id not in kept and _is_over(state, id, found)]
    keys = [where for where in command.keys if _is_expired(state, where, found)]
    filling.purge += ids
    state.aside.doomed.difference_update(command.ids)
    filling.purge_keys += keys
    filling.purge_events_before = max(filling.purge_events_before, command.events_before)
    return len(ids) + len(keys)


def doom(state: State, ids: Iterable[int]) -> list[int]:
    """Those of some ended submissions that nobody may ask for again. From now on, until they are purged, none of
    them lives again: what belongs to them outside of the store may go first."""
    kept = _looked_at(state) | _handed_back(state)
    known = (state.runs, state.recent_ends, kept)
    doomed = [id for id in ids if not any(id in where for where in known)]
    state.aside.doomed.update(doomed)
    return doomed


def _is_over(state: State, id: int, found: Found) -> bool:
    stored = found.runs.get(id)
    if stored is None or stored.state == "active" or id in state.runs or id in state.recent_ends:
        return False
    return decode_end(stored.end).at + state.config.retention_seconds <= state.now


def _is_expired(state: State, where: tuple[str, str], found: Found) -> bool:
    row = state.recent_keys.get(where) or found.keys.get(where)
    return row is not None and 0 < row.expires <= state.now


def _looked_at(state: State, but: int = 0) -> set[int]:
    """The runs that are being looked up for other calls than the one with this ticket."""
    open = [what for ticket, what in state.aside.tickets.items() if ticket != but]
    return {id for what in open if isinstance(what, Lookups) for id in (*what.runs, *what.whole)}


def _handed_back(state: State) -> set[int]:
    """The submissions that consumers who are not silent may ask for again, payloads included."""
    since = state.now - state.config.consumer_silent_seconds
    awake = (consumer for consumer in state.consumers.values() if consumer.seen > since)
    return {span[0] for consumer in awake for named in consumer.open.values() for span in named.spans}
