"""Held: how many chunks the queue says are leased is how many callers hold.

Guards: a lease that surely lasts is counted, and one that was answered or has run out is not, whatever became of its
submission meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from fairway.testing.checks.ceilings import may_last
from fairway.testing.checks.leases import held_until
from fairway.testing.deliveries import ChunkId, Delivery, Hand
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found

_NOBODY = (1 << 64, 0)  # a receipt above all others


class _Out(msgspec.Struct):
    """How many chunks are surely out, and how many may be, by submission and by tenant."""

    sure: Counter[int | str] = msgspec.field(default_factory=Counter)
    possible: Counter[int | str] = msgspec.field(default_factory=Counter)


def check_leases_match_callers(history: History) -> list[Violation]:
    """Neither a submission nor a tenant has fewer leases than callers surely hold, nor more than they may hold."""
    facts = facts_of(history)
    if any(id[0] not in facts.tenants for id in facts.chunks):
        return []  # nobody knows whose they are
    hidden = facts.first_hidden
    violations: list[Violation] = []
    for census in (r for r in history.of("census") if r.answered):
        out = _out_at(facts, census)
        for name, spoken, leased in _told(census):
            if leased < out.sure[name] or (leased > out.possible[name] and census.end < hidden):
                what = (
                    f"{spoken} has {leased} leases; callers know of {out.sure[name]} to {out.possible[name]}"
                )
                violations.append(found("leases_match_callers", what, census))
    return violations


def _told(census: Request) -> Iterator[tuple[int | str, str, int]]:
    for one in census.ok["active"]:
        yield one["id"], f"submission {one['id']}", one["leased"]
    for one in census.ok["tenants"]:
        yield one["name"], f"tenant {one['name']!r}", one["leased"]


def _out_at(facts: Facts, census: Request) -> _Out:
    out = _Out()
    for id, chunk in facts.chunks.items():
        names = (id[0], facts.tenants[id[0]])
        if _may_be_out(facts, chunk, census):
            out.possible.update(names)
            if _is_out(facts, id, chunk, census):
                out.sure.update(names)
    return out


def _may_be_out(facts: Facts, chunk: Chunk, census: Request) -> bool:
    now = facts.clock_low(census.begin, census.begin_t)
    hands = (hand for hand in chunk.hands if hand.begin < census.end)
    return any(may_last(facts, chunk, hand, census.begin, census.begin, now) for hand in hands)


def _is_out(facts: Facts, id: ChunkId, chunk: Chunk, census: Request) -> bool:
    """Whether the last who was handed the chunk surely holds it still."""
    hand = next((hand for hand in reversed(chunk.hands) if 0 <= hand.request.end < census.begin), None)
    if hand is None:
        return False
    now = facts.clock_high(census.end, census.end_t)
    looks = Delivery(census, _NOBODY, now, now, now, [], {}, census.begin)
    return held_until(facts, id, hand, Hand(looks, 0)) > now + SLACK_SECONDS
