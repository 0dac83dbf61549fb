"""Waiting: calls that wait for work, first come first served over all strategies, or for the end of a submission.

Guards: no wake-up is lost: whatever makes a chunk eligible serves the waiters before the engine returns.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush

from fairway.engine import explaining
from fairway.engine.answering import answer, record_outcome, refuse
from fairway.engine.commands import Reserved
from fairway.engine.draft import Draft
from fairway.engine.lookups import Found
from fairway.engine.named import reserve_named
from fairway.engine.reserving import NOTHING, pick, reserved, strategy_of
from fairway.engine.search import in_vain
from fairway.engine.state import Asker, State, Waiter, Watcher
from fairway.engine.views import described_again, find, submission_of
from fairway.errors import FairwayError, TooLarge
from fairway.limits import WAITERS_MAX


def add_waiter(state: State, waiter: Waiter) -> None:
    """A reserve found nothing and may wait, for work or for what the store is asked."""
    waiter.strategy = strategy_of(state, waiter.command)
    state.plans.get(waiter.strategy)  # refused before anything is changed, if there is no place for it
    _arm(state, waiter, waiter.until)
    if not waiter.command.wait_seconds:
        state.aside.overdue[waiter.ticket] = waiter
    state.reservers.waits(waiter.who)
    _stand_in_line(state, waiter)


def follow(state: State, strategy: str) -> None:
    """The queue's strategy is this from now on: who waits by it waits by the new one, in the order in which all came.

    TooManyStrategies, and nothing is changed, if there is no place for it.
    """
    waiters = [who for line in state.waiters.values() for who in line.values()]
    moved = [who for who in waiters if not who.command.strategy and who.strategy != strategy]
    state.plans.own(strategy, len(moved))
    for who in moved:
        who.plan = None  # it is unpinned already
        _leave_line(state, who)
        who.strategy = strategy
        _stand_in_line(state, who)
    if moved:
        state.waiters[strategy] = OrderedDict(sorted(state.waiters[strategy].items()))
        state.woken = True


def _stand_in_line(state: State, waiter: Waiter) -> None:
    waiter.plan = state.plans.get(waiter.strategy)
    waiter.plan.pinned += 1
    state.waiters.setdefault(waiter.strategy, OrderedDict())[waiter.ticket] = waiter


def _leave_line(state: State, waiter: Waiter) -> None:
    if waiter.plan is not None:
        waiter.plan.pinned -= 1
    line = state.waiters[waiter.strategy]
    del line[waiter.ticket]
    if not line:
        del state.waiters[waiter.strategy]


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
    join(who, who.drafts.pop())
    heappush(state.timeouts, (until, who.ticket, who))
    if len(state.timeouts) > 4 * state.waiting + 1024:  # waits that were served long before their time
        state.timeouts = [entry for entry in state.timeouts if entry[2].drafts]
        heapify(state.timeouts)


def join(who: Waiter | Watcher, draft: Draft) -> None:
    """One more draft that gets the answer of this wait."""
    draft.waits = who
    who.drafts.append(draft)


def serve(state: State) -> None:
    """Give work to those who wait for it."""
    state.woken = False
    if state.paused:
        return
    lines = dict(state.waiters)
    while lines:
        strategy = min(lines, key=lambda strategy: next(iter(lines[strategy])))  # whose first came first
        line = lines[strategy]
        waiter = next(iter(line.values()))
        try:
            reply = _try(state, waiter)
        except FairwayError as error:
            finish(state, waiter, error=error)
        else:
            if reply is None:
                del lines[strategy]
                continue
            finish(state, waiter, reply)
        if not line:
            del lines[strategy]


def _try(state: State, waiter: Waiter) -> Reserved | None:
    if waiter.command.consumer:
        reply = reserve_named(state, waiter.command)
        return None if reply is None else described_again(state, reply, Found())
    hold = pick(state, waiter.command)
    return None if hold is None else reserved(state, hold)


def finish(
    state: State, waiter: Waiter, reply: Reserved = NOTHING, error: FairwayError | None = None
) -> None:
    """Answer a waiter and those who asked the same again."""
    if error is None and reply.spans:
        record_outcome(state, waiter.client, waiter.number, reply)
    for draft in leave(state, waiter):
        if error is not None:
            refuse(state, draft, error)
        else:
            answer(state, draft, reply)


def leave(state: State, who: Waiter | Watcher) -> list[Draft]:
    """No longer wait; gives the drafts that wait for an answer."""
    state.waiting -= 1
    drafts, who.drafts = who.drafts, []
    if isinstance(who, Waiter):
        client = state.clients.get(who.client)
        if client is not None:
            client.pending.pop(who.number, None)
        state.reservers.waited(who.who, state.now)
        state.aside.overdue.pop(who.ticket, None)
        _leave_line(state, who)
    else:
        watchers = state.watchers[who.id]
        del watchers[who.ticket]
        if not watchers:
            del state.watchers[who.id]
    return drafts


def time_out(state: State) -> None:
    """Answer the waits whose time is over: no work, or the submission as it is."""
    while state.timeouts and state.timeouts[0][0] <= state.now:
        who = heappop(state.timeouts)[2]
        if not who.drafts:
            continue
        if isinstance(who, Waiter):
            if in_vain(state, who.strategy):
                finish(state, who)
            else:
                state.aside.overdue[who.ticket] = who
        else:
            now_it_is = submission_of(find(state, who.id, Found()))
            for draft in leave(state, who):
                answer(state, draft, now_it_is)


def give_up(state: State) -> None:
    """Nothing was found for those whose time is over, and the store was asked."""
    for who in list(state.aside.overdue.values()):
        if in_vain(state, who.strategy):
            finish(state, who)


def tell(state: State) -> None:
    """A read has failed once more: those whose time is over hear why, if there is no use in waiting."""
    for who in list(state.aside.overdue.values()):
        error = state.aside.troubles.told(who.strategy, state.now)
        if error is not None:
            finish(state, who, error=error)


def abandon(state: State, draft: Draft) -> None:
    """The caller of a waiting draft is gone; those who asked the same again go on waiting."""
    who = draft.waits
    if draft.answered:
        return
    if isinstance(who, Waiter | Watcher):
        draft.answered = True
        who.drafts.remove(draft)
        if not who.drafts:
            leave(state, who)
    elif isinstance(who, Asker):
        draft.answered = True
        explaining.leave(state, who)


def open_drafts(state: State) -> list[Draft]:
    """Every draft that waits."""
    waiters = [draft for queue in state.waiters.values() for who in queue.values() for draft in who.drafts]
    watchers = [draft for some in state.watchers.values() for who in some.values() for draft in who.drafts]
    return waiters + watchers + [asker.draft for asker in state.askers]
