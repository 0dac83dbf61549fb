"""Steps: a strategy takes what a later step chooses only while nothing fits an earlier one.

Guards: a step is passed over only if what was taken surely did not fit it, and a chunk that waited surely did: its
values have room even if all that may be in flight is. A small window hands out what it sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fairway.strategy.candidate import selects, value_of
from fairway.strategy.tiers import Value
from fairway.testing.checks.ceilings import may_last, surely_out
from fairway.testing.checks.choices import candidate_of
from fairway.testing.deliveries import ChunkId, Delivery, Hand
from fairway.testing.facts import SLACK_SECONDS, Facts, facts_of
from fairway.testing.history import History
from fairway.testing.meaning import Step, steps_of
from fairway.testing.violation import Violation, found
from fairway.testing.witness import Witness, may_be_paused, strategies_of, witnesses_of

_Run = dict[str, Any]
_Name = tuple[str, Value]
_RUNS_ASKED_MAX = 200  # that wait and come to no proof
_CHUNKS_ASKED_MAX = 8  # of one submission; they mostly wait alike


def check_earlier_steps_come_first(history: History) -> list[Violation]:
    """What a later step chooses is handed out only if nothing waits that an earlier one surely takes."""
    facts = facts_of(history)
    if history.header.window or not any(_steps(facts, delivery) for delivery in facts.deliveries):
        return []
    hidden = facts.first_hidden
    waiting: dict[int, dict[ChunkId, Witness]] = {}
    for id, witness in sorted(witnesses_of(history).items()):
        waiting.setdefault(id[0], {})[id] = witness
    violations: list[Violation] = []
    for at, delivery in enumerate(facts.deliveries):
        steps = _steps(facts, delivery) if delivery.request.end < hidden else []
        look = _Look(facts, at, waiting) if steps else None
        for id, _ in delivery.picks():
            passed = look.passed_over(id, steps) if look is not None else None
            if passed is not None:
                what = (
                    f"chunk {id} came before chunk {passed.id}, which an earlier step of the strategy takes"
                )
                requests = (passed.accepted, delivery.request, passed.hand.request)
                violations.append(found("earlier_steps_come_first", what, *requests))
                look = None  # one of a reservation is enough
            waiting.get(id[0], {}).pop(id, None)
    return violations


def _steps(facts: Facts, delivery: Delivery) -> list[Step]:
    """The steps that a delivery surely went by; none if it is not sure, or if there is nothing to prefer."""
    texts = strategies_of(facts, delivery.request)
    steps = steps_of(min(texts)) if len(texts) == 1 and not delivery.named else []
    return steps if len(steps) > 1 else []


class _Look:
    """One reservation in the making: what was in flight before it, what it has taken, and what waits."""

    def __init__(self, facts: Facts, at: int, waiting: dict[int, dict[ChunkId, Witness]]) -> None:
        self.facts, self.waiting = facts, waiting
        self.earlier, self.delivery = facts.deliveries[:at], facts.deliveries[at]
        self.taken: Counter[_Name] = Counter()
        self.sure: dict[_Name, int] = {}
        self.possible: dict[_Name, int] = {}

    def passed_over(self, id: ChunkId, steps: list[Step]) -> Witness | None:
        """A witness that surely fits a step which the next pick surely does not, nor any before; then that is taken."""
        run = self.delivery.runs.get(id[0])
        if run is None:
            return None
        passed = None
        for step in steps:
            if passed is not None or self._may_fit(step, run):
                break
            passed = next(self._waiting_for(step), None)
        self.taken.update(name for name in _names(steps, run))
        return passed

    def _may_fit(self, step: Step, run: _Run) -> bool:
        if not selects(step.selection, candidate_of(run)):
            return False
        for name in _names([step], run):
            most = step.limits[name[0]].chunks
            if name not in self.sure:
                self.sure[name] = sum(1 for _ in surely_out(self.facts, self.earlier, self.delivery, name))
            if most is not None and self.sure[name] + self.taken[name] >= most:
                return False
        return True

    def _waiting_for(self, step: Step) -> Iterator[Witness]:
        """Witnesses that a step surely takes."""
        for chunks in islice(self.waiting.values(), _RUNS_ASKED_MAX):
            witness = next((w for w in islice(chunks.values(), _CHUNKS_ASKED_MAX) if self._waits(w)), None)
            run = witness.hand.delivery.runs[witness.id[0]] if witness is not None else None
            if witness is not None and run is not None and self._surely_fits(step, run):
                yield witness

    def _waits(self, witness: Witness) -> bool:
        request = self.delivery.request
        return witness.waits_at(self.delivery) and not may_be_paused(
            self.facts.history, request.begin, request.end, witness.tenant
        )

    def _surely_fits(self, step: Step, run: _Run) -> bool:
        if not selects(step.selection, candidate_of(run)):
            return False
        for name in _names([step], run):
            limit = step.limits[name[0]]
            least = limit.among(1)  # there is always one
            if name not in self.possible:
                self.possible[name] = sum(1 for _ in _possibly_out(self.facts, self.delivery, name))
            if least is None or self.possible[name] + self.taken[name] >= least:
                return False
        return True


def _names(steps: list[Step], run: _Run) -> set[_Name]:
    """The values of a run that steps limit."""
    candidate = candidate_of(run)
    keys = {key for step in steps for key in step.limits}
    return {(key, value) for key in keys if (value := value_of(candidate, key)) is not None}


def _possibly_out(facts: Facts, delivery: Delivery, name: _Name) -> Iterator[Hand]:
    """The chunks that may have the value and may have been in flight when a reservation was made."""
    looked = delivery.request
    for id, chunk in facts.chunks.items():
        for hand in chunk.hands:
            run = hand.delivery.runs.get(id[0])
            other = run is not None and value_of(candidate_of(run), name[0]) != name[1]
            if other or hand.receipt >= delivery.receipt:
                continue
            if may_last(facts, chunk, hand, looked.begin, looked.end, delivery.low - SLACK_SECONDS):
                yield hand
