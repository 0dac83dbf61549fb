"""Signs: a named reservation lasts as long as its consumer lets something be heard.

Guards: only what is stored counts as a sign, and only while the reservation surely lasted anyhow.
"""

from __future__ import annotations

from fairway.testing.facts import SLACK_SECONDS, Facts
from fairway.testing.history import Request


def silence_of(facts: Facts) -> float:
    """How long a consumer may be silent at least."""
    return min(facts.config_ever("consumer_silent_seconds"))


def until_silent(facts: Facts, first: Request, until: float, before: int) -> float:
    """Until when a named reservation surely lasts: each sign of its consumer, while it lasts, puts its end off."""
    for sign in _signs_of(facts, first.args["consumer"]):
        between = first.begin < sign.begin and sign.end < before
        if between and facts.clock_high(sign.end, sign.end_t) < until - SLACK_SECONDS:
            until = max(until, facts.heard_at(sign) + silence_of(facts))
    return until


def _signs_of(facts: Facts, consumer: str) -> list[Request]:
    """What a consumer asked for and was answered, in the order of the answers; an empty reserve is not stored."""
    signs = [
        r
        for r in facts.history.of("join", "reserve", "trim", "finish")
        if r.answered and r.args.get("consumer") == consumer and (r.op != "reserve" or r.ok["spans"])
    ]
    return sorted(signs, key=lambda r: r.end)
