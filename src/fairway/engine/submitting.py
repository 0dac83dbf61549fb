"""Submitting: offers become runs, all of a call or none.

Guards: a refused call has no effect; a key names one submission; cost does not depend on chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec

from fairway import limits
from fairway.engine import ending, steering
from fairway.engine.backlog import admit
from fairway.engine.commands import Accepted, Submit
from fairway.engine.lookups import Found
from fairway.engine.placing import Trail, check_room, far_away
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.tenant import Tenant
from fairway.errors import KeyConflict, TooLarge
from fairway.model.event import Happened, What
from fairway.model.ids import next_ids
from fairway.model.stored import KeyRow, Row
from fairway.model.submission import Described, Offer

_encode = msgspec.msgpack.Encoder().encode
_Alike = tuple[
    Described, str, int, dict[str, str | int], bytes, Tenant, Callable[[int, int], int], Callable[[Run], None]
]


def submit(state: State, command: Submit, found: Found) -> Accepted:
    """Accept offers."""
    offers = command.offers
    keyed = _check(state, offers)
    fresh = next_ids(state.now, state.last_id, state.queue_number, len(offers))
    if not keyed:
        if offers:
            _accept(state, fresh, offers)
        return Accepted(fresh, [False] * len(offers))
    known = _known_keys(state, offers, found)
    ids: list[int] = []
    flags: list[bool] = []
    new: list[Offer] = []
    for offer in offers:
        where = (offer.described.tenant, offer.described.key)
        id = known.get(where) if where[1] else None
        flags.append(id is not None)
        if id is None:
            id = fresh[len(new)]
            new.append(offer)
            known[where] = id
        ids.append(id)
    if new:
        _accept(state, fresh[: len(new)], new)
        _keep_keys(state, fresh[: len(new)])
    return Accepted(ids, flags)


def _check(state: State, offers: list[Offer]) -> bool:
    """Refuse what one call cannot hold; says whether any offer has a key."""
    size = sum(map(len, chain.from_iterable([offer.pages for offer in offers])))
    chunks = sum([offer.described.total for offer in offers])
    keyed = any([offer.described.key for offer in offers])  # noqa: C419
    if len(offers) > limits.CALL_OFFERS_MAX or size > limits.GROUP_BYTES_MAX:
        raise TooLarge(
            f"one call takes at most {limits.CALL_OFFERS_MAX} submissions and {limits.GROUP_BYTES_MAX} inline bytes;"
            " cut it into several calls, or give payloads as objects"
        )
    floor = state.window.ack[0]
    if not far_away(state, chunks, floor):
        check_room(state, [(o.described.tenant, o.described.total, o.weight) for o in offers], floor)
    return keyed


def _accept(state: State, ids: list[int], offers: list[Offer]) -> None:
    """Make a run of each offer, place it and write its row."""
    seed, now, floor, filling = state.seed, state.now, state.window.ack[0], state.filling
    trails: dict[str, Trail] = {}
    alike: dict[int, _Alike] = {}  # messages of one call share descriptions
    ready: list[Run] = []
    others: list[Run] = []  # they wait for something, or have no chunks
    spans: list[tuple[int, ...]] = []
    names: list[str] = []
    add_row, add_span, add_name = filling.rows.append, spans.append, names.append
    for new_id, offer in zip(ids, offers, strict=True):
        described = offer.described
        if offer.weight or offer.delay_seconds or offer.deadline_seconds:
            described = _wished(state, offer, trails)
        known = alike.get(id(described))
        if known is None:
            trail = trails.get(described.tenant)
            if trail is None:
                trail = trails[described.tenant] = Trail(state, described.tenant, floor)
            waits = (
                not described.total or described.not_before > now or described.deadline or trail.tenant.paused
            )
            known = alike[id(described)] = (
                described, described.tenant, described.total, described.metadata, _encode(described),
                trail.tenant, trail.follow, (others if waits else ready).append,
            )  # fmt: skip
        d, name, total, metadata, body, tenant, follow, add_run = known
        pass_ = follow(new_id, total)
        add_row(Row(new_id, pass_, name, d.not_before, metadata, body, offer.pages, d.deadline))
        # `Run.new`, written out
        add_run(Run(new_id, name, d.priority, metadata, total, False, d, tenant, total, pass_, seed))
        add_span((new_id, 0, total))
        add_name(name)
    for trail in trails.values():
        trail.end()
    state.last_id = ids[-1]
    filling.events.append(Happened(What.SUBMITTED, now, spans, tenants=names))
    filling.sync = True
    admit(state, ready, others)
    for run in others:
        if not run.total:
            ending.end(state, run, "submit of no chunks")
        elif 0 < run.described.deadline <= now:
            ending.end_late(state, run)  # before whoever waits is served


def _wished(state: State, offer: Offer, trails: dict[str, Trail]) -> Described:
    """The description with what the offer counts from now on; its tenant gets the weight that it asks for."""
    described = offer.described
    if offer.weight:
        steering.set_weight(state, described.tenant, offer.weight)
        if described.tenant in trails:
            trails[described.tenant].w = offer.weight
    not_before, deadline = described.not_before, described.deadline
    if offer.delay_seconds:
        not_before = max(not_before, state.now + offer.delay_seconds)
    if offer.deadline_seconds:
        deadline = state.now + offer.deadline_seconds
    return msgspec.structs.replace(described, not_before=not_before, deadline=deadline)


def _known_keys(state: State, offers: list[Offer], found: Found) -> dict[tuple[str, str], int]:
    """The keys of a call that name a submission already; KeyConflict if any stands for other content."""
    known: dict[tuple[str, str], int] = {}
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
        known[where] = key.id
    return known


def _keep_keys(state: State, ids: list[int]) -> None:
    """The keys of new runs; one that has ended already, without chunks or too late, has kept its key by its end."""
    for id in ids:
        run = state.runs.get(id)
        if run is not None and run.described.key:
            row = KeyRow(run.tenant, run.described.key, id, run.described.fingerprint)
            state.filling.keys.append(row)
            state.recent_keys.put((row.tenant, row.key), row, state.number)
