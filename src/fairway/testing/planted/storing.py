"""Bugs of groups, the fence, the journal and what a start loads.

Guards: each is one forgotten condition or one thing that is not stored.
"""

from __future__ import annotations

from typing import Any

from fairway.engine import answering, closing, engine, finishing, load, named, purging, submitting
from fairway.engine.closing import Closing
from fairway.engine.commands import Complete, Release, Renew
from fairway.engine.dirty import Dirty
from fairway.engine.filling import Filling
from fairway.engine.records import Answered, Completed, Leased, Record, Returned, Tallies
from fairway.engine.state import State
from fairway.model.ids import next_ids
from fairway.model.stored import Group
from fairway.store.memory.state import State as Stored
from fairway.store.memory.store import MemoryStore
from fairway.testing.planted.planting import plant, wrong

# -- the fence


@wrong("the group number is not in the condition", Stored, "admits")
def of_this_owner(self: Stored, group: Group) -> bool:
    return group.range_id == self.range_id


@wrong("the range id is not in the condition", Stored, "admits")
def of_this_number(self: Stored, group: Group) -> bool:
    return group.number == self.number + 1


@wrong("an unknown outcome is taken for stored", MemoryStore, "settle")
def surely_stored(self: MemoryStore, group: Group) -> bool:
    return True


@wrong("an unknown outcome is taken for not stored", MemoryStore, "settle")
def surely_lost(self: MemoryStore, group: Group) -> bool:
    return False


# -- groups

_close, _encode = closing.close, closing.encode


@wrong("answers leave before their group", closing, "close")
def hasty(state: State, range_id: int) -> Closing | None:
    closed = _close(state, range_id)
    if closed is not None:
        drafts, closed.drafts = closed.drafts, []
        for draft in drafts:
            draft.leave()
    return closed


@wrong("a lease is answered and not stored", closing, "close")
def leases_from_memory(state: State, range_id: int) -> Closing | None:
    filling = state.filling
    leases = bool(filling.records) and all(isinstance(r, Leased | Answered) for r in filling.records)
    if leases and not filling.sync and not state.dirty.urgent and not filling.rows:
        state.filling = Filling()
        return Closing(None, filling, state.number - 1, state.last_id)
    return _close(state, range_id)


def _without(*kinds: type) -> Any:
    def encode(records: list[Record]) -> bytes:
        return _encode([record for record in records if not isinstance(record, kinds)])

    return encode


for _what, _kind in (
    ("completions", Completed),
    ("failures and expiries", Returned),
    ("turns", Tallies),
):
    plant(f"{_what} are not in the journal", closing, "encode", _without(_kind), here=True)


@wrong("the journal is cut too early", Dirty, "floor")
def nothing_to_replay(self: Dirty, number: int) -> int:
    return number


@wrong("an outcome is kept in memory only", answering, "record_outcome")
def unrecorded(state: State, client_id: int, number: int, reply: Any) -> None:
    client = state.clients.get(client_id)
    if client is not None and number:
        client.outcomes[number] = answering.encode_reply(reply)


# -- what is synced

_store, _keep = finishing._store, named.keep


@wrong("a completion is not synced", finishing, "_store")
def unsynced_completion(state: State, *args: Any) -> None:
    before = state.filling.sync
    _store(state, *args)
    if not state.filling.ends:
        state.filling.sync = before


plant("a completion is not synced", engine, "_UNSYNCED", (Renew, Release, Complete), here=True)


@wrong("a named reservation is not synced", named, "keep")
def unsynced_name(state: State, consumer: Any) -> None:
    before = state.filling.sync
    _keep(state, consumer)
    state.filling.sync = before


# -- what is given once


@wrong("owners share an epoch", load, "epoch_of")
def one_epoch(range_id: int, bits: int) -> int:
    return 7


@wrong("ids come from the clock alone", submitting, "next_ids", here=True)
def by_the_clock(now: float, last: int, queue_number: int, n: int) -> list[int]:
    return next_ids(now, 0, queue_number, n)


# -- what a start loads, and what leaves for good

_tenants = load._tenants


@wrong("weights are forgotten at a start", load, "_tenants")
def without_weights(state: State, source: Any) -> None:
    _tenants(state, source)
    state.tables.weight.clear()


@wrong("pauses are forgotten at a start", load, "_tenants")
def without_pauses(state: State, source: Any) -> None:
    _tenants(state, source)
    for tenant in state.tenants.values():
        tenant.paused = False


@wrong("a start forgets what clients were told", load, "_decode_client")
def nobody_was_told(body: bytes) -> Any:
    stored = _decode_client(body)
    stored.outcomes = {}
    return stored


_decode_client = load._decode_client


@wrong("what ended is never purged", purging, "_is_over")
def never_over(state: State, id: int, found: Any) -> bool:
    return False


@wrong("what ended is purged before its retention is over", purging, "_is_over")
def over_at_once(state: State, id: int, found: Any) -> bool:
    stored = found.runs.get(id)
    known = stored is not None and stored.state != "active"
    return known and id not in state.runs and id not in state.recent_ends


@wrong("what ended is purged before its retention is over", MemoryStore, "ended_before")
def ended_ever(self: MemoryStore, at: float, limit: int) -> list[tuple[float, int]]:
    return [(0.0, run.id) for run in self.ended("", None, {}, 0, limit)]
