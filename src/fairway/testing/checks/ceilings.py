"""Ceilings: no pick under a hard limit is made while as many chunks of that value are surely in flight.

Guards: DESIGN promise 10, and that a limit that is free again lets work through. A limit counts only where every step
of the strategy that may have chosen the chunk has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.limits import RESERVER_SECONDS
from fairway.strategy.candidate import selects, value_of
from fairway.strategy.tiers import Value
from fairway.testing.checks.choices import candidate_of
from fairway.testing.checks.leases import held_until
from fairway.testing.checks.order import beside, may_have_left, waited
from fairway.testing.deliveries import ChunkId, Delivery, Hand
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, facts_of, over_at
from fairway.testing.history import History, Request, Try
from fairway.testing.meaning import Step, steps_of
from fairway.testing.violation import Violation, found
from fairway.testing.witness import strategies_of

_Name = tuple[str, Value]


def check_ceilings_hold(history: History) -> list[Violation]:
    """What was surely out when a reservation was made, and what it took, are together within the limit."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for at, delivery in enumerate(facts.deliveries):
        for (key, value), (most, taken) in _taken(facts, delivery).items():
            out = list(surely_out(facts, facts.deliveries[:at], delivery, (key, value)))
            if len(out) + taken > most:
                what = (
                    f"{taken} chunks with {key} = {value!r} were handed out while {len(out)} were in flight;"
                    f" the limit is {most}"
                )
                requests = {hand.receipt: hand.request for hand in out}.values()
                violations.append(found("ceilings_hold", what, *requests, delivery.request))
    return violations


def check_limits_open_again(history: History) -> list[Violation]:
    """A reserve under a limit on tenants comes back empty only if the tenant of whatever waits may be at its limit."""
    facts = facts_of(history)
    hidden = facts.first_hidden
    empty: list[tuple[Request, Try]] = []
    most: dict[int, int] = {}
    for request in history.of("reserve"):
        limit = _limit_of_tenants(strategies_of(facts, request)) if not request.args.get("consumer") else 0
        for one in request.tries if limit else ():
            surely = one.end <= hidden and not may_have_left(history, request, one)
            if one.answered and not one.ok["spans"] and surely:
                empty.append((request, one))
                most[one.begin] = limit
    violations: list[Violation] = []
    for request, one, near in beside(history, empty):
        outs: dict[str, int] = {}  # by tenant, whichever of its chunks waits
        for witness in near:
            if waited(history, witness, request, one):
                if (out := outs.get(witness.tenant)) is None:
                    out = outs[witness.tenant] = _possibly_out(facts, witness.tenant, one)
                if out < most[one.begin]:
                    what = f"a reserve came back empty while chunk {witness.id} waited and at most {out} were out"
                    requests = (witness.accepted, request, witness.hand.request)
                    violations.append(found("limits_open_again", what, *requests))
                    break
    return violations


def _limit_of_tenants(texts: set[str]) -> int:
    """The limit of a strategy that limits tenants and nothing else; 0 if it is another one."""
    steps = [step for text in texts for step in steps_of(text)]
    if len(steps) != 1 or steps[0].selection or [*steps[0].limits] != ["tenant"]:
        return 0
    limit = steps[0].limits["tenant"]
    return limit.chunks if limit.chunks is not None and limit.percent is None else 0


def _possibly_out(facts: Facts, tenant: str, one: Try) -> int:
    """How many chunks of a tenant may have been in flight while a reserve looked."""
    out = 0
    now = facts.clock_low(one.begin, one.begin_t)
    for id, chunk in facts.chunks.items():
        if facts.tenants.get(id[0]) != tenant:
            continue
        for hand in chunk.hands:
            if hand.begin > one.end:
                continue
            out += may_last(facts, chunk, hand, one.begin, one.begin, now)
    return out


def may_last(facts: Facts, chunk: Chunk, hand: Hand, begin: int, end: int, low: float) -> bool:
    """Whether a lease may be in flight between two places, where the owner's clock says `low` or more."""
    answered = any(
        s.outcome not in ("", "lost", "renewed")
        and s.request.end < begin
        # Not synced: with the power the lease is back.
        and not (s.outcome in ("released", "ended") and facts.forgotten(s.request.begin, end))
        for s in chunk.settled(hand.receipt, "complete", "fail", "release")
    )
    until = None if answered else over_at(facts, chunk, hand, end)
    return not answered and (until is None or until >= low)


def _taken(facts: Facts, delivery: Delivery) -> dict[_Name, tuple[int, int]]:
    """(limit, chunks taken) of each limited value in a reservation."""
    texts = strategies_of(facts, delivery.request)
    if not any("MaxSimultaneous" in text for text in texts):
        return {}
    steps = [step for text in texts for step in steps_of(text)]
    consumers = _consumers_at_most(facts, delivery) if any("%" in text for text in texts) else None
    taken: dict[_Name, tuple[int, int]] = {}
    for (submission, _), _ in delivery.picks():
        run = delivery.runs.get(submission)
        for name, most in _limits(steps, run, consumers).items() if run is not None else ():
            before = taken.get(name, (0, 0))
            taken[name] = max(before[0], most), before[1] + 1
    return taken


def _consumers_at_most(facts: Facts, delivery: Delivery) -> int | None:
    """How many consumers a share was taken of at most; None if that cannot be told."""
    reserves = [r for r in facts.history.of("reserve") if r.begin < delivery.request.end]
    if delivery.named or any(not r.number for r in reserves):
        return None
    since = delivery.low - RESERVER_SECONDS - SLACK_SECONDS
    recent = [
        r for r in reserves if not all(one.end >= 0 for one in r.tries) or _seen_last(facts, r) >= since
    ]
    return len({r.args.get("consumer") or (r.client, r.args.get("worker", 0)) for r in recent})


def _seen_last(facts: Facts, reserve: Request) -> float:
    """When a consumer that has all answers was last seen by this reserve, on whichever owner's clock."""
    return max(facts.clock_high(one.end, one.end_t) for one in reserve.tries)


def _limits(steps: list[Step], run: dict[str, Any], consumers: int | None) -> dict[_Name, int]:
    """The limits that bind a run whichever step chose it, with as many consumers as there may be."""
    candidate = candidate_of(run)
    may = [step.limits for step in steps if selects(step.selection, candidate)]
    limits: dict[_Name, int] = {}
    for key in set.intersection(*map(set, may)) if may else ():
        chunks = [limits_of[key].among(consumers) for limits_of in may]
        value = value_of(candidate, key)
        if value is not None and None not in chunks:
            limits[key, value] = max(n for n in chunks if n is not None)
    return limits


def surely_out(facts: Facts, earlier: list[Delivery], delivery: Delivery, name: _Name) -> Iterator[Hand]:
    """The chunks with the value that were in flight when the reservation was made, whatever happened unseen."""
    later = Hand(delivery, 0)
    for one in earlier:
        for id, attempt in one.picks():
            run = one.runs.get(id[0])
            if run is None or value_of(candidate_of(run), name[0]) != name[1]:
                continue
            hand = Hand(one, attempt)
            if _is_latest(facts, id, hand, delivery) and (
                held_until(facts, id, hand, later) > delivery.high + SLACK_SECONDS
            ):
                yield hand


def _is_latest(facts: Facts, id: ChunkId, hand: Hand, delivery: Delivery) -> bool:
    """Whether the chunk was not handed out again before: it counts once."""
    return not any(hand.receipt < other.receipt <= delivery.receipt for other in facts.chunks[id].hands)
