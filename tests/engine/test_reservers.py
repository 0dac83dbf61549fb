"""Reservers: everybody who reserved in the last minute, or waits, once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.engine.reservers import Reservers
from fairway.limits import RESERVER_SECONDS

STEPS = st.lists(st.tuples(st.sampled_from("sw-c"), st.integers(0, 3), st.floats(0, 40)), max_size=60)


@given(STEPS)
def test_consumers_are_those_seen_lately_and_those_who_wait(steps: list[tuple[str, int, float]]) -> None:
    reservers, now = Reservers(), 0.0
    seen: dict[int, float] = {}
    waiting: list[int] = []
    for what, who, later in steps:
        now += later
        if what == "s":
            reservers.seen(who, now)
            seen[who] = now
        elif what == "w":
            reservers.waits(who)
            waiting.append(who)
        elif what == "-" and who in waiting:
            reservers.waited(who, now)
            waiting.remove(who)
            seen[who] = now
        lately = {name for name, at in seen.items() if at >= now - RESERVER_SECONDS}
        assert reservers.count(now) == max(1, len(lately | set(waiting)))
