"""Named reservations: the same (consumer, seq) is the same reservation, for one process at a time.

Guards: DESIGN section 6: handed back unchanged until trimmed; before its first completion it may only shrink.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from fairway.testing.deliveries import Delivery, name_of
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request, Try
from fairway.testing.violation import Violation, found


def _chunks(reply: dict[str, Any]) -> set[tuple[int, int]]:
    return {(id, index) for id, start, count, _ in reply["spans"] for index in range(start, start + count)}


def check_named_is_handed_back(history: History) -> list[Violation]:
    """Asked again, a named reservation never gains a chunk, and after its first completion never loses one."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        asked = sorted((delivery.request, *delivery.again), key=lambda r: r.end)
        for first, second in pairwise(asked):
            # Two calls that overlap may have been executed in either order.
            if second.begin < first.end:
                continue
            before, after = _chunks(first.ok), _chunks(second.ok)
            if after - before:
                what = f"reservation {delivery.receipt} gained {sorted(after - before)[:3]}"
                violations.append(found("named_is_handed_back", what, first, second))
                continue
            # Frozen by then: before the first was sent, whose answer may be as old, or by what is lost itself; but what
            # left with a submission that ended may be completed by its old receipt after a redrive.
            lost = before - after
            there = {id for id in lost if not facts.redriven(id[0], first.begin, second.begin)}
            if lost and (
                _completed_before(facts, delivery, _chunks(delivery.request.ok), first)
                or _completed_before(facts, delivery, there, second)
            ):
                what = f"reservation {delivery.receipt} lost {sorted(lost)[:3]} after its first completion"
                violations.append(found("named_is_handed_back", what, first, second))
    return violations


def _completed_before(
    facts: Facts, delivery: Delivery, chunks: set[tuple[int, int]], request: Request
) -> bool:
    """Whether one of the chunks was completed by this reservation before a request was first sent."""
    return any(
        one.outcome == "done" and one.request.end < request.begin
        for id in chunks
        for one in facts.chunk(id).settled(delivery.receipt, "complete")
    )


def check_taken_over_is_halved(history: History) -> list[Violation]:
    """Who takes a consumer over is handed half of what is not begun; of one chunk, an attempt more.

    Otherwise a chunk that ends each of its consumers would come for ever.
    """
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        asked = sorted((delivery.request, *delivery.again), key=lambda r: r.end)
        for first, second in pairwise(asked):
            anew = first.args["consumer_epoch"] < second.args["consumer_epoch"] and first.end < second.begin
            if not anew or not second.args.get("halve", True) or _may_be_frozen(facts, delivery, second):
                continue
            before, after = len(_chunks(first.ok)), len(_chunks(second.ok))
            attempts = [request.ok["spans"][0][3] for request in (first, second)]
            once = second.args["consumer_epoch"] == first.args["consumer_epoch"] + 1
            most = attempts[0] + 1 if once else attempts[1]
            counted = attempts[0] < attempts[1] <= most or not _is_whole(facts, first, before)
            if after > (before + 1) // 2 or not counted:
                what = f"reservation {delivery.receipt} was taken over with {after} of {before} chunks"
                what += f", for attempt {attempts[1]} after {attempts[0]}"
                violations.append(found("taken_over_is_halved", what, first, second))
    return violations


def _may_be_frozen(facts: Facts, delivery: Delivery, before: Request) -> bool:
    """Whether something of a reservation may be completed, or may have changed hands, before a request was answered."""
    settled = [
        one
        for id in _chunks(delivery.request.ok)
        for one in facts.chunk(id).settled(delivery.receipt, "complete")
    ]
    begun = any(one.request.begin < before.end and one.outcome != "lost" for one in settled)
    return begun or facts.forgotten(delivery.begin, before.end)


def _is_whole(facts: Facts, request: Request, chunks: int) -> bool:
    """Whether a reservation of one chunk surely was one when its consumer's epoch was first handed it."""
    name = name_of(request)
    same = [r for r in facts.history.of("reserve") if r.args.get("consumer") and name_of(r) == name]
    return chunks == 1 and not any(r.hidden or r.end < request.end for r in same if r is not request)


def check_one_seq_one_reservation(history: History) -> list[Violation]:
    """A (consumer, seq) has one receipt until it is trimmed or its consumer is silent too long."""
    facts = facts_of(history)
    silent = min(facts.config_ever("consumer_silent_seconds"))
    by_name: dict[tuple[str, int], list[Delivery]] = {}
    for delivery in facts.deliveries:
        if delivery.named:
            args = delivery.request.args
            by_name.setdefault((args["consumer"], args.get("seq", 0)), []).append(delivery)
    violations: list[Violation] = []
    for name, deliveries in by_name.items():
        for first, second in pairwise(deliveries):
            if second.high - first.low < silent:
                what = f"{name} got a second reservation, {second.receipt} after {first.receipt}"
                violations.append(found("one_seq_one_reservation", what, first.request, second.request))
    return violations


def _named_tries(history: History) -> list[tuple[Request, Try]]:
    return [
        (request, one)
        for request in history.of("reserve", "trim", "finish")
        if request.args.get("consumer")
        for one in request.tries
    ]


def check_consumers_are_fenced(history: History) -> list[Violation]:
    """Once a consumer's name was taken over, the one before is refused."""
    facts = facts_of(history)
    joins = [r for r in history.of("join") if r.answered]
    silent = min(facts.config_ever("consumer_silent_seconds"))
    violations: list[Violation] = []
    for request, one in _named_tries(history):
        epoch = facts.epoch_of(request)
        for join in joins if epoch else ():
            later = join.args["consumer"] == request.args["consumer"] and join.ok > epoch
            # A name that was silent for very long is forgotten, and its epochs begin again.
            forgotten = facts.seconds_at_most(join, one) >= 10 * silent
            if one.answered and later and join.end < request.begin and not forgotten:
                what = f"epoch {epoch} of {request.args['consumer']!r} spoke after {join.ok}"
                violations.append(found("consumers_are_fenced", what, join, request))
    epochs: dict[tuple[str, int], Request] = {}
    for join in sorted(joins, key=lambda r: r.end):
        key = (join.args["consumer"], join.ok)
        before = epochs.get(key)
        if before is not None and facts.seconds_at_most(before, join.good) < 10 * silent:
            violations.append(found("consumers_are_fenced", f"epoch {key} was given twice", before, join))
        epochs[key] = join
    return violations


def check_consumers_are_listed(history: History) -> list[Violation]:
    """A listing of consumers has each that has joined, with its latest epoch."""
    facts = facts_of(history)
    silent = min(facts.config_ever("consumer_silent_seconds"))
    violations: list[Violation] = []
    for listing in (r for r in history.of("consumers") if r.answered):
        epochs = {one["name"]: one["epoch"] for one in listing.ok}
        for join in (r for r in history.of("join") if r.answered and r.end < listing.begin):
            told = epochs.get(join.args["consumer"], 0)
            if told < join.ok and facts.seconds_at_most(join, listing.good) < 10 * silent:
                what = f"consumer {join.args['consumer']!r} was listed with epoch {told} after {join.ok}"
                violations.append(found("consumers_are_listed", what, join, listing))
    return violations


def check_trimmed_is_gone(history: History) -> list[Violation]:
    """A seq at or below a trimmed one is not handed out again."""
    facts = facts_of(history)
    silent = min(facts.config_ever("consumer_silent_seconds"))
    trims = [r for r in history.of("trim") if r.answered]
    violations: list[Violation] = []
    for request in history.of("reserve"):
        for trim in trims if request.answered and request.args.get("consumer") else []:
            same = (
                request.args["consumer"] == trim.args["consumer"]
                and request.args.get("seq", 0) <= trim.args["seq"]
            )
            # A name that was silent for very long is forgotten, with what it trimmed.
            forgotten = facts.seconds_at_most(trim, request.good) >= 10 * silent
            if same and trim.end < request.begin and not forgotten:
                what = f"seq {request.args.get('seq', 0)} was answered after {trim.args['seq']} was trimmed"
                violations.append(found("trimmed_is_gone", what, trim, request))
    return violations
