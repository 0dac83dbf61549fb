"""The verdict on a storm: its history as the checker reads it, and how long calls took.

Guards: nothing is held against the queue that the history does not prove. Two things it does not prove where processes
die: leases that reached nobody go back uncounted, so their chunk did not wait meanwhile though the first attempt seen
is 1; and a wait that moves from a lost host to the next one is nowhere for a moment.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import msgspec

from fairway.testing.checker import check_history
from fairway.testing.deliveries import Delivery
from fairway.testing.facts import facts_of
from fairway.testing.history import UNKNOWN, Begin, End, Header, History, Note, Request
from fairway.testing.violation import Violation
from fairway.testing.witness import Witness, witnesses_of
from tests.attach.storm.storm import Storm
from tests.attach.storm.watch import life_of, whole_lines

BURIED_SECONDS = 1.0  # a host hears of a death at once, and may be busy


class Took(msgspec.Struct, order=True):
    """How long a call of a living process took, beyond the time it was to wait."""

    seconds: float
    what: str
    beside_a_stop: bool


def read_history(path: Path) -> History:
    """The history in the order of its times; an answer that leaves the outcome open is no answer.

    The processes share one clock, and a begin is timed before its call and an end after it, so this order is true
    whatever order the lines were written in.
    """
    lines, _ = whole_lines(path.read_bytes())
    header = next(line for line in lines if isinstance(line, Header))
    timed = [line for line in lines if isinstance(line, Begin | End | Note)]
    kept = [line for line in timed if not (isinstance(line, End) and line.error in UNKNOWN)]
    return History([header, *sorted(kept, key=lambda line: line.t)])


def judge(history: History, storm: Storm) -> tuple[list[Violation], int]:
    """What is proven to be wrong; and how many witnesses there were."""
    witnesses = {
        id: w for id, w in witnesses_of(history).items() if not _may_have_been_out(history, storm, w)
    }
    history.memo["witnesses"] = witnesses
    violations = [v for v in check_history(history) if not _moved_while_it_waited(history, storm, v)]
    return violations, len(witnesses)


def _may_have_been_out(history: History, storm: Storm, witness: Witness) -> bool:
    """Whether a reservation that nobody saw may have held the chunk before it was first seen handed out."""
    first, last = witness.accepted.begin_t, witness.hand.request.end_t
    return any(low < last and first < high for low, high in _unseen(history, storm))


def _unseen(history: History, storm: Storm) -> list[tuple[float, float]]:
    """Times in which reservations that nobody saw may have been open: where the counts of those seen have a gap."""
    memo = history.memo
    if "unseen" not in memo:
        hidden = [r for r in history.of("reserve") if r.hidden]
        seen = facts_of(history).deliveries
        ends = [(seen[-1].high if seen else 0.0, float("inf"))]
        gaps = [(a.low, b.high) for a, b in pairwise(seen) if not _adjacent(a, b)]
        start = [(0.0, seen[0].high)] if seen else []
        found: list[tuple[float, float]] = []
        for low, high in (*start, *gaps, *ends):
            lost = [_buried(storm, r) for r in hidden if r.begin_t < high and _buried(storm, r) > low]
            if lost:
                found.append((low, max(lost) + BURIED_SECONDS))
        memo["unseen"] = found
    return memo["unseen"]


def _adjacent(a: Delivery, b: Delivery) -> bool:
    return a.receipt[0] == b.receipt[0] and b.receipt[1] == a.receipt[1] + 1


def _buried(storm: Storm, request: Request) -> float:
    """When a caller who never got its answer is dead, and its host knows: a stopped one hears of it when it goes on."""
    death = storm.deaths.get(life_of(request.tries[-1].call), float("inf"))
    heard = [stop.end_t for stop in storm.stops if stop.begin_t <= death <= stop.end_t]
    return max(heard, default=death)


def _moved_while_it_waited(history: History, storm: Storm, violation: Violation) -> bool:
    if violation.check != "no_wrong_empty_answer":
        return False
    for request in history.of("reserve"):
        if request.begin in violation.places and request.answered and not request.ok["spans"]:
            one = request.good
            lost = bisect_left(storm.host_lost, one.begin_t)
            moved = lost < len(storm.host_lost) and storm.host_lost[lost] < one.end_t
            return moved and request.args["wait_seconds"] > 0
    return False


def durations(path: Path, storm: Storm) -> list[Took]:
    """Of every call of a living process, those that ended in errors included; the longest first."""
    lines, _ = whole_lines(path.read_bytes())
    ends = {line.call: line.t for line in lines if isinstance(line, End)}
    found: list[Took] = []
    for line in lines:
        if isinstance(line, Begin) and life_of(line.call) in storm.deaths:
            end = ends.get(line.call, storm.deaths[life_of(line.call)])
            found.append(
                _took(storm, life_of(line.call), line.op, line.t, end, line.args.get("wait_seconds", 0.0))
            )
        elif isinstance(line, Note) and line.what == "opened":
            began = line.t - line.args["seconds"]
            found.append(_took(storm, line.args["life"], "open", began, line.t, 0.0))
    return sorted(found, reverse=True)


def _took(storm: Storm, life: int, op: str, begin: float, end: float, wait: float) -> Took:
    beside = [(s, min(end, s.end_t) - max(begin, s.begin_t)) for s in storm.stops]
    own = sum(max(0.0, overlap) for stop, overlap in beside if stop.life == life)
    return Took(end - begin - wait - own, op, any(overlap > 0 for _, overlap in beside))
