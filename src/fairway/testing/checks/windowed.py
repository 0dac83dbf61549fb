"""Windowed: up to where in a history a small window keeps the promises about order.

Guards: a promise is given up only from where rows that the window did not see may be passed over: it hands out what is
in memory, and the rest stands in the store in the order of the levels, as things were when it was placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairway.testing.facts import facts_of
from fairway.testing.history import History
from fairway.testing.witness import strategies_of

EVER: Final = 1 << 62  # beyond every place


def fifo_until(history: History) -> int:
    """The place from which on FIFO inside a tenant is not promised.

    Levels rise with ids there, so what is read first was submitted first, unless a row leaves its place: one that is
    parked, redriven or carried forward. Rows that a selection or limit asks the store for come before older ones.
    """
    return min(_disturbs_fifo(history), default=EVER) if history.header.window else EVER


def shares_until(history: History) -> int:
    """The place from which on shares are not promised.

    Levels are turns as forecast. That is exact for messages under constant weights of which each is handed out once, by
    Fair alone, while none is on its way to the store; a submission of many chunks may be alone in the window.
    """
    if not history.header.window:
        return EVER
    return min([*_disturbs_fifo(history), *_disturbs_shares(history)], default=EVER)


def _disturbs_fifo(history: History) -> Iterator[int]:
    facts = facts_of(history)
    if history.header.carries:
        yield 0
    for request in history.of("pause"):
        if request.possible and (request.args.get("tenant") is not None or request.args.get("sub")):
            yield request.begin
    for request in history.of("redrive"):
        if request.possible:
            yield request.begin
    for offered in facts.offers:
        if offered.given.get("delay_seconds") or offered.given.get("not_before"):
            yield offered.request.begin
    for request in history.of("reserve"):
        if request.args.get("consumer") or any("(" in one for one in strategies_of(facts, request)):
            yield request.begin


def _disturbs_shares(history: History) -> Iterator[int]:
    facts = facts_of(history)
    for op in ("cancel", "set_weight", "fail", "release"):
        for request in history.of(op):
            if request.possible:
                yield request.begin
    for offered in facts.offers:
        given = offered.given
        if given.get("total", 0) > 1 or given.get("weight") or given.get("deadline_seconds"):
            yield offered.request.begin
    for request in history.of("reserve"):
        if request.hidden or strategies_of(facts, request) != {"Fair"}:
            yield request.begin
    submits = {id(offered.request): offered.request for offered in facts.offers}.values()
    for delivery in facts.deliveries:
        request = delivery.request
        # What is placed and not yet stored cannot be read, and V goes on without it.
        beside = any(r.begin < request.end and (not r.answered or r.end > request.begin) for r in submits)
        if beside or any(attempt > 1 for _, attempt in delivery.picks()):
            yield request.begin
    yield from facts.losses
