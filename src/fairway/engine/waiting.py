"""Waiting: calls that wait for work, first come first served for each strategy, or for the end of a submission.

Guards: no wake-up is lost: whatever makes a chunk eligible serves the waiters before the engine returns.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush

from fairway.engine.answering import answer, record_outcome, refuse
from fairway.engine.commands import Reserved
from fairway.engine.draft import Draft
from fairway.engine.lookups import Found
from fairway.engine.named import reserve_named
from fairway.engine.reserving import NOTHING, pick, reserved, strategy_of
from fairway.engine.state import State, Waiter, Watcher
from fairway.engine.views import find, submission_of
from fairway.errors import FairwayError, TooLarge
from fairway.limits import WAITERS_MAX


def add_waiter(state: State, waiter: Waiter) -> None:
    """A reserve found nothing and may wait."""
    waiter.strategy = strategy_of(state, waiter.command)
    _arm(state, waiter, waiter.until)
    state.waiters.setdefault(waiter.strategy, OrderedDict())[waiter.ticket] = waiter


def add_watcher(state: State, watcher: Watcher, until: float) -> None:
    """A call waits for the end of a submission that is active."""
    _arm(state, watcher, until)
    state.watchers.setdefault(watcher.id, {})[watcher.ticket] = watcher


def _arm(state: State, who: Waiter | Watcher, until: float) -> None:
    if state.waiting >= WAITERS_MAX:
        raise TooLarge(f"{WAITERS_MAX} calls wait already; wait less, or with fewer callers")
    state.waiting += 1
    state.timeout_ticket += 1
    who.ticket = state.timeout_ticket
    who.draft.waits = who
    heappush(state.timeouts, (until, who.ticket, who))
    if len(state.timeouts) > 4 * state.waiting + 1024:  # waits that were served long before their time
        state.timeouts = [entry for entry in state.timeouts if not entry[2].draft.answered]
        heapify(state.timeouts)


def serve(state: State) -> None:
    """Give work to those who wait for it."""
    state.woken = False
    if state.paused:
        return
    for text in list(state.waiters):
        queue = state.waiters[text]
        while queue:
            waiter = next(iter(queue.values()))
            try:
                reply = _try(state, waiter)
            except FairwayError as error:
                finish(state, waiter, error=error)
                continue
            if reply is None:
                break
            finish(state, waiter, reply)


def _try(state: State, waiter: Waiter) -> Reserved | None:
    if waiter.command.consumer:
        return reserve_named(state, waiter.command)
    hold = pick(state, waiter.command)
    return None if hold is None else reserved(state, hold)


def finish(
    state: State, waiter: Waiter, reply: Reserved = NOTHING, error: FairwayError | None = None
) -> None:
    """Answer a waiter and those who asked the same again."""
    client = state.clients.get(waiter.client)
    twins = client.pending.pop(waiter.number, []) if client is not None and waiter.number else []
    if error is None and reply.spans:
        record_outcome(state, waiter.client, waiter.number, reply)
    leave(state, waiter)
    for draft in (waiter.draft, *twins):
        if not draft.answered:
            if error is not None:
                refuse(state, draft, error)
            else:
                answer(state, draft, reply)


def leave(state: State, who: Waiter | Watcher) -> None:
    """No longer wait."""
    state.waiting -= 1
    if isinstance(who, Waiter):
        queue = state.waiters[who.strategy]
        del queue[who.ticket]
        if not queue:
            del state.waiters[who.strategy]
    else:
        watchers = state.watchers[who.id]
        del watchers[who.ticket]
        if not watchers:
            del state.watchers[who.id]


def time_out(state: State) -> None:
    """Answer the waits whose time is over: no work, or the submission as it is."""
    while state.timeouts and state.timeouts[0][0] <= state.now:
        who = heappop(state.timeouts)[2]
        if who.draft.answered:
            continue
        if isinstance(who, Waiter):
            finish(state, who)
        else:
            leave(state, who)
            answer(state, who.draft, submission_of(find(state, who.id, Found())))


def abandon(state: State, draft: Draft) -> None:
    """The caller of a waiting draft is gone."""
    who = draft.waits
    if not draft.answered and isinstance(who, Waiter | Watcher):
        draft.answered = True
        if isinstance(who, Waiter):
            client = state.clients.get(who.client)
            if client is not None:
                client.pending.pop(who.number, None)
        leave(state, who)


def open_drafts(state: State) -> list[Draft]:
    """Every draft that waits."""
    waiting = [waiter.draft for queue in state.waiters.values() for waiter in queue.values()]
    return waiting + [watcher.draft for watchers in state.watchers.values() for watcher in watchers.values()]
