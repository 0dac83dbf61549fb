"""Acceptance: what was acknowledged exists, once, as it was offered, and ends in exactly one final state.

Guards: DESIGN promises 1 (acknowledged means stored) and 6 (nothing altered or invented).
"""

from __future__ import annotations

from itertools import pairwise

from fairway.limits import KEY_SECONDS
from fairway.testing.facts import Facts, Offered, View, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found


def check_accepted_is_found(history: History) -> list[Violation]:
    """An accepted submission is found from then on, until its retention may be over."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for request in history.of("show", "wait", "cancel", "redrive"):
        for one in request.tries:
            for offered in facts.by_id.get(request.args["sub"], []) if one.error == "not_found" else []:
                accepted = offered.request
                gone = facts.may_be_purged(offered.id, one.end, one.end_t)
                if accepted.end < one.begin and not gone:
                    what = f"submission {offered.id} was accepted, then not found"
                    violations.append(found("accepted_is_found", what, accepted, request))
    return violations


def check_accepted_as_offered(history: History) -> list[Violation]:
    """What is shown or handed out of a submission is what was offered."""
    facts = facts_of(history)
    violations: list[Violation] = []
    shown = [(id, view.shown, view.request) for id, views in facts.views.items() for view in views]
    shown += [
        (id, run, delivery.request) for delivery in facts.deliveries for id, run in delivery.runs.items()
    ]
    for id, one, request in shown:
        for offered in facts.by_id.get(id, []):
            differs = None if offered.known else _difference(offered, one)
            if differs:
                what = f"submission {id} was offered with another {differs}"
                violations.append(found("accepted_as_offered", what, offered.request, request))
    return violations


def _difference(offered: Offered, shown: dict[str, object]) -> str | None:
    defaults = {
        "tenant": "",
        "total": 1,
        "metadata": {},
        "info": "",
        "priority": 0,
        "policy": "fail_fast",
        "key": "",
    }
    for name, default in defaults.items():
        if name in shown and shown[name] != offered.given.get(name, default):
            return name
    return None


def check_one_effect(history: History) -> list[Violation]:
    """A submit that was sent several times made one submission per offer."""
    facts = facts_of(history)
    ids_of: dict[object, dict[int, Request]] = {}
    for id, views in facts.views.items():
        for view in views:
            if (mark := view.shown.get("metadata", {}).get("mark")) is not None:
                ids_of.setdefault(mark, {})[id] = view.request
    for delivery in facts.deliveries:
        for id, run in delivery.runs.items():
            if (mark := run.get("metadata", {}).get("mark")) is not None:
                ids_of.setdefault(mark, {})[id] = delivery.request
    for offered in facts.offers:
        if offered.id and not offered.known and offered.mark is not None:
            ids_of.setdefault(offered.mark, {})[offered.id] = offered.request
    submits = {offered.mark: offered.request for offered in facts.offers}
    violations: list[Violation] = []
    for mark, ids in ids_of.items():
        if mark not in submits:
            what = f"submission {min(ids)} with mark {mark} was never offered"
            violations.append(found("one_effect", what, *ids.values()))
        elif len(ids) > 1:
            what = f"one offer (mark {mark}) became {len(ids)} submissions: {sorted(ids)}"
            violations.append(found("one_effect", what, submits[mark], *ids.values()))
    return violations


def check_ids_rise(history: History) -> list[Violation]:
    """Ids rise in the order of acceptance, and inside a call in the order of the offers."""
    facts = facts_of(history)
    fresh = [o for o in facts.offers if o.id and not o.known]
    violations: list[Violation] = []
    highest: Offered | None = None
    ended: list[Offered] = sorted(fresh, key=lambda o: o.request.end)
    place = 0
    for offered in fresh:  # in the order of begins
        while place < len(ended) and ended[place].request.end < offered.request.begin:
            if highest is None or ended[place].id > highest.id:
                highest = ended[place]
            place += 1
        if highest is not None and offered.id <= highest.id:
            what = f"id {offered.id} was given after {highest.id}"
            violations.append(found("ids_rise", what, highest.request, offered.request))
    for first, second in pairwise(fresh):
        if first.request is second.request and second.id <= first.id:
            violations.append(found("ids_rise", "ids do not follow the order of the offers", first.request))
    return violations


def check_keys_name_one_submission(history: History) -> list[Violation]:
    """A tenant's idempotency key names one submission; other content is a conflict."""
    facts = facts_of(history)
    by_key: dict[tuple[str, str], list[Offered]] = {}
    for offered in facts.offers:
        if offered.given.get("key"):
            by_key.setdefault((offered.tenant, offered.given["key"]), []).append(offered)
    violations: list[Violation] = []
    for key, offers in by_key.items():
        answered = [o for o in offers if o.id]
        if not answered or _may_have_expired(facts, answered):
            continue
        if len({o.id for o in answered}) > 1:
            what = f"key {key} names several submissions"
            violations.append(found("keys_name_one_submission", what, *(o.request for o in answered)))
        elif sum(not o.known for o in answered) > 1:
            what = f"key {key} was called new more than once"
            violations.append(found("keys_name_one_submission", what, *(o.request for o in answered)))
        elif len({o.given.get("fingerprint", "") for o in answered}) > 1:
            what = f"key {key} was accepted with two contents"
            violations.append(found("keys_name_one_submission", what, *(o.request for o in answered)))
    return violations


def _may_have_expired(facts: Facts, offers: list[Offered]) -> bool:
    first = offers[0].request
    high = max(facts.clock_high(offered.request.end, offered.request.end_t) for offered in offers)
    return high - facts.clock_low(first.begin, first.begin_t) >= KEY_SECONDS


def check_conflicts_are_real(history: History) -> list[Violation]:
    """A key conflict is said only when another content may have taken the key."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for request in history.of("submit"):
        for one in request.tries:
            if one.error != "key_conflict":
                continue
            mine = {
                (g.get("tenant", ""), g["key"]): g.get("fingerprint", "")
                for g in request.args["offers"]
                if g.get("key")
            }
            contents = {
                (o.tenant, o.given.get("key"), o.given.get("fingerprint", ""))
                for o in facts.offers
                if o.request.begin < one.end
            }
            contents |= {
                (g.get("tenant", ""), g["key"], g.get("fingerprint", ""))
                for g in request.args["offers"]
                if g.get("key")
            }
            if not any(
                (tenant, key) in mine and content != mine[tenant, key]
                for tenant, key, content in contents
                if key
            ):
                what = "a key conflict was said, but nobody used the key for other content"
                violations.append(found("conflicts_are_real", what, request))
    return violations


def check_nothing_is_lost(history: History) -> list[Violation]:
    """At the end of a drained history every accepted submission is in a final state, with nothing left."""
    if not history.header.drained:
        return []
    drained = [place for place, note in history.notes if note.what == "drained"]
    if not drained:
        what = "the history promises a drain, but never says that it is drained"
        return [Violation("nothing_is_lost", what, tuple(range(len(history.lines))[-6:]))]
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, offers in facts.by_id.items():
        views = [
            view
            for view in facts.views.get(id, [])
            if view.request.begin > drained[-1] and view.request.op == "show"
        ]
        if not views:
            if not _purged(facts, history, id, drained[-1]):
                what = f"submission {id} was accepted and is not there at the end"
                violations.append(found("nothing_is_lost", what, offers[0].request))
            continue
        shown = views[-1].shown
        left = shown["total"] - shown["done"] - shown["failed"]
        if shown["state"] == "active" or (shown["state"] == "completed" and (left or shown["failed"])):
            what = f"submission {id} is {shown['state']} with {left} chunks left and {shown['failed']} dead at the end"
            violations.append(found("nothing_is_lost", what, offers[0].request, views[-1].request))
    return violations


def _purged(facts: Facts, history: History, id: int, drained: int) -> bool:
    """Whether the end says that it is not found, and its retention may be over."""
    for request in history.of("show"):
        for one in request.tries:
            if request.args["sub"] == id and one.begin > drained and one.error == "not_found":
                return facts.may_be_purged(id, one.end, one.end_t)
    return False


def check_what_is_over_leaves(history: History) -> list[Violation]:
    """What ended does not stay for ever: once it was swept, after its retention, it is not found."""
    swept = [place for place, note in history.notes if note.what == "swept"]
    return [
        found(
            "what_is_over_leaves", f"submission {request.args['sub']} is there though it was swept", request
        )
        for request in (history.of("show") if swept else ())
        if request.answered and request.begin > swept[-1]
    ]


def check_ends_have_a_cause(history: History) -> list[Violation]:
    """A submission is cancelled only if somebody did so, failed only after a failure, an expiry or its deadline.

    Of one that goes on after a dead letter nothing is left out.
    """
    facts = facts_of(history)
    touched = {id[0] for id, chunk in facts.chunks.items() if chunk.hands or chunk.settlings}
    hidden = any(r.hidden for r in history.of("reserve"))
    violations: list[Violation] = []
    for id, views in facts.views.items():
        for view in views:
            state, shown = view.shown["state"], view.shown
            cancels = [r for r in facts.by_target["cancel"].get(id, []) if r.begin < view.request.end]
            if state == "cancelled" and not cancels:
                violations.append(
                    found("ends_have_a_cause", f"submission {id} was cancelled by nobody", view.request)
                )
            if state == "failed" and id not in touched and not hidden and not shown.get("deadline"):
                violations.append(
                    found("ends_have_a_cause", f"submission {id} failed by itself", view.request)
                )
            if state == "failed" and not shown.get("deadline"):
                violations += _failed_too_soon(id, view)
            if state == "completed" and shown["done"] != shown["total"]:
                what = f"submission {id} is completed with {shown['done']} of {shown['total']} done"
                violations.append(found("ends_have_a_cause", what, view.request))
    return violations


def _failed_too_soon(id: int, view: View) -> list[Violation]:
    """Without a deadline it takes a dead chunk, and under dead_letter the rest goes on until it is finished."""
    shown = view.shown
    left = shown["total"] - shown["done"] - shown["failed"]
    if shown["failed"] and (not left or shown.get("policy") != "dead_letter"):
        return []
    what = f"submission {id} failed with {shown['failed']} chunks dead and {left} left"
    return [found("ends_have_a_cause", what, view.request)]


def check_one_end_per_life(history: History) -> list[Violation]:
    """Within one life a submission that ended stays as it ended."""
    violations: list[Violation] = []
    for id, views in facts_of(history).views.items():
        ended: dict[int, View] = {}
        for view in sorted(views, key=lambda one: one.request.begin):
            before = ended.get(view.shown["life"])
            if (
                before is not None
                and before.request.end < view.request.begin
                and _told(before) != _told(view)
            ):
                what = (
                    f"submission {id} was {before.shown['state']} and then {view.shown['state']} in one life"
                )
                violations.append(found("one_end_per_life", what, before.request, view.request))
            elif view.ended:
                ended.setdefault(view.shown["life"], view)
    return violations


def _told(view: View) -> tuple[str, int, int]:
    return view.shown["state"], view.shown["done"], view.shown["failed"]
