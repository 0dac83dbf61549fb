"""Closing a group: what the store writes, and the answers that wait for it.

Guards: V, the turns that moved and A are in every stored group; one group is stored at a time.
"""

from __future__ import annotations

import msgspec

from fairway.engine.consumer import Consumer
from fairway.engine.dirty import ObjectKey
from fairway.engine.draft import Draft
from fairway.engine.filling import Filling
from fairway.engine.progress import encode_progress
from fairway.engine.records import Tallies, encode
from fairway.engine.sheets import written
from fairway.engine.state import MetaBody, State
from fairway.engine.tenant import Tenant
from fairway.engine.windowing import carry, give_up_places
from fairway.fair.levels import Level
from fairway.fair.weights import W_DEFAULT
from fairway.limits import JOURNAL_TRIM_GROUPS, TENANTS_AT_ONCE_MIN
from fairway.model.config import QueueConfig
from fairway.model.event import encode_events
from fairway.model.stored import Drop, Group, Kind, Put


class Closing:
    """A closed group on its way to the store, with the drafts that leave when it is stored."""

    __slots__ = ("calls", "drafts", "ends", "group", "keys", "last_id", "moved", "number", "places")

    def __init__(self, group: Group | None, filling: Filling, number: int, last_id: int) -> None:
        self.group = group
        self.number = number
        self.last_id = last_id  # the highest that was given by then
        self.drafts: list[Draft] = filling.drafts
        self.calls = filling.calls
        self.ends = [end.id for end in filling.ends] + filling.left
        self.keys = [(row.tenant, row.key) for row in filling.keys]
        self.places = [(row.pass_, row.id) for row in filling.rows]
        self.places += [(move.pass_, move.id) for move in filling.moves]
        self.moved = [move.id for move in filling.moves]


class ConfigBody(msgspec.Struct, array_like=True):
    """The queue's configuration and flag, as stored."""

    config: QueueConfig
    paused: bool


class TenantBody(msgspec.Struct, array_like=True):
    """A tenant, as stored; a turn may be none, or negative after a rebase."""

    as_of: int
    weight: int
    paused: bool
    turn: int | None
    rest: int
    forecast: tuple[int, int, int]
    submissions: int = 0
    waiting: int = 0


class HoldBody(msgspec.Struct, array_like=True):
    """A lease record, as stored: only what is still out."""

    as_of: int
    epoch: int
    deadline: float
    seconds: float
    spans: list[tuple[int, int, int, int]]
    consumer: str
    seq: int


class ClientBody(msgspec.Struct, array_like=True):
    """A client, as stored."""

    as_of: int
    seen: float
    received: int
    outcomes: dict[int, bytes]


_encode = msgspec.msgpack.Encoder().encode
_EVERYWHERE: Level = (2**63 - 1, 2**63 - 1)  # above every place


def close(state: State, range_id: int) -> Closing | None:
    """Close the filling group; None if there is nothing to store and nobody to answer."""
    filling, number = state.filling, state.number
    carries = state.aside.slice is not None
    changed = state.dirty.urgent or filling.drops or filling.puts or state.given != state.closed_given
    if filling.empty and not changed and not carries:
        if not filling.drafts:
            return None
        state.filling = Filling()
        return Closing(None, filling, number - 1, state.last_id)
    if carries:
        carry(state)
    given_up = _advance(state)
    if state.counted or state.tables.plain.moved:
        filling.records.append(_tallies(state))
    _flush(state, filling, number)
    group = Group(
        range_id,
        number,
        filling.sync,
        encode_meta(state),
        rows=filling.rows,
        moves=filling.moves,
        ends=filling.ends,
        keys=filling.keys,
        results=filling.results,
        puts=filling.puts,
        drops=filling.drops,
        journal=encode(filling.records) if filling.records else b"",
        journal_floor=0 if number % JOURNAL_TRIM_GROUPS else state.dirty.floor(number),
        events=encode_events(filling.events) if filling.events else b"",
        event_time=state.now,
        purge=filling.purge,
        purge_keys=filling.purge_keys,
        purge_events_before=filling.purge_events_before,
        delete_upto=given_up,
    )
    state.groups += 1
    state.syncs += filling.sync
    state.filling = Filling()
    state.number += 1
    state.closed_given = state.given
    return Closing(group, filling, number, state.last_id)


def _advance(state: State) -> Level | None:
    """A follows what is finished; an empty queue starts a new era. Gives up to where places are given up."""
    window = state.window
    window.advance()
    # An owner that lost the queue may have read runs that it never counted: its group is refused, once it gets there.
    if not state.live and not window.tracked and window.ack != (0, 0):
        window.reset()
        state.era += 1
        state.finished, state.aside.slice = 0, None
        state.aside.given_up = (0, 0)
        given_up = _EVERYWHERE if state.aside.by_range else None
    else:
        given_up = give_up_places(state)
    for name in state.tables.forget_due():
        state.forecast.forget(name)
    return given_up


def _tallies(state: State) -> Tallies:
    """The tenants whose turns, forecasts or counts changed."""
    plain, number = state.tables.plain, state.number
    names = sorted(state.counted | plain.take_moved())
    state.counted = set()
    tenants = [state.tenants.get(name) or Tenant(name) for name in names]  # one that only had a turn is gone
    many = len(state.filling.rows) >= TENANTS_AT_ONCE_MIN
    for tenant in tenants:
        if not tenant.marked:
            tenant.marked = True
            if many and not tenant.as_of:
                state.dirty.write_now(Kind.TENANT, tenant.name)  # whoever brings many writes them
            else:
                state.dirty.mark(Kind.TENANT, tenant.name, 0, number)
    return Tallies(
        names,
        list(map(plain.turn.get, names)),
        list(map(plain.rest.get, names)),
        state.forecast.lasts(names),
        [tenant.submissions for tenant in tenants],
        [tenant.waiting for tenant in tenants],
    )


def _flush(state: State, filling: Filling, number: int) -> None:
    for item in state.dirty.take(number):
        kind, key, part = item
        if kind is Kind.PAGE and isinstance(key, int):
            filling.puts += written(state.runs[key].done.pages[part], key, part, number)
            continue
        body = _body(state, item, number)
        if body is None:
            filling.drops.append(Drop(*item))
        else:
            filling.puts.append(Put(*item, body))


def encode_meta(state: State) -> bytes:
    return _encode(
        MetaBody(
            state.tables.plain.v,
            state.window.ack,
            state.era,
            state.last_id,
            state.next_count,
            state.next_client,
            state.top,
            state.secret,
            state.seed,
            state.now,
            state.live,
            state.done,
            state.dead,
            state.finished,
        )
    )


def _body(state: State, item: ObjectKey, number: int) -> bytes | None:
    """The whole present state of an object; None if it is gone."""
    kind, key, part = item
    if kind is Kind.PROGRESS and isinstance(key, int):
        run = state.runs.get(key)
        if run is None:
            return None
        run.marked = False
        if run.state != "active":
            return None
        run.as_of = number
        return encode_progress(run, number)
    if kind is Kind.TENANT and isinstance(key, str):
        return _tenant(state, key, number)
    if kind is Kind.HOLD and isinstance(key, int):
        return _hold(state, key, part, number)
    if kind is Kind.CLIENT and isinstance(key, int):
        client = state.clients[key]
        client.as_of = number
        return _encode(ClientBody(number, client.seen, client.received, client.outcomes))
    if kind is Kind.CONSUMER and isinstance(key, str):
        consumer: Consumer = state.consumers[key]
        consumer.as_of = number
        return _encode(consumer)
    assert kind is Kind.CONFIG, item
    return _encode(ConfigBody(state.config, state.paused))


def _tenant(state: State, name: str, number: int) -> bytes | None:
    tenant = state.tenants.get(name)
    plain = state.tables.plain
    weight = state.tables.weight.get(name, W_DEFAULT)
    if tenant is None or not (
        name in plain.turn
        or weight != W_DEFAULT
        or tenant.paused
        or tenant.submissions
        or tenant.leased
        or tenant.waiting
    ):
        state.tenants.pop(name, None)
        state.tables.weight.pop(name, None)
        state.forecast.forget(name)
        return None
    tenant.as_of, tenant.marked = number, False
    forecast = state.forecast.last(name) or (0, 0, 0)
    return _encode(
        TenantBody(
            number,
            weight,
            tenant.paused,
            plain.turn.get(name),
            plain.rest.get(name, 0),
            forecast,
            tenant.submissions,
            tenant.waiting,
        )
    )


def _hold(state: State, count: int, part: int, number: int) -> bytes | None:
    hold = state.holds.get((count, part))
    if hold is None:
        return None
    hold.as_of = number
    spans: list[tuple[int, int, int, int]] = []
    for id, start, many, attempt in hold.spans:
        run = state.runs.get(id)
        for index in range(start, start + many):
            if run is not None and run.out.get(index) is hold:
                if (
                    spans
                    and spans[-1][0] == id
                    and spans[-1][1] + spans[-1][2] == index
                    and spans[-1][3] == attempt
                ):
                    spans[-1] = (id, spans[-1][1], spans[-1][2] + 1, attempt)
                else:
                    spans.append((id, index, 1, attempt))
    return _encode(HoldBody(number, hold.epoch, hold.deadline, hold.seconds, spans, hold.consumer, hold.seq))
