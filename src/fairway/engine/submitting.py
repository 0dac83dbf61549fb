"""Submitting: offers become runs, all of a call or none.

Guards: a new run is placed above A and at most at PASS_MAX; a key names one submission; cost does not depend on chunks.
"""

from __future__ import annotations

import msgspec

from fairway import limits
from fairway.engine import ending, steering
from fairway.engine.backlog import admit, appear
from fairway.engine.commands import Accepted, Submit
from fairway.engine.lookups import Found
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.errors import KeyConflict, TooLarge
from fairway.fair.levels import after
from fairway.fair.weights import W_DEFAULT, W_MIN, U
from fairway.model.event import Happened, What
from fairway.model.ids import next_id
from fairway.model.stored import KeyRow, Row
from fairway.model.submission import Described, Offer

_encode = msgspec.msgpack.Encoder().encode


def submit(state: State, command: Submit, found: Found) -> Accepted:
    """Accept offers."""
    offers = command.offers
    if (
        len(offers) > limits.CALL_OFFERS_MAX
        or sum(len(page) for o in offers for page in o.pages) > limits.GROUP_BYTES_MAX
    ):
        raise TooLarge(
            f"one call takes at most {limits.CALL_OFFERS_MAX} submissions and {limits.GROUP_BYTES_MAX} inline bytes;"
            " cut it into several calls, or give payloads as objects"
        )
    known = _known_keys(state, offers, found)
    _check_room(state, offers)
    ids: list[int] = []
    flags: list[bool] = []
    spans: list[tuple[int, ...]] = []
    tenants: list[str] = []
    for offer in offers:
        described = offer.described
        key = known.get((described.tenant, described.key)) if described.key else None
        if key is not None:
            ids.append(key.id)
            flags.append(True)
            continue
        run = _accept(state, offer)
        if described.key:
            known[described.tenant, described.key] = _keep_key(state, run)
        ids.append(run.id)
        flags.append(False)
        spans.append((run.id, 0, run.total))
        tenants.append(run.tenant)
    if spans:
        state.filling.sync = True
        state.filling.events.append(Happened(What.SUBMITTED, state.now, spans, tenants=tenants))
    return Accepted(ids, flags)


def _accept(state: State, offer: Offer) -> Run:
    now = state.now
    described = _dated(offer, now)
    name = described.tenant
    if offer.weight:
        steering.set_weight(state, name, offer.weight)
    tenant = state.tenant(name)
    had = appear(state, tenant, described.total)
    plain = state.tables.plain
    turn, rest = plain.turn.get(name, plain.v), plain.rest.get(name, 0)
    pass_ = state.forecast.place(name, described.total, turn, rest, had, state.acked.ack[0])
    plain.moved.add(name)  # its forecast moved
    state.top = max(state.top, pass_)
    state.last_id = id = next_id(now, state.last_id, state.queue_number)
    assert (pass_, id) > state.acked.ack
    run = Run(id, pass_, described, tenant, state.seed)
    state.acked.placed((pass_, id))
    state.filling.rows.append(
        Row(id, pass_, name, described.not_before, described.metadata, _encode(described), offer.pages)
    )
    admit(state, run)
    if not run.total:
        ending.end(state, run, "submit of no chunks")
    return run


def _dated(offer: Offer, now: float) -> Described:
    described = offer.described
    if not offer.delay_seconds and not offer.deadline_seconds:
        return described
    not_before, deadline = described.not_before, described.deadline
    if offer.delay_seconds:
        not_before = max(not_before, now + offer.delay_seconds)
    if offer.deadline_seconds:
        deadline = now + offer.deadline_seconds
    return msgspec.structs.replace(described, not_before=not_before, deadline=deadline)


def _known_keys(state: State, offers: list[Offer], found: Found) -> dict[tuple[str, str], KeyRow]:
    """The keys of a call that name a submission already; KeyConflict if any stands for other content."""
    known: dict[tuple[str, str], KeyRow] = {}
    given: dict[tuple[str, str], bytes] = {}
    for offer in offers:
        described = offer.described
        if not described.key:
            continue
        where = (described.tenant, described.key)
        if given.setdefault(where, described.fingerprint) != described.fingerprint:
            raise KeyConflict(f"key {described.key!r} stands twice in this call, for different content")
        key = state.recent_keys.get(where) or found.keys.get(where)
        if key is None or (key.expires and key.expires <= state.now):
            continue
        if key.fingerprint != described.fingerprint:
            raise KeyConflict(
                f"key {described.key!r} of tenant {described.tenant!r} belongs to submission {key.id} with other"
                " content; take a new key, or submit the same content",
                submission=key.id,
            )
        known[where] = key
    return known


def _keep_key(state: State, run: Run) -> KeyRow:
    expires = run.ended + limits.KEY_SECONDS if run.ended else 0.0
    row = KeyRow(run.tenant, run.described.key, run.id, run.described.fingerprint, expires)
    state.filling.keys.append(row)
    state.recent_keys.put((row.tenant, row.key), row, state.number)
    return row


def _check_room(state: State, offers: list[Offer]) -> None:
    """Refuse the whole call if any level would pass PASS_MAX, before anything is changed."""
    chunks = sum(offer.described.total for offer in offers)
    if state.top + state.tables.plain.v + (chunks + 2) * (U // W_MIN + 1) < limits.PASS_MAX:
        return  # the usual case: far away whatever the weights are
    plain = state.tables.plain
    ahead: dict[str, tuple[int, int]] = {}
    for offer in offers:
        name = offer.described.tenant
        w = offer.weight or state.tables.weight.get(name, W_DEFAULT)
        place = ahead.get(name)
        if place is None:
            tenant = state.tenants.get(name)
            place = state.forecast.ahead(name) if tenant is not None and tenant.waiting else None
        if place is None:
            place = (max(plain.turn.get(name, 0), plain.v + U // w - 1, state.acked.ack[0]), 0)
        if place[0] > limits.PASS_MAX:
            raise TooLarge(
                f"tenant {name!r} has more chunks waiting than its weight allows to place;"
                " let some of them be served, or give it a higher weight",
                tenant=name,
            )
        ahead[name] = after(*place, offer.described.total, w)
