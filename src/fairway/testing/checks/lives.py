"""Lives: a redrive opens what was dead or skipped, and begins anew.

Guards: in a new life nothing is dead yet, and chunks that were through with the last one have all their attempts again.
"""

from __future__ import annotations

from itertools import pairwise

from fairway.testing.deliveries import ChunkId
from fairway.testing.facts import Chunk, Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found


def check_redrives_start_over(history: History) -> list[Violation]:
    """Who redrives is shown an active submission without dead chunks, in a later life, which it does not leave."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, redrives in facts.by_target["redrive"].items():
        told = sorted((r for r in redrives if r.answered), key=lambda r: r.end)
        for redrive in told:
            shown = redrive.ok
            if shown["state"] != "active" or shown["failed"] or shown["life"] < 2:
                what = f"submission {id} was redriven, and is {shown['state']} with {shown['failed']} dead"
                violations.append(found("redrives_start_over", f"{what} in life {shown['life']}", redrive))
        for redrive in told:
            after = (v for v in facts.views.get(id, ()) if v.request.begin > redrive.end)
            earlier = next((v for v in after if v.shown["life"] < redrive.ok["life"]), None)
            if earlier is not None:
                what = f"submission {id} was redriven, and then back in life {earlier.shown['life']}"
                violations.append(found("redrives_start_over", what, redrive, earlier.request))
        for first, second in pairwise(told):
            if first.end < second.begin and second.ok["life"] <= first.ok["life"]:
                what = f"submission {id} was redriven twice, into life {first.ok['life']} and {second.ok['life']}"
                violations.append(found("redrives_start_over", what, first, second))
    return violations


def check_lives_have_all_attempts(history: History) -> list[Violation]:
    """A chunk that was dead, or back before its submission ended, comes for attempt 1 in its next life."""
    facts = facts_of(history)
    if any(r.hidden for r in history.of("reserve")):
        return []
    return [
        violation
        for id, chunk in facts.chunks.items()
        if len(redrives := facts.by_target["redrive"].get(id[0], [])) == 1 and redrives[0].answered
        for violation in _carried_over(facts, id, chunk, redrives[0])
    ]


def _carried_over(facts: Facts, id: ChunkId, chunk: Chunk, redrive: Request) -> list[Violation]:
    before = [hand for hand in chunk.hands if hand.begin < redrive.end]
    after = [hand for hand in chunk.hands if hand.begin >= redrive.end]
    if not before or not after or before[-1].request.end > redrive.begin:
        return []
    last, first = before[-1], after[0]
    settled = [s for s in chunk.settled(last.receipt, "fail") if s.request.end < redrive.begin]
    dead = any(s.outcome == "dead" for s in settled)
    over = any(s.outcome == "retrying" for s in settled) and _was_over(facts, id[0], redrive)
    if not (dead or over) or first.delivery.named or first.attempt == 1:
        return []
    what = f"chunk {id} came for attempt {first.attempt} in its next life"
    return [found("lives_have_all_attempts", what, last.request, redrive, first.request)]


def _was_over(facts: Facts, id: int, redrive: Request) -> bool:
    """Whether the submission had surely ended before it was redriven: one that is active keeps what was tried."""
    return any(view.ended and view.request.end < redrive.begin for view in facts.views.get(id, ()))
