"""Shares: two tenants that stay eligible are served by their weights.

Guards: DESIGN promise 9: |n_i/w_i - n_j/w_j| <= 1/w_i + 1/w_j over any interval, under plain Fair and under Fair inside
a selection, whose turns are its own.
A tenant is eligible at a pick if a witness of it waits there; what they have had is counted anew where one may have had
nothing waiting between two picks, as its turn may have moved. A stretch ends where a reservation may be hidden from the
callers, where leases were forgotten, where something else may have been charged to the same turns, and where a weight
may have changed; that of a selection also where its turns may begin anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import msgspec

from fairway.fair.weights import W_DEFAULT, U
from fairway.limits import PLAN_IDLE_SECONDS, PLANS_MAX
from fairway.strategy.candidate import selects
from fairway.strategy.tiers import Selection
from fairway.testing.checks.choices import candidate_of
from fairway.testing.checks.windowed import shares_until
from fairway.testing.deliveries import ChunkId, Delivery
from fairway.testing.facts import Facts, facts_of
from fairway.testing.history import History, Request
from fairway.testing.meaning import Step, steps_of
from fairway.testing.violation import Violation, found
from fairway.testing.witness import Witness, may_be_paused, strategies_of, witnesses_of

_WITNESSES_ASKED_MAX = (
    50  # the next ones to be handed out are the likeliest to wait; asking fewer only proves less
)
_WHOLE: Selection = ()


class Pick(msgspec.Struct):
    """One dispatch: whose it was, and in which delivery of the stretch."""

    tenant: str
    at: int
    id: ChunkId


def check_fair_shares(history: History) -> list[Violation]:
    """The pair bound, for every two tenants and every stretch in which both surely stay eligible."""
    stretches = _stretches(facts_of(history), _WHOLE, shares_until(history))
    return [
        violation for stretch in stretches for violation in _drifted(history, _WHOLE, stretch, "fair_shares")
    ]


def check_fair_shares_of_selections(history: History) -> list[Violation]:
    """The same for what Fair takes of a selection, counted by itself.

    Its turns outlive its plan, but while it rests nobody sees who comes and goes. A small window sees a part of it.
    """
    facts = facts_of(history)
    asked = {request.args.get("strategy", "") for request in history.of("reserve")}
    if history.header.window or len(asked) + len(facts.config_ever("strategy")) > PLANS_MAX:
        return []
    used = {text for delivery in facts.deliveries for text in strategies_of(facts, delivery.request)}
    firsts = [steps_of(text)[0] for text in used if "SelectOnly" in text]
    selections = {_sorted(step.selection) for step in firsts if step.order == "Fair" and not step.limits}
    violations: list[Violation] = []
    for selection in sorted(selections - {_WHOLE}, key=str):
        for stretch in _stretches(facts, selection, len(history.lines)):
            violations += _drifted(history, selection, stretch, "fair_shares_of_selections")
    return violations


def _sorted(selection: Selection) -> Selection:
    return tuple(sorted(set(selection), key=str))


def _drifted(
    history: History, selection: Selection, stretch: list[Delivery], check: str
) -> Iterator[Violation]:
    facts = facts_of(history)
    if any(span[0] not in facts.tenants for delivery in stretch for span in delivery.spans):
        return
    picks = list(_picks(facts, selection, stretch))
    names = sorted({pick.tenant for pick in picks})
    if len(names) < 2:
        return
    weights = {name: _weights(facts, name, stretch) for name in names}
    eligible = {
        name: _eligible(history, _lines(history, selection).get(name, []), name, stretch, picks)
        for name in names
    }
    for pair in combinations(names, 2):
        worst = _worst(picks, pair, weights, eligible)
        if worst is not None:
            what = f"tenants {pair[0]!r} and {pair[1]!r} drifted apart by more than a turn each"
            where = f" in {dict(selection)}" if selection else ""
            several = sorted({pick.at for pick in picks[worst[0] : worst[1]]})
            yield found(check, what + where, *(stretch[at].request for at in several))


def _picks(facts: Facts, selection: Selection, stretch: list[Delivery]) -> Iterator[Pick]:
    """What was taken of the selection: where a first step takes without limits all of it, no later one takes any."""
    for at, delivery in enumerate(stretch):
        for id, _ in delivery.picks():
            if not selection or selects(selection, candidate_of(delivery.runs[id[0]])):
                yield Pick(facts.tenants[id[0]], at, id)


def _stretches(facts: Facts, selection: Selection, until: int) -> list[list[Delivery]]:
    """Runs of deliveries before a place that charged the turns of a selection, and all that did."""
    stretches: list[list[Delivery]] = []
    open_: list[Delivery] = []
    before: Delivery | None = None
    hidden = [r for r in facts.history.of("reserve") if r.hidden]
    for delivery in facts.deliveries:
        if delivery.request.end >= until:
            break
        charged = _charged(facts, delivery, selection)
        doubtful = charged is None or (charged and _is_anew(selection, open_, delivery))
        if doubtful or (before is not None and _breaks(facts, before, delivery, hidden)):
            stretches.append(open_)
            open_ = []
        if charged:
            open_.append(delivery)
        before = delivery
    return [stretch for stretch in (*stretches, open_) if len(stretch) > 0]


def _charged(facts: Facts, delivery: Delivery, selection: Selection) -> bool | None:
    """Whether a delivery was charged to the turns of a selection; None if it may have been, or with something else."""
    charged = _charge(frozenset(strategies_of(facts, delivery.request)), selection)
    told = not selection or not charged or all(span[0] in delivery.runs for span in delivery.spans)
    return charged if told else None


@lru_cache(1000)
def _charge(texts: frozenset[str], selection: Selection) -> bool | None:
    may = [text for text in texts if any(_is_fair(step, selection) for step in steps_of(text))]
    if not may:
        return False
    first = steps_of(may[0])[0]
    return True if len(texts) == 1 and _is_fair(first, selection) and not first.limits else None


def _is_fair(step: Step, selection: Selection) -> bool:
    return step.order == "Fair" and _sorted(step.selection) == selection


def _is_anew(selection: Selection, stretch: list[Delivery], after: Delivery) -> bool:
    """Whether the turns of a selection may have been made anew, or have rested, since a stretch of it."""
    if not selection or not stretch:
        return False
    before = stretch[-1]
    return before.receipt[0] != after.receipt[0] or after.high - before.low >= PLAN_IDLE_SECONDS


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


def _lines(history: History, selection: Selection) -> dict[str, list[Witness]]:
    """The witnesses of each tenant in a selection, in the order in which they were handed out."""
    lines_of: dict[Selection, dict[str, list[Witness]]] = history.memo.setdefault("lines", {})
    lines = lines_of.get(selection)
    if lines is None:
        lines = lines_of[selection] = {}
        for witness in sorted(witnesses_of(history).values(), key=lambda w: (w.hand.receipt, w.id)):
            run = witness.hand.delivery.runs[witness.id[0]]
            if not selection or selects(selection, candidate_of(run)):
                lines.setdefault(witness.tenant, []).append(witness)
    return lines


def _around(line: list[Witness], stretch: list[Delivery]) -> list[Witness]:
    """The witnesses that were handed out in a stretch, and the first ones after it."""
    first = bisect_left(line, stretch[0].receipt, key=lambda w: w.hand.receipt)
    last = bisect_right(line, stretch[-1].receipt, key=lambda w: w.hand.receipt)
    return line[first : last + _WITNESSES_ASKED_MAX]


def _eligible(
    history: History, line: list[Witness], tenant: str, stretch: list[Delivery], picks: list[Pick]
) -> list[int]:
    """For each pick, whether the tenant surely could have been chosen: 2 if something waited since the one before."""
    place = {pick.id: n for n, pick in enumerate(picks)}
    beyond = len(picks)
    mine: list[tuple[int, Witness]] = []
    for witness in _around(line, stretch):
        handed = place.get(witness.id, beyond)
        in_stretch = handed == beyond or stretch[picks[handed].at] is witness.hand.delivery
        # One that another strategy took in the middle of the stretch says little: leave it out.
        if in_stretch and (handed < beyond or witness.hand.receipt > stretch[-1].receipt):
            mine.append((handed, witness))
    mine.sort(key=lambda pair: (pair[0], pair[1].hand.receipt, pair[1].id))
    open_ = [not may_be_paused(history, d.request.begin, d.request.end, tenant) for d in stretch]
    eligible: list[int] = []
    first = 0
    for n, pick in enumerate(picks):
        while first < len(mine) and mine[first][0] < n:
            first += 1
        delivery, before = stretch[pick.at], stretch[picks[n - 1].at]
        near = mine[first : first + _WITNESSES_ASKED_MAX] if open_[pick.at] else []
        here = any(witness.waits_at(delivery) for _, witness in near)
        lasting = here and (
            before is delivery or any(w.waits_at(before) and w.waits_at(delivery) for _, w in near)
        )
        eligible.append(here + lasting)
    return eligible


def _worst(
    picks: list[Pick],
    pair: tuple[str, str],
    weights: dict[str, list[int | None]],
    eligible: dict[str, list[int]],
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
        lasting = min(eligible[first][n], eligible[second][n]) == 2
        if shares != (w1, w2) or not lasting:
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
