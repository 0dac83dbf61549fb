"""The verdict on a short concurrent history: whether its answers are those of calls that came one by one.

Guards: what it reports is proven by the history alone; a violation names every call of the submission concerned.
"""

from __future__ import annotations

from fairway.testing.history import History
from fairway.testing.linear.reading import Case, cases_of
from fairway.testing.linear.search import Stuck, find_order
from fairway.testing.linear.spec import Op
from fairway.testing.violation import Violation, found


def check_linearisable(history: History) -> list[Violation]:
    """The calls on each submission have an order in which every answer is right."""
    violations: list[Violation] = []
    for case in cases_of(history):
        stuck = find_order(case.spec, case.ops)
        if stuck is not None:
            requests = [history.requests[place] for place in sorted({op.request for op in case.ops})]
            violations.append(found("linearisable", _told(case, stuck), *requests))
    return violations


CHECKS = (check_linearisable,)


def check_history(history: History) -> list[Violation]:
    """Everything that the history proves to be wrong."""
    return [violation for check in CHECKS for violation in check(history)]


def _told(case: Case, stuck: Stuck) -> str:
    blocked = "; ".join(_spoken(op) for op in stuck.blocked)
    return (
        f"the {len(case.ops)} calls on submission {case.submission} have no order: {len(stuck.placed)} of them do,"
        f" then none of these can come next: {blocked}"
    )


def _spoken(op: Op) -> str:
    if op.verb == "reserve":
        got = ", ".join(f"{pick.chunk} as attempt {pick.attempt}" for pick in op.picks) or "nothing of it"
        return f"reserve got {got}" + (" and all there was" if op.short else "")
    if op.verb in ("cancel", "show", "submit"):
        return f"{op.verb} -> {op.answer}"
    return f"{op.verb} of {op.index} under {op.receipt} -> {op.answer}"
