"""Electing: one node repairs a queue, the others watch it.

Guards: nothing but work: two repairers are harmless, so a beat that is late costs a round done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fairway import limits
from fairway.bucket.rows import RepairLease
from fairway.bucket.statements import APPLIED, Beat, Machine, Outcome, ReadRepairer

R = TypeVar("R")


class Candidate:
    """A node that repairs, or watches who does; its time is its own, and no clock is compared with another."""

    def __init__(self, name: str, node: str) -> None:
        self.name, self.node = name, node
        self.seen = RepairLease("", -1)
        self.since = float("-inf")
        self.beaten = float("-inf")


def elect(candidate: Candidate, elapsed: float) -> Machine[bool]:
    """Whether this node repairs now; `elapsed` is its own steady time in seconds."""
    found: RepairLease | Outcome = yield ReadRepairer(candidate.name)
    if isinstance(found, Outcome):
        return False
    if found != candidate.seen:
        candidate.seen, candidate.since = found, elapsed
    mine = found.owner == candidate.node
    silent = not found.owner or elapsed - candidate.since >= limits.REPAIRER_SILENT_SECONDS
    if not mine and not silent:
        return False
    outcome: Outcome = yield Beat(candidate.name, candidate.node, found.owner, found.beat)
    if outcome is APPLIED:
        candidate.beaten = elapsed
    return outcome is APPLIED


def beating(candidate: Candidate, machine: Machine[R], elapsed: Callable[[], float]) -> Machine[R | None]:
    """A machine of the one who repairs, with beats between its steps; None where another one repairs now."""
    value: Any = None
    try:
        while True:
            late = elapsed() - candidate.beaten >= limits.REPAIR_SECONDS
            if late and not (yield from elect(candidate, elapsed())):
                return None
            value = yield machine.send(value)
    except StopIteration as end:
        return end.value
    finally:
        machine.close()
