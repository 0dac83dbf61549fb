"""Submitting: offers become runs, all of a call or none.

Guards: a refused call has no effect; a key names one submission; cost does not depend on chunks.
"""

from __future__ import annotations

import msgspec

from fairway import limits
from fairway.engine import ending, steering
from fairway.engine.backlog import admit
from fairway.engine.commands import Accepted, Submit
from fairway.engine.lookups import Found
from fairway.engine.placing import check_room, far_away, place
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.errors import KeyConflict, TooLarge
from fairway.model.event import Happened, What
from fairway.model.ids import next_ids
from fairway.model.stored import KeyRow, Row
from fairway.model.submission import Described, Offer

_encode = msgspec.msgpack.Encoder().encode


def submit(state: State, command: Submit, found: Found) -> Accepted:
    """Accept offers."""
    offers = command.offers
    keyed = _check(state, offers)
    known = _known_keys(state, offers, found) if keyed else {}
    fresh = iter(next_ids(state.now, state.last_id, state.queue_number, len(offers)))
    ids: list[int] = []
    flags: list[bool] = []
    spans: list[tuple[int, ...]] = []
    tenants: list[str] = []
    bodies: dict[int, bytes] = {}  # messages of one call share descriptions
    for offer in offers:
        described = offer.described
        key = known.get((described.tenant, described.key)) if keyed and described.key else None
        if key is not None:
            ids.append(key.id)
            flags.append(True)
            continue
        id = state.last_id = next(fresh)
        run = _accept(state, id, offer, bodies)
        if described.key:
            known[described.tenant, described.key] = _keep_key(state, run)
        ids.append(id)
        flags.append(False)
        spans.append((id, 0, run.total))
        tenants.append(run.tenant)
    if spans:
        state.filling.sync = True
        state.filling.events.append(Happened(What.SUBMITTED, state.now, spans, tenants=tenants))
    return Accepted(ids, flags)


def _check(state: State, offers: list[Offer]) -> bool:
    """Refuse what one call cannot hold; says whether any offer has a key."""
    size = chunks = 0
    keyed = False
    for offer in offers:
        described = offer.described
        chunks += described.total
        keyed = keyed or described.key != ""
        for page in offer.pages:
            size += len(page)
    if len(offers) > limits.CALL_OFFERS_MAX or size > limits.GROUP_BYTES_MAX:
        raise TooLarge(
            f"one call takes at most {limits.CALL_OFFERS_MAX} submissions and {limits.GROUP_BYTES_MAX} inline bytes;"
            " cut it into several calls, or give payloads as objects"
        )
    floor = state.acked.ack[0]
    if not far_away(state, chunks, floor):
        check_room(state, [(o.described.tenant, o.described.total, o.weight) for o in offers], floor)
    return keyed


def _accept(state: State, id: int, offer: Offer, bodies: dict[int, bytes]) -> Run:
    described, timed = offer.described, offer.delay_seconds or offer.deadline_seconds
    if timed:
        described = _dated(offer, state.now)
    name = described.tenant
    if offer.weight:
        steering.set_weight(state, name, offer.weight)
    tenant = state.tenants.get(name) or state.tenant(name)
    pass_ = place(state, tenant, id, described.total, state.acked.ack[0])
    run = Run.new(id, pass_, described, tenant, state.seed)
    body = _encode(described) if timed else _body(described, bodies)
    state.filling.rows.append(
        Row(id, pass_, name, described.not_before, described.metadata, body, offer.pages)
    )
    admit(state, run)
    if not run.total:
        ending.end(state, run, "submit of no chunks")
    return run


def _body(described: Described, bodies: dict[int, bytes]) -> bytes:
    """The stored form of a description that lives as long as the call, made once."""
    body = bodies.get(id(described))
    if body is None:
        body = bodies[id(described)] = _encode(described)
    return body


def _dated(offer: Offer, now: float) -> Described:
    """The description with what the offer counts from now on."""
    described = offer.described
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
