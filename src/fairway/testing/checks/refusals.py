"""Refusals: whoever is told that the state of the queue forbids something has somebody, or a silence, to thank for it.

Guards: a refusal is held against the queue only if nothing that callers did or may have done explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairway.testing.checks.leases import may_have_ended
from fairway.testing.deliveries import Delivery, Hand
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request, Try
from fairway.testing.signs import silence_of, until_silent
from fairway.testing.violation import Violation, found

_Requests = list[Request]


def check_refusals_have_a_cause(history: History) -> list[Violation]:
    """Nobody is refused for a trim, a take-over, an end, an open lease or a silence that cannot have been."""
    facts = facts_of(history)
    return [
        found("refusals_have_a_cause", f"a {request.op} was refused with {one.error}: {what}", *told, request)
        for request in history.of("reserve", "trim", "finish", "cancel", "pause", "redrive")
        for one in request.tries
        if one.error in _UNFOUNDED
        for what, told in _UNFOUNDED[one.error](facts, request, one)
    ]


def _not_trimmed(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    name, seq = request.args["consumer"], request.args.get("seq", 0)
    trims = [r for r in facts.history.of("trim") if r.possible and r.begin < one.end]
    if not any(r.args["consumer"] == name and r.args["seq"] >= seq for r in trims):
        yield f"nobody trimmed seq {seq} of {name!r}", []


def _not_taken_over(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    name, epoch = request.args["consumer"], facts.epoch_of(request)
    joins = [r for r in facts.history.of("join") if r.possible and r.args["consumer"] == name]
    mine = [r for r in joins if r.answered and r.ok == epoch]
    if len(mine) != 1 or mine[0].end > request.begin:  # it may speak with an epoch of another name
        return
    others = [r for r in joins if r is not mine[0] and r.begin < one.end]
    after = [r for r in others if not (r.answered and r.end < mine[0].begin)]
    if not after and facts.seconds_at_most(mine[0], one) < 10 * silence_of(facts):
        yield f"nobody took {name!r} over after epoch {epoch}", mine


def _not_ended(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    id = request.args["sub"]
    later = [v.request for v in facts.views.get(id, ()) if not v.ended and v.request.begin > one.end]
    later += [d.request for d in facts.deliveries if d.begin > one.end and any(s[0] == id for s in d.spans)]
    if later and not facts.by_target["redrive"].get(id):
        yield f"submission {id} was active later, and nobody redrove it", later[:1]


def _dead_or_skipped(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    id = request.args["sub"]
    if facts.by_target["redrive"].get(id):
        return
    for view in facts.views.get(id, ()):
        if view.shown["state"] in ("failed", "cancelled") and view.request.end < one.begin:
            yield f"submission {id} was {view.shown['state']}", [view.request]
            return


def _nothing_open(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    for delivery in (reservations := _reservations(facts, request, one)) or ():
        for id, _ in delivery.picks():
            settled = facts.chunk(id).settled(delivery.receipt, "complete", "fail", "release")
            if not any(s.outcome not in ("", "lost") and s.request.end < one.begin for s in settled):
                return
    if reservations is not None:
        yield "every chunk was answered for", [d.request for d in reservations]


def _not_silent(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    reservations = _reservations(facts, request, one)
    if reservations and all(_lasts(facts, delivery, one) for delivery in reservations):
        yield "its consumer was never silent", [d.request for d in reservations]


def _nothing_gone(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    reservations = _reservations(facts, request, one)
    for delivery in reservations or ():
        if _is_begun(facts, delivery, one):
            continue
        if not _lasts(facts, delivery, one):
            return
        for id, _ in delivery.picks():
            settled = facts.chunk(id).settled(delivery.receipt, "complete", "fail", "release")
            touched = any(s.request is not request and s.request.begin < one.end for s in settled)
            ended = may_have_ended(facts, id, Hand(delivery, 0), one.end)
            if touched or ended or delivery.again:
                return
    if reservations is not None:
        yield "nothing that it was handed is gone", [d.request for d in reservations]


def _is_begun(facts: Facts, delivery: Delivery, one: Try) -> bool:
    """Whether something of a reservation was completed, after which the rest need not be there."""
    return any(
        s.outcome == "done" and s.request.end < one.begin
        for id, _ in delivery.picks()
        for s in facts.chunk(id).settled(delivery.receipt, "complete")
    )


def _reservations(facts: Facts, request: Request, one: Try) -> list[Delivery] | None:
    """What a consumer was handed, up to the seq of a trim; None if somebody may hold what nobody saw."""
    name, seq = request.args["consumer"], request.args.get("seq", 1 << 62)
    reserves = [r for r in facts.history.of("reserve") if r.possible and r.args.get("consumer") == name]
    if any(r.hidden or not r.answered for r in reserves if r.begin < one.end):
        return None
    mine = [d for d in facts.deliveries if d.request.args.get("consumer") == name and d.begin < one.end]
    return [d for d in mine if d.request.args.get("seq", 0) <= seq]


def _lasts(facts: Facts, delivery: Delivery, one: Try) -> bool:
    """Whether no chunk of a reservation can have gone back by itself before an answer."""
    first = min((delivery.request, *delivery.again), key=lambda r: r.begin)
    until = until_silent(facts, first, facts.heard_at(first) + silence_of(facts), one.begin)
    return facts.clock_high(one.end, one.end_t) < until and not facts.forgotten(first.begin, one.end)


def _no_other_key(facts: Facts, request: Request, one: Try) -> Iterator[tuple[str, _Requests]]:
    id = request.args["sub"]
    for mine in facts.by_id.get(id, [])[:1]:
        where = (mine.tenant, mine.given.get("key", ""))
        same = [o for o in facts.offers if (o.tenant, o.given.get("key", "")) == where]
        if all(o.id == id for o in same if o.request.begin < one.end):
            yield f"nobody else used key {where[1]!r}", [mine.request]


_UNFOUNDED: dict[str, Callable[[Facts, Request, Try], Iterator[tuple[str, _Requests]]]] = {
    "seq_trimmed": _not_trimmed,
    "consumer_fenced": _not_taken_over,
    "already_ended": _not_ended,
    "nothing_to_redrive": _dead_or_skipped,
    "reservation_open": _nothing_open,
    "reservation_lapsed": _not_silent,
    "lease_lost": _nothing_gone,
    "key_conflict": _no_other_key,
}
