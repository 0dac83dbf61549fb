"""Waiting: who came first is served first, by whatever strategy each of them waits.

Guards: DESIGN section 5 (who waits is served in the order in which all came). When a call came to its owner and how
long it stood in line is not seen, but for one that was told in the end that there is no work: it came at least as long
before as it was to wait, and stood in line at least as long after it was sent.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator

import msgspec

from fairway.strategy.candidate import selects
from fairway.testing.checks.choices import candidate_of
from fairway.testing.checks.order import may_have_left
from fairway.testing.deliveries import Delivery
from fairway.testing.facts import SLACK_SECONDS, Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.meaning import Step, steps_of
from fairway.testing.violation import Violation, found
from fairway.testing.witness import strategies_of


class _Wait(msgspec.Struct):
    """A reserve that waited in vain: surely from `since` until `until`."""

    request: Request
    since: float
    until: float


def check_first_come_first_served(history: History) -> list[Violation]:
    """Nobody who came later is given what an earlier one waits for."""
    facts = facts_of(history)
    waits = list(_waits(facts))
    if not waits:
        return []
    # What is handed back by name was not waiting for anybody.
    deliveries = sorted((d for d in facts.deliveries if not d.named), key=lambda d: d.request.begin)
    begins = [delivery.request.begin for delivery in deliveries]
    violations: list[Violation] = []
    for wait in waits:
        one = wait.request.tries[0]
        for delivery in deliveries[bisect(begins, one.begin) : bisect(begins, one.end)]:
            later = delivery.request
            within = wait.since < later.begin_t and later.end_t < wait.until
            if within and _could_be_given(facts, wait.request, delivery):
                what = f"who came later was given {delivery.spans[0][:2]}, and who waited already got nothing"
                violations.append(found("first_come_first_served", what, wait.request, later))
                break
    return violations


def _waits(facts: Facts) -> Iterator[_Wait]:
    """Waits of which the time is sure. A call without a number may be cut into several, each of which comes anew."""
    for request in facts.history.of("reserve"):
        one, seconds = request.tries[0], request.args.get("wait_seconds", 0.0)
        if not seconds or not request.number or request.args.get("consumer"):
            continue
        if not one.answered or one.ok["spans"] or may_have_left(facts.history, request, one):
            continue
        since, until = one.end_t - seconds + SLACK_SECONDS, one.begin_t + seconds - SLACK_SECONDS
        if since < until and not facts.restarted(one.begin, one.end):
            yield _Wait(request, since, until)


def _could_be_given(facts: Facts, waits: Request, delivery: Delivery) -> bool:
    """Whether one who waited could surely have been given some of what was handed out to another."""
    mine = [steps_of(text) for text in strategies_of(facts, waits)]
    theirs = [steps_of(text) for text in strategies_of(facts, delivery.request)]
    if all(steps == other for steps in mine for other in theirs):
        return True
    return all(
        _is_made(facts, steps) and any(_takes(steps, delivery, span[0]) for span in delivery.spans)
        for steps in mine
    )


def _is_made(facts: Facts, steps: list[Step]) -> bool:
    """Whether the plan of a strategy is surely made at once: nothing is taken from one that is in the making."""
    return len(facts.offers) * len(steps) <= facts.history.header.plan_steps


def _takes(steps: list[Step], delivery: Delivery, submission: int) -> bool:
    run = delivery.runs.get(submission)
    return run is not None and any(
        not step.limits and selects(step.selection, candidate_of(run)) for step in steps
    )
