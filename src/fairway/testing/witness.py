"""Witnesses: chunks of which callers can prove that they were waiting, untouched, at a time.

Guards: a witness is sound: it was accepted before, it was handed out for the first time after, and nothing that callers
did or may have done could have kept it from being handed out in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from fairway.testing.deliveries import ChunkId, Delivery, Hand
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, facts_of, over_at
from fairway.testing.history import History, Request


class Witness(msgspec.Struct):
    """A chunk that waited from the end of `accepted` until `hand`; not before the owner's clock said `due`."""

    id: ChunkId
    tenant: str
    accepted: Request
    due: float
    hand: Hand

    def waits_at(self, delivery: Delivery) -> bool:
        """Whether it surely waited when another delivery was made."""
        return self.accepted.end < delivery.request.begin and self.due <= delivery.low - SLACK_SECONDS


def witnesses_of(history: History) -> dict[ChunkId, Witness]:
    """All witnesses of a history."""
    memo = history.memo
    if "witnesses" not in memo:
        facts = facts_of(history)
        paused = {r.args["sub"] for r in history.of("pause") if r.possible and r.args.get("sub")}
        shaky = _named_may_shrink(history)
        witnesses = {}
        for id, chunk in facts.chunks.items():
            if chunk.hands and id[0] not in paused and not shaky:
                witness = _witness(facts, id, chunk.hands[0])
                if witness is not None:
                    witnesses[id] = witness
        memo["witnesses"] = witnesses
    return memo["witnesses"]


def returned_of(history: History) -> list[Witness]:
    """Chunks that waited again, as their lease ran out, failed or was released, and were handed out once more, later.

    `due` of such a witness is when the lease or its back-off was surely over.
    """
    memo = history.memo
    if "returned" not in memo:
        facts = facts_of(history)
        hidden = any(r.hidden for r in history.of("reserve"))
        paused = {r.args["sub"] for r in history.of("pause") if r.possible and r.args.get("sub")}
        sure = not hidden and not _named_may_shrink(history)
        chunks = [(id, chunk) for id, chunk in facts.chunks.items() if sure and id[0] not in paused]
        memo["returned"] = [w for id, chunk in chunks for w in _returned(facts, id, chunk)]
    return memo["returned"]


def _returned(facts: Facts, id: ChunkId, chunk: Chunk) -> Iterator[Witness]:
    for first, second in pairwise(chunk.hands):
        end = second.request.end
        run = second.delivery.runs.get(id[0])
        back = _came_back(facts, chunk, first, second)
        if run is None or back is None:
            continue
        since, due = back
        if not facts.redriven(id[0], 0, end) and not facts.forgotten(first.begin, end):
            yield Witness(id, run["tenant"], since, max(due, run["not_before"]), second)


def _came_back(facts: Facts, chunk: Chunk, first: Hand, second: Hand) -> tuple[Request, float] | None:
    """The call since which a chunk surely waited, once it was due, and when that was; None if it cannot be told."""
    for one in chunk.settled(first.receipt, "fail", "release"):
        if one.outcome == "released" and second.attempt == first.attempt:
            return one.request, 0.0
        if one.outcome == "retrying" and second.attempt == first.attempt + 1:
            failed = facts.clock_high(one.request.end, one.request.end_t)
            return one.request, failed + _back_off(facts, one.request, first.attempt)
    until = over_at(facts, chunk, first, second.begin)
    return (first.request, until) if until is not None and second.attempt == first.attempt + 1 else None


def _back_off(facts: Facts, fail: Request, attempt: int) -> float:
    """How long a chunk that failed stays away at most."""
    delay = fail.args.get("delay_seconds", -1.0)
    doubled = max(facts.config_ever("retry_delay_seconds")) * 2 ** (attempt - 1)
    return delay if delay >= 0 else min(doubled, max(facts.config_ever("retry_delay_seconds_max")))


def _named_may_shrink(history: History) -> bool:
    # Half of a named reservation may go back uncounted, unseen by anybody.
    return any(r.possible and r.args.get("consumer") for r in history.of("reserve"))


def _witness(facts: Facts, id: ChunkId, hand: Hand) -> Witness | None:
    offers = [o for o in facts.by_id.get(id[0], []) if not o.known]
    run = hand.delivery.runs.get(id[0])
    # A first seen attempt above 1 means a lease that nobody saw.
    if not offers or run is None or hand.attempt != 1:
        return None
    accepted, end = offers[0].request, hand.request.end
    if facts.redriven(id[0], 0, end) or facts.forgotten(accepted.begin, end):
        return None
    return Witness(id, run["tenant"], accepted, run["not_before"], hand)


def strategies_of(facts: Facts, request: Request) -> set[str]:
    """The strategies that a reserve may have gone by."""
    strategy = request.args.get("strategy", "")
    return {strategy} if strategy else set(facts.config("strategy", request))


def is_plain_fair(facts: Facts, request: Request) -> bool:
    """Whether a reserve surely went by plain Fair."""
    return strategies_of(facts, request) == {"Fair"}


def may_be_paused(history: History, begin: int, end: int, tenant: str) -> bool:
    """Whether the queue or the tenant may have been paused between two places."""
    pauses = [r for r in history.of("pause") if r.possible and not r.args.get("sub")]
    pauses = [r for r in pauses if r.args.get("tenant") in (None, tenant)]
    for pause in pauses:
        if not pause.args["on"] or pause.begin > end:
            continue
        target = pause.args.get("tenant")
        resumed = any(
            not r.args["on"] and r.args.get("tenant") == target and r.answered and pause.answered
            and r.begin > pause.end and r.end < begin
            for r in pauses
        )  # fmt: skip
        if not resumed:
            return True
    return False
