"""Leases: one holder at a time, one receipt per reservation, and only the latest receipt counts.

Guards: DESIGN promise 2, and that a chunk is handed out again only after its earlier lease ended.
"""

from __future__ import annotations

from fairway.limits import RESTORED_LEASE_SECONDS
from fairway.testing.deliveries import ChunkId, Hand, name_of
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, Settling, facts_of, over_at
from fairway.testing.history import History, Request
from fairway.testing.signs import until_silent
from fairway.testing.violation import Violation, found

ACCEPTED = ("done", "already", "retrying", "dead", "renewed", "released")
_ENDS_LEASE = ("complete", "fail", "release")


def check_receipts_are_unique(history: History) -> list[Violation]:
    """An attempt (owner epoch, count) is issued once."""
    return [
        found("receipts_are_unique", f"receipt {first.receipt} was issued twice", first.request, second)
        for first, second in facts_of(history).twice
    ]


def check_no_double_lease(history: History) -> list[Violation]:
    """A chunk is not handed out again while an earlier lease of it lasts."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for first, second in zip(chunk.hands, chunk.hands[1:], strict=False):
            if first.delivery is second.delivery:
                what = f"chunk {id} stands twice in one reservation"
                violations.append(found("no_double_lease", what, first.request))
            elif (until := held_until(facts, id, first, second)) > second.delivery.high + SLACK_SECONDS:
                what = f"chunk {id} was handed out at {second.delivery.high:.3f}, but was leased until {until:.3f}"
                renewals = [one.request for one in chunk.settled(first.receipt, "renew")]
                violations.append(found("no_double_lease", what, first.request, second.request, *renewals))
    return violations


def held_until(facts: Facts, id: ChunkId, first: Hand, second: Hand) -> float:
    """When the first lease of a chunk surely lasted until; 0.0 if it may have ended in another way."""
    chunk, end = facts.chunks[id], second.request.end
    if facts.forgotten(first.begin, end):
        return 0.0
    # A lease of an ended submission is over as soon as its holder hears of the end.
    if any(
        one.request.begin < end and one.outcome != "lost"
        for one in chunk.settled(first.receipt, *_ENDS_LEASE)
    ):
        return 0.0
    if first.delivery.named and _may_let_go(facts, id, first, end):
        return 0.0
    until = first.delivery.deadline
    last_begin = -1
    for renewal in chunk.settled(first.receipt, "renew"):
        if renewal.request.begin >= end or renewal.outcome == "lost":
            continue
        if renewal.outcome != "renewed":
            return 0.0
        deadline = renewal.request.ok["deadline"]
        # Two renewals that overlap: nobody knows which came last.
        until = deadline if renewal.request.begin > last_begin else min(until, deadline)
        last_begin = max(last_begin, renewal.request.end)
    return until_silent(facts, first.request, until, second.begin) if first.delivery.named else until


def check_receipts_end_with_their_life(history: History) -> list[Violation]:
    """A lease that ran out is worth nothing after its submission ended and was redriven."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        redrives = [r for r in facts.by_target["redrive"].get(id[0], []) if r.answered]
        for hand in chunk.hands if redrives else ():
            for late in chunk.settled(hand.receipt, "complete"):
                redrive = next((r for r in redrives if r.end < late.request.begin), None)
                if late.outcome == "done" and redrive is not None and _was_over(facts, id, hand, redrive):
                    what = f"a result of chunk {id} came with receipt {hand.receipt} of an earlier life"
                    violations.append(
                        found("receipts_end_with_their_life", what, hand.request, redrive, late.request)
                    )
    return violations


def _was_over(facts: Facts, id: tuple[int, int], hand: Hand, redrive: Request) -> bool:
    """Whether the lease had surely run out, and its submission surely ended, before the redrive."""
    chunk = Chunk(facts.chunks[id].hands, [s for s in facts.chunks[id].settlings if s.verb == "renew"])
    until = over_at(facts, chunk, hand, redrive.begin)
    if until is None or until >= facts.clock_low(redrive.begin, redrive.begin_t) - SLACK_SECONDS:
        return False
    if facts.forgotten(hand.begin, redrive.end):
        return False
    ended = [
        view.request
        for view in facts.views.get(id[0], [])
        if view.ended and hand.request.end < view.request.begin and view.request.end < redrive.begin
    ]
    others = [r for r in facts.by_target["redrive"].get(id[0], []) if r is not redrive]
    return bool(ended) and not any(r.begin < redrive.end for r in others)


def _may_let_go(facts: Facts, id: ChunkId, hand: Hand, before: int) -> bool:
    """Whether somebody may have let a chunk of a named reservation go without naming it."""
    again = [r for r in _asked_for(facts, hand) if r.begin < before]
    # Who took the name over is handed half of it; whoever asks or trims is through with what has ended.
    taken_over = len({r.args["consumer_epoch"] for r in again}) > 1
    through = len(again) > 1 or facts.may_be_trimmed(hand.delivery, before)
    return taken_over or (through and may_have_ended(facts, id, hand, before))


def _asked_for(facts: Facts, hand: Hand) -> list[Request]:
    """Everybody who may have asked for the same named reservation, answered or not."""
    name = name_of(hand.request)
    reserves = facts.history.of("reserve")
    return [r for r in reserves if r.possible and r.args.get("consumer") and name_of(r) == name]


def check_latest_receipt_wins(history: History) -> list[Violation]:
    """No result is accepted after a later reservation of the chunk was handed out, and one attempt wins."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        wins = [s for s in chunk.settlings if s.verb == "complete" and s.outcome in ("done", "already")]
        if not wins:
            continue
        if len({win.receipt for win in wins}) > 1:
            what = f"two attempts won chunk {id}"
            violations.append(found("latest_receipt_wins", what, *(win.request for win in wins)))
        win = wins[0]
        for hand in chunk.hands:
            lost = facts.forgotten(hand.begin, win.request.end)
            if hand.receipt > win.receipt and not lost:
                what = (
                    f"a result of chunk {id} under {win.receipt} was accepted, though {hand.receipt} is later"
                )
                violations.append(found("latest_receipt_wins", what, hand.request, win.request))
    return violations


def check_stale_receipts_are_refused(history: History) -> list[Violation]:
    """What comes with a receipt that was answered, or that a later one replaced, changes nothing."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for settling in chunk.settlings:
            if settling.outcome not in ACCEPTED or (settling.verb == "complete"):
                continue
            for hand in chunk.hands:
                later = hand.receipt > settling.receipt and 0 <= hand.request.end < settling.request.begin
                if later and not facts.forgotten(hand.begin, settling.request.end):
                    what = f"{settling.verb} of chunk {id} was accepted though {hand.receipt} had it by then"
                    violations.append(
                        found("stale_receipts_are_refused", what, hand.request, settling.request)
                    )
        violations += _after_answer(facts, id, chunk)
    return violations


def _after_answer(facts: Facts, id: tuple[int, int], chunk: Chunk) -> list[Violation]:
    """Calls that came after their own receipt was failed, released or completed."""
    violations: list[Violation] = []
    answered = [s for s in chunk.settlings if s.outcome in ("retrying", "dead", "released", "done")]
    for first in answered:
        for second in chunk.settlings:
            if (
                second.receipt != first.receipt
                or second.outcome not in ACCEPTED
                or second.request.begin < first.request.end
            ):
                continue
            repeated = first.outcome == "done" and second.outcome == "already"
            if not repeated and not facts.forgotten(first.request.begin, second.request.end):
                what = (
                    f"{second.verb} of chunk {id} was accepted after its receipt ended with {first.outcome}"
                )
                violations.append(found("stale_receipts_are_refused", what, first.request, second.request))
    return violations


def check_good_receipts_count(history: History) -> list[Violation]:
    """The latest receipt of a chunk that is unfinished is not refused; a result may come after its lease ran out."""
    facts = facts_of(history)
    hidden = [r for r in history.of("reserve") if r.hidden]
    least = min(facts.config_ever("attempts_max"))
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        hands = {hand.receipt: hand for hand in chunk.hands if not hand.delivery.named}
        for one in chunk.settlings:
            hand = hands.get(one.receipt) if one.outcome in ("lost", "ended") and not one.forged else None
            if (
                hand is None
                or hand.request.end > one.request.begin
                or not _is_latest(chunk, hand, one, hidden)
            ):
                continue
            end = one.request.end
            if may_have_ended(facts, id, hand, end) or facts.redriven(id[0], 0, end):
                continue
            if facts.forgotten(hand.begin, end):
                continue
            own = hand.delivery.runs.get(id[0], {}).get("attempts_max", 0)
            again = one.verb == "complete" and hand.attempt < (own or least)
            if again or _surely_lasts(facts, chunk, hand, one):
                what = f"{one.verb} of chunk {id} under {hand.receipt}, the latest receipt, was told {one.outcome}"
                violations.append(found("good_receipts_count", what, hand.request, one.request))
    return violations


def may_have_ended(facts: Facts, id: ChunkId, hand: Hand, before: int) -> bool:
    """Whether a submission may have ended while one of its chunks was leased."""
    run = hand.delivery.runs.get(id[0], {})
    cancelled = any(r.begin < before for r in facts.by_target["cancel"].get(id[0], []))
    return cancelled or bool(run.get("deadline")) or run.get("policy") != "dead_letter"


def _is_latest(chunk: Chunk, hand: Hand, one: Settling, hidden: list[Request]) -> bool:
    """Whether surely nobody took the chunk after, and no other call ended the lease."""
    end = one.request.end
    later = any(other.receipt > hand.receipt and other.begin < end for other in chunk.hands)
    unseen = any(r.begin < end and not (r.answered and r.end < hand.begin) for r in hidden)
    ended = any(
        other is not one and other.request.begin < end and other.outcome != "lost"
        for other in chunk.settled(hand.receipt, *_ENDS_LEASE)
    )
    return not (later or unseen or ended)


def _surely_lasts(facts: Facts, chunk: Chunk, hand: Hand, one: Settling) -> bool:
    """Whether the lease had surely not run out when a call was answered, however often its owner was replaced."""
    least = min(hand.delivery.deadline - hand.delivery.high, RESTORED_LEASE_SECONDS)
    for other in chunk.settled(hand.receipt, "renew"):
        if other is not one and other.request.begin < one.request.end:
            asked = other.request.args.get("seconds") or min(facts.config("lease_seconds", other.request))
            least = min(least, asked)
    return one.request.end_t - hand.request.begin_t < least - SLACK_SECONDS


def check_already_means_done(history: History) -> list[Violation]:
    """`already` is said only of a receipt that completed the chunk before."""
    facts = facts_of(history)
    violations: list[Violation] = []
    unnamed = facts.ends_unnamed
    for id, chunk in facts.chunks.items():
        for one in chunk.settlings:
            if one.outcome == "already" and not _completed_elsewhere(chunk, one) and not unnamed:
                what = f"chunk {id} was called already completed under a receipt that never completed it"
                violations.append(found("already_means_done", what, one.request))
    return violations


def _completed_elsewhere(chunk: Chunk, one: Settling) -> bool:
    """Whether another call, or this one at an earlier place, may have completed the chunk with that receipt."""
    return any(
        other.outcome in ("", "done", "already")
        and (other.request is not one.request or other.place < one.place)
        and other.request.begin < one.request.end
        for other in chunk.settled(one.receipt, "complete")
    )


def check_forged_receipts_are_refused(history: History) -> list[Violation]:
    """A receipt that the queue did not make is worth nothing."""
    violations: list[Violation] = []
    for id, chunk in facts_of(history).chunks.items():
        for one in chunk.settlings:
            if one.forged and one.outcome in ACCEPTED:
                what = f"{one.verb} of chunk {id} was accepted with a forged receipt"
                violations.append(found("forged_receipts_are_refused", what, one.request))
    return violations


def check_settled_receipts_were_given(history: History) -> list[Violation]:
    """A call is accepted only for a chunk that the receipt's reservation held."""
    facts = facts_of(history)
    if any(r.hidden for r in history.of("reserve")):
        return []
    given = {(delivery.receipt, chunk) for delivery in facts.deliveries for chunk, _ in delivery.picks()}
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for one in chunk.settlings:
            if one.outcome in ACCEPTED and (one.receipt, id) not in given:
                what = f"{one.verb} of chunk {id} was accepted under {one.receipt}, which never held it"
                violations.append(found("settled_receipts_were_given", what, one.request))
    return violations
