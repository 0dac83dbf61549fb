"""Ends: what is done, dead or ended stays so within its life, and attempts are bounded.

Guards: DESIGN promises 3 (nothing is delivered after its final state) and 5 (at most attempts_max deliveries).
"""

from __future__ import annotations

from fairway.testing.deliveries import ChunkId, Hand
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, View, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found

_MANY = 1_000_000  # more attempts than anybody makes


def check_nothing_after_final(history: History) -> list[Violation]:
    """A chunk that is done or dead is not handed out again; done is for ever, dead until a redrive."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        finals = [s for s in chunk.settlings if s.outcome in ("done", "already", "dead")]
        for final in finals:
            for hand in chunk.hands:
                if hand.begin < final.request.end:
                    continue
                if final.outcome == "dead" and facts.redriven(id[0], final.request.begin, hand.request.end):
                    continue
                what = f"chunk {id} was handed out after it was {final.outcome}"
                violations.append(found("nothing_after_final", what, final.request, hand.request))
    return violations


def check_dead_letters_are_dead(history: History) -> list[Violation]:
    """No chunk that is done is listed as a dead letter."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for listing in (r for r in history.of("list_dead") if r.answered):
        for one in listing.ok:
            id = (one["submission"], one["index"])
            for final in facts.chunk(id).settlings:
                if final.outcome in ("done", "already") and final.request.end < listing.begin:
                    what = f"chunk {id} was listed as dead after it was done"
                    violations.append(found("dead_letters_are_dead", what, final.request, listing))
    return violations


def check_dead_letters_are_listed(history: History) -> list[Violation]:
    """Who lists dead letters sees all that callers were told is dead, and nothing that cannot be."""
    facts = facts_of(history)
    listings = [r for r in history.of("list_dead") if r.answered]
    if not listings:
        return []
    hidden = facts.first_hidden
    may_die = _may_be_dead(facts, min(facts.config_ever("attempts_max")))
    told = [(id, fail) for id, chunk in facts.chunks.items() if (fail := _surely_died(chunk))]
    violations: list[Violation] = []
    for listing in listings:
        listed = [(one["submission"], one["index"]) for one in listing.ok]
        for id in listed:
            if listing.end < hidden and may_die.get(id, listing.end) >= listing.end:
                what = f"chunk {id} was listed as dead, which nobody gave up or held for a last attempt"
                violations.append(found("dead_letters_are_listed", what, listing))
        whole = len(listed) < listing.args.get("limit", 1000)
        for id, fail in told:
            asked = id[0] > listing.args.get("after", 0) and (whole or id < listed[-1])
            if asked and id not in set(listed) and fail.end < listing.begin and _lived_on(facts, id, listing):
                what = f"chunk {id} is dead and was not listed, and its submission went on"
                violations.append(found("dead_letters_are_listed", what, fail, listing))
    return violations


def _surely_died(chunk: Chunk) -> Request | None:
    """The call that was told that a chunk is dead, if no other call may have done it."""
    if any(s.verb == "complete" and s.outcome not in ("lost", "ended") for s in chunk.settlings):
        return None
    told = (s.request for s in chunk.settlings if s.verb == "fail" and s.outcome == "dead" and not s.forged)
    return next(told, None)


def _lived_on(facts: Facts, id: tuple[int, int], listing: Request) -> bool:
    """Whether the submission of a dead chunk was surely active at a listing: it was so later, and nobody redrove it."""
    ends = [
        v.request.end for v in facts.views.get(id[0], ()) if not v.ended and v.request.begin > listing.end
    ]
    ends += [d.request.end for d in facts.deliveries if d.begin > listing.end and id[0] in d.runs]
    return bool(ends) and not facts.redriven(id[0], 0, min(ends))


def check_nothing_after_end(history: History) -> list[Violation]:
    """Nothing of a submission that ended is handed out or accepted, unless it was redriven."""
    facts = facts_of(history)
    ended = {id: [view for view in views if view.ended] for id, views in facts.views.items()}
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for view in ended.get(id[0], ()):
            violations += _after_end(facts, id, chunk, view)
    return violations


def _after_end(facts: Facts, id: tuple[int, int], chunk: Chunk, view: View) -> list[Violation]:
    violations: list[Violation] = []
    for hand in chunk.hands:
        if hand.begin > view.request.end and not facts.redriven(id[0], view.request.begin, hand.request.end):
            what = f"chunk {id} was handed out after its submission was {view.shown['state']}"
            violations.append(found("nothing_after_end", what, view.request, hand.request))
    for one in chunk.settlings:
        late = (
            one.outcome in ("done", "retrying", "dead", "renewed", "released")
            and one.request.begin > view.request.end
        )
        if late and not facts.redriven(id[0], view.request.begin, one.request.end):
            what = f"{one.verb} of chunk {id} was accepted after its submission was {view.shown['state']}"
            violations.append(found("nothing_after_end", what, view.request, one.request))
    return violations


def check_attempts_are_bounded(history: History) -> list[Violation]:
    """No delivery has an attempt above attempts_max."""
    facts = facts_of(history)
    ever = max(facts.config_ever("attempts_max"))
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        for submission, start, _count, attempt in delivery.spans:
            own = delivery.runs.get(submission, {}).get("attempts_max", 0)
            if attempt > (own or ever) or attempt < 1:
                what = f"chunk {(submission, start)} was handed out for attempt {attempt} of {own or ever}"
                violations.append(found("attempts_are_bounded", what, delivery.request))
    return violations


def check_attempts_are_counted(history: History) -> list[Violation]:
    """A delivery that failed or ran out counts; one that was released does not."""
    facts = facts_of(history)
    hidden = any(r.hidden for r in history.of("reserve"))
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for first, second in zip(chunk.hands, chunk.hands[1:], strict=False):
            end = second.request.end
            if facts.forgotten(first.begin, end) or facts.redriven(id[0], first.begin, end):
                continue
            least, most = _attempt_after(chunk, first, second)
            if second.attempt < least or (second.attempt > most and not hidden):
                what = f"chunk {id} came as attempt {second.attempt} after {first.attempt}, not {least} to {most}"
                settled = [s.request for s in chunk.settled(first.receipt, "fail", "release")]
                violations.append(
                    found("attempts_are_counted", what, first.request, second.request, *settled)
                )
    return violations


def _attempt_after(chunk: Chunk, first: Hand, second: Hand) -> tuple[int, int]:
    """The least and the most that the next attempt can be."""
    one = first.attempt
    before = [
        s for s in chunk.settled(first.receipt, "fail", "release") if s.request.begin < second.request.end
    ]
    # A named reservation that is handed back again and again counts attempts of its own.
    more = _MANY if first.delivery.named else 0
    if any(s.outcome in ("retrying", "dead") for s in before):
        return one + 1, one + 1 + more
    if any(s.outcome == "released" for s in before):
        return one, one + more
    if first.delivery.named or any(not s.outcome for s in before):
        return one, one + 1 + more
    return one + 1, one + 1


def check_deliveries_are_bounded(history: History) -> list[Violation]:
    """Within one life a chunk has at most attempts_max deliveries that were not released."""
    facts = facts_of(history)
    ever = max(facts.config_ever("attempts_max"))
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        if len(chunk.hands) < 2:
            continue
        counted: list[Hand] = []
        for hand in chunk.hands:
            if counted:
                before = counted[-1].request
                if facts.redriven(id[0], before.begin, hand.request.end) or facts.forgotten(
                    before.begin, hand.request.end
                ):
                    counted = []
            released = any(s.outcome in ("", "released") for s in chunk.settled(hand.receipt, "release"))
            if not released and not hand.delivery.named:
                counted.append(hand)
        own = chunk.hands[-1].delivery.runs.get(id[0], {}).get("attempts_max", 0)
        if len(counted) > (own or ever):
            what = f"chunk {id} was delivered {len(counted)} times in one life, {own or ever} is the most"
            violations.append(found("deliveries_are_bounded", what, *(hand.request for hand in counted)))
    return violations


def check_no_retry_is_dead(history: History) -> list[Violation]:
    """A chunk that failed for good is not tried again."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for one in chunk.settlings:
            if one.verb == "fail" and one.outcome == "retrying" and not one.request.args.get("retry", True):
                what = f"chunk {id} failed for good, and is to be tried again"
                violations.append(found("no_retry_is_dead", what, one.request))
    return violations


def check_deaths_have_a_cause(history: History) -> list[Violation]:
    """A chunk that may be tried again is given up after attempts_max attempts, and not before."""
    facts = facts_of(history)
    least = min(facts.config_ever("attempts_max"))
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        hands = {hand.receipt: hand for hand in chunk.hands if not hand.delivery.named}
        for one in chunk.settlings:
            hand = hands.get(one.receipt) if one.verb == "fail" and one.outcome == "dead" else None
            if hand is None or not one.request.args.get("retry", True):
                continue
            if hand.attempt < (most := _attempts_of(hand, id, least)):
                what = f"chunk {id} was given up after attempt {hand.attempt} of {most}"
                violations.append(found("deaths_have_a_cause", what, hand.request, one.request))
    return violations + _buried_alive(facts, least)


def _attempts_of(hand: Hand, id: tuple[int, int], least: int) -> int:
    """How many attempts the submission of a chunk surely has; 0 if its answer came too late to tell."""
    run = hand.delivery.runs.get(id[0])
    return run["attempts_max"] or least if run is not None else 0


def _buried_alive(facts: Facts, least: int) -> list[Violation]:
    """Submissions with more dead chunks than callers gave up or held for a last attempt."""
    hidden = facts.first_hidden
    may_die: dict[int, list[int]] = {}  # by submission
    for id, place in _may_be_dead(facts, least).items():
        may_die.setdefault(id[0], []).append(place)
    violations: list[Violation] = []
    for id, views in facts.views.items():
        for view in views:
            most = sum(place < view.request.end for place in may_die.get(id, ()))
            if view.request.end < hidden and view.shown["failed"] > most:
                what = f"submission {id} says {view.shown['failed']} dead; at most {most} may be"
                violations.append(found("deaths_have_a_cause", what, view.request))
    return violations


def _may_be_dead(facts: Facts, least: int) -> dict[ChunkId, int]:
    """The places from which on chunks may be dead: somebody gave them up, or held them for a last attempt."""
    may_die: dict[ChunkId, int] = {}
    for id, chunk in facts.chunks.items():
        places = [s.request.begin for s in chunk.settlings if s.verb == "fail" and s.outcome in ("", "dead")]
        places += [
            hand.begin
            for hand in chunk.hands
            if hand.delivery.named or hand.attempt >= _attempts_of(hand, id, least)
        ]
        if places:
            may_die[id] = min(places)
    return may_die


def check_fail_fast_ends(history: History) -> list[Violation]:
    """Once a chunk of a submission that fails fast is dead, nothing of it is handed out in that life."""
    facts = facts_of(history)
    fast = {o.id for o in facts.offers if o.id and not o.known and o.given.get("policy") == "fail_fast"}
    dead = {
        id[0]: (s.request, s.request.end)
        for id, chunk in facts.chunks.items()
        for s in chunk.settlings
        if id[0] in fast and s.outcome == "dead"
    }
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        fail, end = dead.get(id[0], (None, 0))
        for hand in chunk.hands if fail is not None else ():
            if hand.begin > end and fail is not None and not facts.redriven(id[0], 0, hand.request.end):
                what = f"chunk {id} was handed out though another chunk is dead and its submission fails fast"
                violations.append(found("fail_fast_ends", what, fail, hand.request))
    return violations


def check_deadlines_hold(history: History) -> list[Violation]:
    """Nothing is delivered after the deadline of its submission."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        for submission in {span[0] for span in delivery.spans}:
            deadline = delivery.runs.get(submission, {}).get("deadline", 0.0)
            late = deadline and delivery.low > deadline + SLACK_SECONDS
            if late and not facts.redriven(submission, 0, delivery.request.end):
                what = f"submission {submission} was handed out at {delivery.low:.3f}, its deadline was {deadline:.3f}"
                violations.append(found("deadlines_hold", what, delivery.request))
    return violations
