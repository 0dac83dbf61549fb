"""Choices: what the orders beside Fair hand out first, and what a selection keeps out.

Guards: an order is looked at where it stands alone and everything fits in memory; a small window hands out what it
sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from fairway.strategy.candidate import Candidate, selects
from fairway.testing.deliveries import ChunkId, Delivery
from fairway.testing.facts import facts_of
from fairway.testing.history import History
from fairway.testing.meaning import steps_of
from fairway.testing.violation import Violation, found
from fairway.testing.witness import Witness, may_be_paused, strategies_of, witnesses_of

_Run = dict[str, Any]
_RUNS_ASKED_MAX: Final = 500  # that stand before a pick and have come to no proof
_CHUNKS_ASKED_MAX: Final = 8  # of one submission; they mostly wait alike

RANKS: Final[dict[str, Callable[[_Run], int]]] = {
    "OldestFirst": lambda run: run["id"],
    "NewestFirst": lambda run: -run["id"],
    "CustomPriority": lambda run: -run.get("priority", 0),
}
"""For each order how submissions rank, the lowest first; those that rank alike come as they like."""


def candidate_of(run: _Run) -> Candidate:
    """A run as a history shows it, for the strategy's own questions about values."""
    return Candidate(run["id"], run["tenant"], 0, run.get("metadata") or {}, 1, True)


def check_selections_hold(history: History) -> list[Violation]:
    """Whatever a strategy hands out, one of its steps selects it."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        texts = strategies_of(facts, delivery.request)
        if not any("SelectOnly" in text for text in texts):
            continue
        selections = [step.selection for text in texts for step in steps_of(text)]
        for id, run in delivery.runs.items():
            if not any(selects(selection, candidate_of(run)) for selection in selections):
                what = f"submission {id} was handed out, which no step of the strategy selects"
                violations.append(found("selections_hold", what, delivery.request))
    return violations


class _Line:
    """The witnesses of each submission in the order of one strategy, less those that were handed out so far."""

    def __init__(self, rank: Callable[[_Run], int], witnesses: dict[ChunkId, Witness]) -> None:
        self.rank = rank
        self.waiting: dict[int, dict[ChunkId, Witness]] = {}
        ranked = [(rank(w.hand.delivery.runs[id[0]]), id, w) for id, w in witnesses.items()]
        self.ranks: dict[int, int] = {}
        for place, id, witness in sorted(ranked, key=lambda one: one[:2]):
            self.waiting.setdefault(id[0], {})[id] = witness
            self.ranks[id[0]] = place

    def leaves(self, id: ChunkId) -> None:
        chunks = self.waiting.get(id[0], {})
        chunks.pop(id, None)
        if not chunks:
            self.waiting.pop(id[0], None)

    def before(self, run: _Run) -> Iterator[Witness]:
        """Some that rank before a run."""
        mine = self.rank(run)
        for submission, chunks in islice(self.waiting.items(), _RUNS_ASKED_MAX):
            if self.ranks[submission] >= mine:
                return
            yield from islice(chunks.values(), _CHUNKS_ASKED_MAX)


def check_orders_hold(history: History) -> list[Violation]:
    """The oldest, the newest or the most urgent submission comes first where that is the order."""
    if history.header.window:
        return []
    facts, witnesses = facts_of(history), witnesses_of(history)
    used = {text for delivery in facts.deliveries for text in strategies_of(facts, delivery.request)}
    lines = {name: _Line(rank, witnesses) for name, rank in RANKS.items() if name in used}
    violations: list[Violation] = []
    for delivery in facts.deliveries if lines else ():
        texts = strategies_of(facts, delivery.request)
        line = lines.get(next(iter(texts))) if len(texts) == 1 else None
        for submission, start, count, _ in delivery.spans:
            run = delivery.runs.get(submission)
            passed = None if line is None or run is None else _passed_over(history, line, run, delivery)
            if passed is not None:
                what = f"submission {submission} came before chunk {passed.id}, which {min(texts)} puts first"
                requests = (passed.accepted, delivery.request, passed.hand.request)
                violations.append(found("orders_hold", what, *requests))
                line = None  # one of a reservation is enough
            for other in lines.values():
                for index in range(start, start + count):
                    other.leaves((submission, index))
    return violations


def _passed_over(history: History, line: _Line, run: _Run, delivery: Delivery) -> Witness | None:
    for witness in line.before(run):
        if witness.waits_at(delivery) and not may_be_paused(
            history, delivery.request.begin, delivery.request.end, witness.tenant
        ):
            return witness
    return None
