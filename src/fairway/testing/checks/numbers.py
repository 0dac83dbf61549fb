"""Request numbers: one number, one effect, one answer.

Guards: DESIGN section 7: a repeated number gets the stored outcome, a received one is dropped.
"""

from __future__ import annotations

from typing import Any

from fairway.testing.facts import SLACK_SECONDS, Facts, facts_of
from fairway.testing.history import Begin, End, History, Request, Try
from fairway.testing.violation import Violation, found

# Groups of these alone are not synced, so power loss may forget their outcomes.
_UNSYNCED = ("reserve", "renew", "release")


def check_calls_are_whole(history: History) -> list[Violation]:
    """Every answer belongs to one open call and to what it asked, and the history's clock does not go back."""
    violations = [
        Violation("calls_are_whole", "an answer came for no open call", (place,)) for place in history.strays
    ]
    for request in history.of("submit"):
        if request.answered and len(request.ok.get("ids", ())) != len(request.args["offers"]):
            violations.append(found("calls_are_whole", "an answer is not one to what was asked", request))
    last = 0.0
    for place, line in enumerate(history.lines):
        if isinstance(line, Begin | End):
            if line.t < last - 1e-6:
                violations.append(
                    Violation("calls_are_whole", "the clock of the history went back", (place,))
                )
            last = max(last, line.t)
    return violations


def check_same_number_same_answer(history: History) -> list[Violation]:
    """All good answers to one number are equal."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for request in history.requests:
        good = [one for one in request.tries if one.answered and (request.op != "reserve" or one.ok["spans"])]
        for one in good[1:]:
            forgotten = request.op in _UNSYNCED and facts.forgotten(good[0].begin, one.end)
            if _comparable(request, one.ok) != _comparable(request, good[0].ok) and not forgotten:
                what = f"number {request.number} of client {request.client} was answered in two ways"
                violations.append(found("same_number_same_answer", what, request))
                break
    return violations


def _comparable(request: Request, reply: Any) -> Any:
    # A reserve repeated after its submissions were purged cannot describe them again.
    if request.op == "reserve" and reply is not None:
        return {name: value for name, value in reply.items() if name not in ("runs", "payloads")}
    return reply


def check_calls_are_answered(history: History) -> list[Violation]:
    """Once faults have stopped, whoever calls is answered: after the drain nobody waits who called in it."""
    drains = [place for place, note in history.notes if note.what == "drain"]
    drained = [place for place, note in history.notes if note.what == "drained"]
    if not drains or not drained:
        return []
    violations: list[Violation] = []
    for request in history.requests:
        tries = [one for one in request.tries if drains[-1] < one.begin < drained[-1]]
        if tries and not any(0 <= one.end < drained[-1] for one in tries):
            what = f"a {request.op} was sent after the faults had stopped, and never answered"
            violations.append(found("calls_are_answered", what, request))
    return violations


def check_received_numbers_are_dropped(history: History) -> list[Violation]:
    """A number at or below a mark that the queue has seen is never executed again."""
    marks: dict[int, list[tuple[int, int]]] = {}
    for request in history.requests:
        for one in request.tries:
            if one.answered and request.number:
                marks.setdefault(request.client, []).append((one.end, one.received))
    violations: list[Violation] = []
    for request in history.requests:
        for one in request.tries:
            seen = [mark for end, mark in marks.get(request.client, []) if end < one.begin]
            if request.number and one.answered and seen and max(seen) >= request.number:
                what = f"number {request.number} of client {request.client} was received before, and answered again"
                violations.append(found("received_numbers_are_dropped", what, request))
                break
    return violations


def check_unanswered_numbers_are_kept(history: History) -> list[Violation]:
    """A number is called dropped only if its client has said that it received the answer."""
    violations: list[Violation] = []
    for request in history.requests:
        for one in request.tries:
            if one.error != "request_dropped":
                continue
            sent = [
                t.received
                for r in history.requests
                if r.client == request.client
                for t in r.tries
                if t.begin < one.end
            ]
            if max(sent) < request.number:
                what = f"number {request.number} of client {request.client} was dropped but never received"
                violations.append(found("unanswered_numbers_are_kept", what, request))
    return violations


def check_clients_are_remembered(history: History) -> list[Violation]:
    """A client that has not said goodbye is known until it was silent for client_silent_seconds."""
    facts = facts_of(history)
    unknown = [(r, t) for r in history.requests if r.number for t in r.tries if t.error == "client_unknown"]
    silent = min(facts.config_ever("client_silent_seconds"))
    left = {r.client: r.begin for r in reversed(history.of("goodbye"))}
    violations: list[Violation] = []
    for request, one in unknown:
        heard = [r for r in history.requests if _is_heard(facts, r, request.client, one)]
        now = facts.clock_high(one.end, one.end_t)
        last = max(heard, key=facts.heard_at, default=None)
        gone = left.get(request.client, one.end) < one.end
        if last is not None and not gone and now - facts.heard_at(last) < silent - SLACK_SECONDS:
            what = (
                f"client {request.client} was heard {now - facts.heard_at(last):.3f} s before, and forgotten"
            )
            violations.append(found("clients_are_remembered", what, last, request))
    return violations


def _is_heard(facts: Facts, request: Request, client: int, one: Try) -> bool:
    """Whether a request of a client surely had its effect before a try, and is stored since."""
    if not request.answered or request.end > one.begin:
        return False
    if request.op == "register":
        return request.ok == client
    # An empty reserve is not stored, so the next owner does not know of it.
    if request.client != client or not request.number or request.op == "reserve":
        return False
    return request.op not in _UNSYNCED or not facts.forgotten(request.begin, one.end)
