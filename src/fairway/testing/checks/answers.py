"""Answers: their shape fits the question.

Guards: a batch is never larger than asked, every chunk of a call has an outcome, and errors are known ones.
"""

from __future__ import annotations

from fairway.errors import all_errors
from fairway.testing.facts import SLACK_SECONDS, facts_of
from fairway.testing.history import History
from fairway.testing.violation import Violation, found

_OUTCOMES = {
    "complete": {"done", "already", "lost", "ended"},
    "fail": {"retrying", "dead", "lost", "ended"},
    "renew": {"renewed", "lost", "ended"},
    "release": {"released", "lost", "ended"},
}


_SHAPES = {"submit": "ids", "reserve": "spans", "finish": "rest", **dict.fromkeys(_OUTCOMES, "outcomes")}


def check_answers_fit_their_calls(history: History) -> list[Violation]:
    """An answer is one to its call. The other checks cannot read a history where it is not."""
    return [
        found("answers_fit_their_calls", f"a {request.op} was answered with {sorted(one.ok or ())}", request)
        for op, wanted in _SHAPES.items()
        for request in history.of(op)
        for one in request.tries
        if one.answered and (not isinstance(one.ok, dict) or wanted not in one.ok)
    ]


def check_batches_fit(history: History) -> list[Violation]:
    """A reservation has at most `max` chunks, all inside their submissions."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        many = sum(span[2] for span in delivery.spans)
        # A named reservation is handed back as it was made, whatever is asked for now.
        if many > delivery.request.args.get("max", 1) and not delivery.named:
            violations.append(found("batches_fit", f"{many} chunks are more than asked", delivery.request))
        for submission, start, count, _ in delivery.spans:
            total = delivery.runs.get(submission, {}).get("total")
            if count < 1 or start < 0 or (total is not None and start + count > total):
                what = f"chunks {start} to {start + count - 1} are not in submission {submission}"
                violations.append(found("batches_fit", what, delivery.request))
    return violations


def check_every_chunk_has_an_outcome(history: History) -> list[Violation]:
    """complete, fail, renew and release answer for each chunk, in the words of that verb."""
    violations: list[Violation] = []
    for request in history.of(*_OUTCOMES):
        if not request.answered:
            continue
        asked = sum(span[2] for part in request.args["parts"] for span in part[2])
        told = sum(many for _, many in request.ok["outcomes"])
        strange = {outcome for outcome, _ in request.ok["outcomes"]} - _OUTCOMES[request.op]
        if asked != told or strange:
            what = f"{told} outcomes for {asked} chunks, {sorted(strange)} among them unknown"
            violations.append(found("every_chunk_has_an_outcome", what, request))
    return violations


def check_errors_are_known(history: History) -> list[Violation]:
    """Every error has a code of Fairway's."""
    codes = set(all_errors())
    return [
        found("errors_are_known", f"the error {one.error!r} is not one of Fairway's", request)
        for request in history.requests
        for one in request.tries
        if one.error and one.error not in codes
    ]


def check_renewals_last(history: History) -> list[Violation]:
    """A renewed lease lasts at least the seconds that were asked for."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for request in history.of("renew"):
        renewed = request.answered and any(outcome == "renewed" for outcome, _ in request.ok["outcomes"])
        if not renewed or facts.restarted(request.begin, request.end):
            continue
        seconds = request.args.get("seconds") or min(facts.config("lease_seconds", request))
        least = facts.clock_low(request.begin, request.begin_t) + seconds
        if request.ok["deadline"] < least - SLACK_SECONDS:
            what = f"a lease was renewed until {request.ok['deadline']:.3f}, asked was {least:.3f}"
            violations.append(found("renewals_last", what, request))
    return violations
