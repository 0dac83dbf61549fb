"""A history as calls on single submissions, ready for the search.

Guards: nothing is left out in silence: a call that the specification does not know is refused.

Linearisability is local: a history has an order if and only if the calls on each object have one. The object is the
submission, since its end concerns all its chunks; a call that names several chunks counts as one call for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import msgspec

from fairway.testing.history import BadHistory, History, Request
from fairway.testing.linear.spec import Op, Pick, Spec

ATTEMPTS_MAX = 5  # of a queue that was not configured
_SETTLES = ("complete", "fail", "release", "renew")
_LOOKS = (
    "results",
    "winners",
    "census",
    "stats",
    "register",
    "goodbye",
)  # that the specification says nothing of


class Case(msgspec.Struct):
    """One submission and every call that concerns it."""

    submission: int
    spec: Spec
    ops: list[Op] = []


def cases_of(history: History) -> list[Case]:
    """The history, cut by submission. Those whose acceptance nobody saw are not judged."""
    cases: dict[int, Case] = {}
    for place, request in enumerate(history.requests):
        if request.op == "submit" and request.answered:
            for case in _submitted(history, place, request):
                cases[case.submission] = case
    for place, request in enumerate(history.requests):
        if request.op == "submit" or request.op in _LOOKS:
            continue
        parts = list(_ops_of(place, request))
        named = {submission for submission, _ in parts}
        for submission, op in parts:
            for case in cases.values():
                if case.submission == submission or (submission is None and case.submission not in named):
                    case.ops.append(op)
    return list(cases.values())


def _submitted(history: History, place: int, request: Request) -> Iterator[Case]:
    attempts_max = history.header.config.get("attempts_max", ATTEMPTS_MAX)
    for id, offer in zip(request.ok["ids"], request.args["offers"], strict=True):
        if offer.get("not_before") or offer.get("delay_seconds") or offer.get("deadline_seconds"):
            raise BadHistory("a submission with a delay or a deadline has no place in a history of this kind")
        spec = Spec(offer["total"], offer.get("attempts_max") or attempts_max, offer["policy"])
        yield Case(id, spec, [Op("submit", *_times(request), request=place)])


def _ops_of(place: int, request: Request) -> Iterator[tuple[int | None, Op]]:
    """The parts of a call, each with its submission; None: it concerns all others."""
    if request.op == "cancel":
        # That it was too late is an answer, though it came as an error.
        late = request.tries[-1].error == "already_ended"
        if late or request.possible:
            begin, end = (request.begin_t, request.tries[-1].end_t) if late else _times(request)
            answer = "already_ended" if late else "cancelled"
            yield request.args["sub"], Op("cancel", begin, end, answer, place)
        return
    if not request.possible:
        return
    begin, end = _times(request)
    if request.op == "show":
        yield request.args["sub"], Op("show", begin, end, _shown(request.ok), place)
    elif request.op == "reserve":
        yield from _reserve(place, request, begin, end)
    elif request.op in _SETTLES:
        yield from _settle(place, request, begin, end)
    else:
        raise BadHistory(f"the specification of a submission does not know the call {request.op}")


def _times(request: Request) -> tuple[float, float]:
    return request.begin_t, request.end_t if request.answered else inf


def _shown(ok: dict[str, Any] | None) -> tuple[str, int, int, int] | None:
    if ok is None:
        return None
    return ok["state"], ok["done"], ok["failed"], ok["leased"] if ok["state"] == "active" else 0


def _reserve(place: int, request: Request, begin: float, end: float) -> Iterator[tuple[int | None, Op]]:
    if request.args.get("consumer"):
        raise BadHistory("the specification of a submission does not know named reservations")
    most = request.args["max"]
    if not request.answered:
        yield None, Op("reserve", begin, request=place, most=most)
        return
    ok = request.ok
    receipt = (ok["epoch"], ok["count"])
    picks: dict[int, list[Pick]] = {}
    for submission, start, count, attempt in ok["spans"]:
        picks.setdefault(submission, []).extend(Pick(start + n, receipt, attempt) for n in range(count))
    short = sum(map(len, picks.values())) < most
    seconds = request.args.get("lease_seconds", 0.0)
    for submission, some in picks.items():
        op = Op(
            "reserve", begin, end, None, place, tuple(some), short, deadline=ok["deadline"], seconds=seconds
        )
        yield submission, op
    if short:
        # What else there was would have been handed out as well.
        yield None, Op("reserve", begin, end, None, place, (), True)


def _settle(place: int, request: Request, begin: float, end: float) -> Iterator[tuple[int | None, Op]]:
    args = request.args
    seconds = args.get("seconds", args.get("delay_seconds", 0.0))
    deadline = request.ok["deadline"] if request.answered else 0.0
    outcomes = iter([o for o, n in request.ok["outcomes"] for _ in range(n)] if request.answered else [])
    for epoch, count, spans in args["parts"]:
        for submission, start, many in spans:
            for index in range(start, start + many):
                yield (
                    submission,
                    Op(
                        request.op,
                        begin,
                        end,
                        next(outcomes, None),
                        place,
                        index=index,
                        receipt=(epoch, count),
                        deadline=deadline,
                        seconds=seconds,
                        retry=args.get("retry", True),
                    ),
                )
