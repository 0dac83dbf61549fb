"""The search for an order: calls are put one after another, each where its answer fits, none before one that had ended.

Guards: it is exact: every order that real time allows is tried, and what leads to the same place is tried once.

After Wing and Gong, with a memory of (calls that are in the order, state), as Lowe added it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from fairway.testing.history import BadHistory
from fairway.testing.linear.spec import Op, Spec, State

PLACES_MAX = 2_000_000  # of one search; a history of thirty calls visits some hundred


class Stuck(msgspec.Struct, frozen=True):
    """There is no order: the longest beginning of one, and the calls of which none can come next."""

    placed: tuple[Op, ...]
    blocked: tuple[Op, ...]


def find_order(spec: Spec, given: Sequence[Op]) -> Stuck | None:
    """None if the calls have an order; otherwise how far one can go."""
    ops = sorted(given, key=lambda op: (op.begin, op.end))
    answered = sum(1 << n for n, op in enumerate(ops) if op.known)
    seen: set[tuple[int, State]] = {(0, spec.first)}
    stack: list[tuple[int, float, State]] = [(0, -inf, spec.first)]  # calls in the order, since when, state
    best = 0
    while stack:
        placed, since, state = stack.pop()
        if placed & answered == answered:
            return None
        if (placed & answered).bit_count() > (best & answered).bit_count():
            best = placed
        latest, able = _next(ops, placed)
        # Who ended first is tried first: it usually came first.
        for n in sorted(able, key=lambda n: ops[n].end, reverse=True):
            earliest = max(since, ops[n].begin)
            for after in spec.after(state, ops[n], earliest, latest):
                place = (placed | 1 << n, after)
                if place not in seen:
                    seen.add(place)
                    stack.append((place[0], earliest, after))
        if len(seen) > PLACES_MAX:
            raise BadHistory(f"{len(ops)} calls on one submission overlap too much; record shorter histories")
    _, able = _next(ops, best)
    done = tuple(op for n, op in enumerate(ops) if best >> n & 1)
    return Stuck(done, tuple(ops[n] for n in able if ops[n].known))


def _next(ops: Sequence[Op], placed: int) -> tuple[float, list[int]]:
    """When the next call has come at the latest, and the calls that may be it."""
    left = [n for n in range(len(ops)) if not placed >> n & 1]
    latest = min((ops[n].end for n in left), default=inf)
    return latest, [n for n in left if ops[n].begin <= latest]
