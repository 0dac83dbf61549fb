"""How much a storm got done: what its callers were told, counted by chunks; and which kills met a call.

Guards: only what was answered counts; a call without an answer counts nothing, whatever it did.
"""

from __future__ import annotations

from bisect import bisect_right

from fairway.testing.history import History


def acknowledged(history: History) -> int:
    """Submissions accepted, chunks handed out, chunks settled, and every other call that was answered."""
    many = 0
    for request in history.requests:
        if not request.answered:
            continue
        ok = request.ok
        if request.op == "submit":
            many += len(ok["ids"])
        elif request.op == "reserve":
            many += sum(span[2] for span in ok["spans"])
        elif isinstance(ok, dict) and "outcomes" in ok:
            many += sum(count for _, count in ok["outcomes"])
        else:
            many += 1
    return many


def on_a_call(history: History, times: list[float]) -> int:
    """How many of these moments fell into a call that was under way and did not merely wait for work.

    Callers outlive what is killed here, so a call lasts until its answer; how long one without lasted nobody knows.
    """
    calls = sorted(
        (one.begin_t, one.end_t)
        for request in history.requests
        if not request.args.get("wait_seconds")
        for one in request.tries
        if one.end >= 0
    )
    begins = [begin for begin, _ in calls]
    # Calls last for some seconds at the most, so few of those that began before a moment need be looked at.
    places = [(bisect_right(begins, moment), moment) for moment in times]
    return sum(any(end > moment for _, end in calls[max(0, at - 200) : at]) for at, moment in places)
