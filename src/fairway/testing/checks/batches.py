"""Batches: what a consumer was handed is settled whole, by the one that it was handed to.

Guards: a finish that was answered leaves nothing out that its epoch had; in the whole mode nothing was out elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.testing.deliveries import ChunkId, Delivery
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found


def _batches(facts: Facts) -> Iterator[tuple[Request, Delivery, list[Request]]]:
    """Each finish that was answered, with every reservation that its epoch surely had, by the answers that said so."""
    for finish in facts.history.of("finish"):
        if not finish.answered:
            continue
        for delivery, asked in facts.handed_to(finish):
            told = sorted((r for r in asked if 0 <= r.end < finish.begin), key=lambda r: r.end)
            if told and _kept(facts, delivery, finish) and not facts.forgotten(delivery.begin, finish.end):
                yield finish, delivery, told


def _kept(facts: Facts, delivery: Delivery, finish: Request) -> bool:
    """Whether its consumer gave signs of life all the time.

    What lapsed in a silence is no longer its own, though it is handed back as it was once something of it is done.
    """
    silent = min(facts.config_ever("consumer_silent_seconds"))
    signs = sorted(
        (r for r in (delivery.request, *delivery.again) if 0 <= r.end < finish.begin), key=lambda r: r.end
    )
    following = [*(sign.good for sign in signs[1:]), finish.good]
    return all(
        facts.seconds_at_most(sign, later) < silent for sign, later in zip(signs, following, strict=True)
    )


def _chunks(request: Request) -> Iterator[ChunkId]:
    for id, start, count, _ in request.ok["spans"]:
        yield from ((id, index) for index in range(start, start + count))


def check_finished_is_settled(history: History) -> list[Violation]:
    """What the epoch of a finished batch held is not handed out again, named in it or not, unless it failed."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for finish, delivery, told in _batches(facts):
        for id in _chunks(told[-1]):
            chunk = facts.chunk(id)
            back = any(
                s.request.begin < finish.end for s in chunk.settled(delivery.receipt, "fail", "release")
            )
            for hand in chunk.hands if not back else ():
                end = hand.request.end
                later = hand.receipt > delivery.receipt and hand.begin > finish.end
                if later and not facts.redriven(id[0], delivery.begin, end) and not facts.forgotten(0, end):
                    what = f"chunk {id} was handed out after the batch that held it was finished"
                    violations.append(found("finished_is_settled", what, told[-1], finish, hand.request))
    return violations


def check_whole_batches_are_whole(history: History) -> list[Violation]:
    """A batch that has to be whole is refused if a chunk of it was given back before, and nothing of it completed."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for finish, delivery, told in _batches(facts):
        if not finish.args["whole"] or _may_be_completed(facts, finish, delivery):
            continue
        for id in _chunks(told[0]):
            for back in facts.chunk(id).settled(delivery.receipt, "fail", "release"):
                gone = back.outcome in ("retrying", "dead", "released")
                if gone and told[0].end < back.request.begin and back.request.end < finish.begin:
                    what = f"a batch was finished as a whole, though chunk {id} of it was {back.outcome}"
                    violations.append(found("whole_batches_are_whole", what, told[0], back.request, finish))
    return violations


def _may_be_completed(facts: Facts, finish: Request, delivery: Delivery) -> bool:
    """Whether something else may have completed a chunk of the reservation, or have trimmed it, before."""
    args = delivery.request.args
    trimmed = any(
        r.possible and r.begin < finish.end and r.args["seq"] >= args.get("seq", 0)
        for r in facts.history.of("trim")
        if r.args["consumer"] == args["consumer"]
    )
    return trimmed or any(
        one.request is not finish and one.request.begin < finish.end
        for id, _ in delivery.picks()
        for one in facts.chunk(id).settled(delivery.receipt, "complete")
    )
