"""Time: nothing comes before it is due, while it is paused, or before a wait was over.

Guards: DESIGN promise 3 (not before its due time) and the three pauses.
"""

from __future__ import annotations

from fairway.testing.deliveries import Delivery, Hand
from fairway.testing.facts import SLACK_SECONDS, Chunk, Facts, Offered, Settling, facts_of
from fairway.testing.history import History, Request
from fairway.testing.violation import Violation, found


def check_not_before_due(history: History) -> list[Violation]:
    """A delayed submission is not handed out early, and its due time is the one that was asked for."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        for submission, run in delivery.runs.items():
            if delivery.high < run["not_before"] - SLACK_SECONDS:
                what = f"submission {submission} was handed out at {delivery.high:.3f}, due {run['not_before']:.3f}"
                violations.append(found("not_before_due", what, delivery.request))
            for offered in facts.by_id.get(submission, []):
                asked = 0.0 if offered.known else _due(facts, offered)
                if run["not_before"] < asked - SLACK_SECONDS:
                    what = (
                        f"submission {submission} should wait until {asked:.3f}, not {run['not_before']:.3f}"
                    )
                    violations.append(found("not_before_due", what, offered.request, delivery.request))
    return violations


def _due(facts: Facts, offered: Offered) -> float:
    """The earliest due time that fits what was asked for; the owner's clock at the acceptance is not known exactly."""
    given = offered.given
    if not given.get("delay_seconds"):
        return given.get("not_before", 0.0)
    places = [(one.begin, one.begin_t) for one in offered.request.tries]
    accepted = min(
        facts.clock_low(*place) for place in (*places, (offered.request.end, offered.request.end_t))
    )
    return max(given.get("not_before", 0.0), accepted + given["delay_seconds"])


def check_times_as_asked(history: History) -> list[Violation]:
    """A submission is due, and late, when that was asked for: neither time is lost or put off."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for delivery in facts.deliveries:
        for submission, run in delivery.runs.items():
            for offered in facts.by_id.get(submission, []):
                if offered.known:
                    continue
                for name, (least, most) in _times(facts, offered).items():
                    if not least - SLACK_SECONDS <= run[name] <= most + SLACK_SECONDS:
                        what = f"submission {submission} has {name} {run[name]:.3f}, not {least:.3f} to {most:.3f}"
                        violations.append(found("times_as_asked", what, offered.request, delivery.request))
    return violations


def _times(facts: Facts, offered: Offered) -> dict[str, tuple[float, float]]:
    """The least and the most that the times of a submission can be, on its owner's clock."""
    given, request = offered.given, offered.request
    low = min(facts.clock_low(one.begin, one.begin_t) for one in request.tries)
    low = min(low, facts.clock_low(request.end, request.end_t))
    high = facts.clock_high(request.end, request.end_t)
    due, delay, seconds = (
        given.get("not_before", 0.0),
        given.get("delay_seconds"),
        given.get("deadline_seconds"),
    )
    return {
        "not_before": (max(due, low + delay), max(due, high + delay)) if delay else (due, due),
        "deadline": (low + seconds, high + seconds) if seconds else (0.0, 0.0),
    }


def check_back_off_holds(history: History) -> list[Violation]:
    """A chunk that failed comes back only after the delay that was asked for."""
    facts = facts_of(history)
    violations: list[Violation] = []
    for id, chunk in facts.chunks.items():
        for fail in chunk.settlings:
            delay = fail.request.args.get("delay_seconds", -1.0)
            if fail.outcome != "retrying" or delay <= 0:
                continue
            after = _next_hand(chunk, fail)
            if after is None or facts.restarted(fail.request.begin, fail.request.end):
                continue
            if facts.redriven(id[0], fail.request.begin, after.request.end):
                continue
            failed = facts.clock_low(fail.request.begin, fail.request.begin_t)
            if after.delivery.high < failed + delay - SLACK_SECONDS:
                what = f"chunk {id} failed at {failed:.3f} to wait {delay} s and came at {after.delivery.high:.3f}"
                violations.append(found("back_off_holds", what, fail.request, after.request))
    return violations


def _next_hand(chunk: Chunk, fail: Settling) -> Hand | None:
    """Who may have been the first to get the chunk after it failed; what was answered before is not after."""
    return next(
        (h for h in chunk.hands if h.receipt > fail.receipt and h.request.end > fail.request.begin), None
    )


def check_pauses_hold(history: History) -> list[Violation]:
    """Nothing is handed out while its queue, tenant or submission is surely paused."""
    facts = facts_of(history)
    pauses = [r for r in history.of("pause") if r.answered and r.args["on"]]
    violations: list[Violation] = []
    for pause in pauses:
        resumes = [
            r for r in history.of("pause") if r.possible and not r.args["on"] and _target(r) == _target(pause)
        ]
        for delivery in facts.deliveries:
            end = delivery.request.end
            if delivery.begin < pause.end:
                continue
            if any(r.begin < end and not (r.answered and r.end < pause.begin) for r in resumes):
                continue
            if _covers(facts, pause, delivery):
                what = f"{_spoken(pause)} is paused, but something of it was handed out"
                violations.append(found("pauses_hold", what, pause, delivery.request))
    return violations


def _target(pause: Request) -> tuple[str | None, int]:
    return pause.args.get("tenant"), pause.args.get("sub", 0)


def _covers(facts: Facts, pause: Request, delivery: Delivery) -> bool:
    tenant, submission = _target(pause)
    if submission:
        return any(span[0] == submission for span in delivery.spans)
    if tenant is None:
        return True
    return any(run["tenant"] == tenant for run in delivery.runs.values())


def _spoken(pause: Request) -> str:
    tenant, submission = _target(pause)
    return (
        f"submission {submission}" if submission else "the queue" if tenant is None else f"tenant {tenant!r}"
    )


def check_waits_last(history: History) -> list[Violation]:
    """An empty answer to a waiting reserve, or an unended one to a wait, comes only when the time is over."""
    violations: list[Violation] = []
    for request in history.of("reserve", "wait"):
        if request.op == "reserve":
            early = request.answered and not request.ok["spans"] and not request.args.get("consumer")
            seconds = request.args.get("wait_seconds", 0.0)
        else:
            early = request.answered and request.ok["state"] == "active"
            seconds = request.args["seconds"]
        # A caller that takes its leave ends its own waits.
        left = any(r.client == request.client and r.begin < request.end for r in history.of("goodbye"))
        if early and seconds and not left and request.end_t - request.begin_t < seconds - SLACK_SECONDS:
            what = f"{request.op} came back with nothing before its {seconds} s were over"
            violations.append(found("waits_last", what, request))
    return violations
