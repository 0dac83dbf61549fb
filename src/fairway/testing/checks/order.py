"""Order: FIFO inside a tenant, and never "no work" while work surely waits.

Guards: DESIGN section 3 (FIFO inside a tenant) and section 5 (never "no work" when eligible work exists).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain, islice

from fairway.testing.checks.windowed import fifo_until
from fairway.testing.deliveries import ChunkId
from fairway.testing.facts import SLACK_SECONDS, facts_of
from fairway.testing.history import History, Request, Try
from fairway.testing.violation import Violation, found
from fairway.testing.witness import (
    Witness,
    is_plain_fair,
    may_be_paused,
    returned_of,
    strategies_of,
    witnesses_of,
)


class _Line:
    """The witnesses of one tenant in order, of which those handed out so far have left."""

    def __init__(self) -> None:
        self.waiting: list[Witness] = []
        self.gone: set[ChunkId] = set()
        self.first = 0

    def passed_over(self, mine: Witness) -> Witness | None:
        """One that stood before and waited already."""
        while self.first < len(self.waiting) and self.waiting[self.first].id in self.gone:
            self.first += 1
        for place in range(self.first, len(self.waiting)):
            other = self.waiting[place]
            if other.id >= mine.id:
                return None
            if other.id not in self.gone and other.waits_at(mine.hand.delivery):
                return other
        return None


def check_fifo_inside_a_tenant(history: History) -> list[Violation]:
    """Under plain Fair a tenant's fresh chunks come in the order of submission and index."""
    facts = facts_of(history)
    witnesses = witnesses_of(history)
    lines: dict[str, _Line] = {}
    for witness in sorted(witnesses.values(), key=lambda w: w.id):
        lines.setdefault(witness.tenant, _Line()).waiting.append(witness)
    violations: list[Violation] = []
    until = fifo_until(history)
    for delivery in facts.deliveries:
        fair, told = is_plain_fair(facts, delivery.request) and delivery.request.end < until, False
        for id, _ in delivery.picks():
            mine = witnesses.get(id)
            if mine is None or mine.hand.delivery is not delivery:
                continue
            line = lines[mine.tenant]
            passed = line.passed_over(mine) if fair and not told else None
            if passed is not None:
                told = True
                what = f"chunk {id} of tenant {mine.tenant!r} came before {passed.id}, which waited already"
                requests = (passed.accepted, delivery.request, passed.hand.request)
                violations.append(found("fifo_inside_a_tenant", what, *requests))
            line.gone.add(id)
    return violations


def check_no_wrong_empty_answer(history: History) -> list[Violation]:
    """A reserve comes back empty only if no chunk was surely waiting while it looked for work."""
    empty = [
        (request, one)
        for request in history.of("reserve")
        for one in request.tries
        if one.answered
        and not one.ok["spans"]
        and not request.args.get("consumer")
        and not may_have_left(history, request, one)
        # A strategy that selects or limits may find nothing though something waits.
        and not any("(" in strategy for strategy in strategies_of(facts_of(history), request))
    ]
    violations: list[Violation] = []
    for request, one, near in beside(history, empty):
        witness = next((w for w in near if waited(history, w, request, one)), None)
        if witness is not None:
            what = f"a reserve came back empty while chunk {witness.id} waited"
            requests = (witness.accepted, request, witness.hand.request)
            violations.append(found("no_wrong_empty_answer", what, *requests))
    return violations


def may_have_left(history: History, request: Request, one: Try) -> bool:
    """Whether the client may have said goodbye before the answer: whoever leaves waits no more."""
    return any(r.client == request.client and r.begin < one.end for r in history.of("goodbye"))


def beside(
    history: History, tries: list[tuple[Request, Try]]
) -> Iterator[tuple[Request, Try, Iterator[Witness]]]:
    """Each try with the witnesses that were accepted before its end and not yet handed out at its begin."""
    both = (*witnesses_of(history).values(), *returned_of(history))
    coming = sorted(both, key=lambda w: w.accepted.end)
    ends = [witness.accepted.end for witness in coming]
    waiting: list[tuple[int, int, Witness]] = []  # a heap by the begin of the reserve that took it
    came = 0
    for request, one in sorted(tries, key=lambda pair: pair[1].begin):
        while came < len(coming) and ends[came] < one.begin:
            heappush(waiting, (coming[came].hand.request.begin, came, coming[came]))
            came += 1
        while waiting and waiting[0][0] <= one.begin:
            heappop(waiting)
        later = islice(coming, came, bisect_left(ends, one.end))
        yield request, one, chain((witness for _, _, witness in waiting), later)


def waited(history: History, witness: Witness, request: Request, one: Try) -> bool:
    """Whether the witness surely waited at a moment at which the reserve was surely looking for work."""
    accepted, handed = witness.accepted, witness.hand.request.begin
    if accepted.end < one.begin:  # it looks when it comes
        looked, there = one.begin, handed > one.end
    else:
        # It came at the latest `seconds` before its answer, and stays for as long: so it is there in between.
        seconds = request.args.get("wait_seconds", 0.0)
        looked = accepted.end
        there = one.end_t - seconds < accepted.end_t < one.begin_t + seconds <= one.end_t
        there = there and handed > accepted.end
    if not there:
        return False
    facts = facts_of(history)
    if (
        handed <= one.end
        and witness.due >= facts.clock_low(handed, witness.hand.request.begin_t) - SLACK_SECONDS
    ):
        return False  # who took it may have waited as well when it came due, and one of them gets it
    # Who waits is served before he is told that there is nothing, so what is due by then counts too. A call that is
    # sent again waits no longer than the first one does, and a start lets nobody wait on.
    again = one is not request.tries[0]
    stays = 0.0 if again or facts.restarted(one.begin, one.end) else request.args.get("wait_seconds", 0.0)
    due = witness.due < facts.clock_low(one.begin, one.begin_t + stays) - SLACK_SECONDS
    return due and not may_be_paused(history, looked, one.end, witness.tenant)
