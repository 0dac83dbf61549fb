"""Reasons: what is told of a dead chunk is what its last failure said.

Guards: whoever looks why work was given up is shown the error, the attempts and the tenant of that very chunk.
"""

from __future__ import annotations

from typing import Any

from fairway.testing.deliveries import ChunkId
from fairway.testing.facts import Facts, Settling, facts_of
from fairway.testing.history import History
from fairway.testing.violation import Violation, found


def check_reasons_are_those_given(history: History) -> list[Violation]:
    """Dead letters, and submissions with one, are shown with the error that the call which gave the chunk up had."""
    facts = facts_of(history)
    shown = [
        (listing, (one["submission"], one["index"]), one)
        for listing in (r for r in history.of("list_dead") if r.answered)
        for one in listing.ok
    ]
    shown += [
        (view.request, (id, view.shown["error_index"]), view.shown)
        for id, views in facts.views.items()
        for view in views
        if view.shown.get("error_index", -1) >= 0
    ]
    violations: list[Violation] = []
    for request, id, told in shown:
        fail = _given_up(facts, id)
        differs = _difference(facts, id, fail, told) if fail is not None else None
        if fail is not None and differs:
            what = f"the death of chunk {id} was told with another {differs}"
            violations.append(found("reasons_are_those_given", what, fail.request, request))
    return violations


def _given_up(facts: Facts, id: ChunkId) -> Settling | None:
    """The call that surely gave a chunk up, in the only life that its submission had."""
    fails = [s for s in facts.chunk(id).settlings if s.verb == "fail" and s.outcome == "dead"]
    return fails[0] if len(fails) == 1 and not facts.by_target["redrive"].get(id[0]) else None


def _difference(facts: Facts, id: ChunkId, fail: Settling, told: dict[str, Any]) -> str | None:
    if "error" in told and told["error"] != fail.request.args.get("error", ""):
        return "error"
    if told.get("tenant", "") != facts.tenants.get(id[0], told.get("tenant", "")):
        return "tenant"
    hands = [
        hand for hand in facts.chunk(id).hands if hand.receipt == fail.receipt and not hand.delivery.named
    ]
    attempts = [hand.attempt for hand in hands]
    return "attempt" if attempts and told.get("attempts", attempts[0]) != attempts[0] else None
