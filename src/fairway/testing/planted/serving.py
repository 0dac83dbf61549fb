"""Bugs of waiting: who is served first.

Guards: each keeps somebody waiting who came before another, and whoever waits is served in the end.
"""

from __future__ import annotations

from fairway.engine import waiting
from fairway.engine.state import State
from fairway.errors import FairwayError
from fairway.testing.planted.planting import wrong


def _serve_all(state: State, *, last: bool) -> None:
    """Everybody of one strategy is served, then everybody of the next."""
    state.woken = False
    if state.paused:
        return
    for strategy in list(state.waiters):
        line = state.waiters[strategy]
        while line:
            waiter = next(reversed(line.values()) if last else iter(line.values()))
            try:
                reply = waiting._try(state, waiter)
            except FairwayError as error:
                waiting.finish(state, waiter, error=error)
                continue
            if reply is None:
                break
            waiting.finish(state, waiter, reply)


@wrong("one strategy's waiters go before another's", waiting, "serve")
def by_strategy(state: State) -> None:
    _serve_all(state, last=False)


@wrong("who came last is served first", waiting, "serve")
def latest_first(state: State) -> None:
    _serve_all(state, last=True)
