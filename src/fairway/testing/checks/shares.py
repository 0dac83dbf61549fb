"""Shares: two tenants that stay eligible are served by their weights.

Guards: DESIGN promise 9: |n_i/w_i - n_j/w_j| <= 1/w_i + 1/w_j over any interval, under plain Fair.
A tenant is eligible at a pick if a witness of it waits there; a stretch ends where a reservation may be hidden from the
callers, where leases were forgotten, and where a weight may have changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import combinations

import msgspec

from fairway.fair.weights import W_DEFAULT, U
from fairway.testing.checks.windowed import shares_until
from fairway.testing.deliveries import ChunkId, Delivery
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found
from fairway.testing.witness import Witness, may_be_paused, strategies_of, witnesses_of

_WITNESSES_ASKED_MAX = (
    50  # the next ones to be handed out are the likeliest to wait; asking fewer only proves less
)


class Pick(msgspec.Struct):
    """One dispatch: whose it was, and in which delivery of the stretch."""

    tenant: str
    at: int
    id: ChunkId


def check_fair_shares(history: History) -> list[Violation]:
    """The pair bound, for every two tenants and every stretch in which both surely stay eligible."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for stretch in _stretches(facts, shares_until(history)):
        if any(span[0] not in facts.tenants for delivery in stretch for span in delivery.spans):
            continue
        picks = [Pick(facts.tenants[id[0]], at, id) for at, d in enumerate(stretch) for id, _ in d.picks()]
        names = sorted({pick.tenant for pick in picks})
        if len(names) < 2:
            continue
        weights = {name: _weights(facts, name, stretch) for name in names}
        eligible = {name: _eligible(history, name, stretch, picks) for name in names}
        for pair in combinations(names, 2):
            worst = _worst(picks, pair, weights, eligible)
            if worst is not None:
                what = f"tenants {pair[0]!r} and {pair[1]!r} drifted apart by more than a turn each"
                several = sorted({pick.at for pick in picks[worst[0] : worst[1]]})
                violations.append(found("fair_shares", what, *(stretch[at].request for at in several)))
    return violations


def _stretches(facts: Facts, until: int) -> list[list[Delivery]]:
    """Runs of plain Fair deliveries before a place between which no dispatch is hidden from the callers."""
    stretches: list[list[Delivery]] = []
    open_: list[Delivery] = []
    before: Delivery | None = None
    hidden = [r for r in facts.history.of("reserve") if r.hidden]
    for delivery in facts.deliveries:
        if delivery.request.end >= until:
            break
        strategies = strategies_of(facts, delivery.request)
        doubtful = "Fair" in strategies and len(strategies) > 1  # it may have been charged, or not
        if doubtful or (before is not None and _breaks(facts, before, delivery, hidden)):
            stretches.append(open_)
            open_ = []
        if strategies == {"Fair"}:
            open_.append(delivery)
        before = delivery
    return [stretch for stretch in (*stretches, open_) if len(stretch) > 0]


def _breaks(facts: Facts, before: Delivery, after: Delivery, hidden: list[Request]) -> bool:
    if facts.forgotten(before.request.begin, after.request.end):
        return True
    # Counts that follow each other leave no room for a reservation that nobody saw.
    next_one = before.receipt[0] == after.receipt[0] and after.receipt[1] == before.receipt[1] + 1
    return not next_one and any(r.begin < after.request.end for r in hidden)


def _weights(facts: Facts, tenant: str, stretch: list[Delivery]) -> list[int | None]:
    """The tenant's weight at each delivery; None where it is not sure."""
    changes: dict[str, list[tuple[Request, int]]] = facts.history.memo.setdefault("weights", {})
    if not changes:
        changes[""] = []  # so that it is made once
        for request in facts.history.of("set_weight"):
            if request.possible:
                changes.setdefault(request.args["tenant"], []).append((request, request.args["weight"]))
        for offered in facts.offers:
            if offered.given.get("weight") and not offered.known:
                changes.setdefault(offered.tenant, []).append((offered.request, offered.given["weight"]))
    return [_weight_at(changes.get(tenant, []), delivery.request) for delivery in stretch]


def _weight_at(changes: list[tuple[Request, int]], at: Request) -> int | None:
    before = [(r, weight) for r, weight in changes if r.begin < at.end]
    if not before:
        return W_DEFAULT
    if any(not r.answered or r.end > at.begin for r, _ in before):
        return None
    last = max(r.begin for r, _ in before)
    newest = {weight for r, weight in before if r.end >= last}
    return newest.pop() if len(newest) == 1 else None


def _around(history: History, tenant: str, stretch: list[Delivery]) -> list[Witness]:
    """The tenant's witnesses that were handed out in a stretch, and the first ones after it."""
    lines: dict[str, list[Witness]] = history.memo.setdefault("lines", {})
    if not lines:
        for witness in sorted(witnesses_of(history).values(), key=lambda w: (w.hand.receipt, w.id)):
            lines.setdefault(witness.tenant, []).append(witness)
    line = lines.get(tenant, [])
    first = bisect_left(line, stretch[0].receipt, key=lambda w: w.hand.receipt)
    last = bisect_right(line, stretch[-1].receipt, key=lambda w: w.hand.receipt)
    return line[first : last + _WITNESSES_ASKED_MAX]


def _eligible(history: History, tenant: str, stretch: list[Delivery], picks: list[Pick]) -> list[bool]:
    """For each pick, whether the tenant surely could have been chosen."""
    place = {pick.id: n for n, pick in enumerate(picks)}
    beyond = len(picks)
    mine: list[tuple[int, Witness]] = []
    for witness in _around(history, tenant, stretch):
        handed = place.get(witness.id, beyond)
        in_stretch = handed == beyond or stretch[picks[handed].at] is witness.hand.delivery
        # One that another strategy took in the middle of the stretch says little: leave it out.
        if in_stretch and (handed < beyond or witness.hand.receipt > stretch[-1].receipt):
            mine.append((handed, witness))
    mine.sort(key=lambda pair: (pair[0], pair[1].hand.receipt, pair[1].id))
    open_ = [not may_be_paused(history, d.request.begin, d.request.end, tenant) for d in stretch]
    eligible: list[bool] = []
    first = 0
    for n, pick in enumerate(picks):
        while first < len(mine) and mine[first][0] < n:
            first += 1
        delivery = stretch[pick.at]
        near = mine[first : first + _WITNESSES_ASKED_MAX]
        eligible.append(open_[pick.at] and any(witness.waits_at(delivery) for _, witness in near))
    return eligible


def _worst(
    picks: list[Pick],
    pair: tuple[str, str],
    weights: dict[str, list[int | None]],
    eligible: dict[str, list[bool]],
) -> tuple[int, int] | None:
    """Places between which the two drifted beyond the bound, or None."""
    first, second = pair
    drift = low = high = low_at = high_at = 0
    shares: tuple[int, int] | None = None
    for n, pick in enumerate(picks):
        w1, w2 = weights[first][pick.at], weights[second][pick.at]
        if not (w1 and w2 and eligible[first][n] and eligible[second][n]):
            shares = None
            continue
        if shares != (w1, w2):
            shares, drift, low, high, low_at, high_at = (w1, w2), 0, 0, 0, n, n
        drift += w2 if pick.tenant == first else -w1 if pick.tenant == second else 0
        # A newcomer and a new weight are placed in whole units of a turn; two of them may decide a tie.
        most = w1 + w2 + 2 * w1 * w2 // U
        if drift - low > most:
            return low_at, n + 1
        if high - drift > most:
            return high_at, n + 1
        if drift < low:
            low, low_at = drift, n + 1
        if drift > high:
            high, high_at = drift, n + 1
    return None
