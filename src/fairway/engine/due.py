"""What is due: leases that run out, back-offs and delays that end, deadlines, waits, silences.

Guards: clocks decide when, never whether: everything done here may as well be done later.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

from fairway.engine.backlog import fit, refresh
from fairway.engine.ending import end_late
from fairway.engine.leases import held, settle
from fairway.engine.named import expire_at
from fairway.engine.presence import forget_silent
from fairway.engine.returning import back_off_over, expire, expired, lapse, release_chunks
from fairway.engine.state import DUE_DEADLINE, DUE_START, State
from fairway.engine.waiting import serve, time_out
from fairway.limits import PLAN_IDLE_SECONDS


def do_due(state: State) -> None:
    """Do everything whose time has come."""
    for hold in expired(state):
        until = expire_at(state, hold) if hold.consumer else hold.deadline
        if until > state.now:
            hold.deadline = until  # the consumer gave a sign since
            heappush(state.expiries, (until, hold.count, hold.part))
        else:
            expire(state, hold)
    while state.dues and state.dues[0][0] <= state.now:
        due, id, index = heappop(state.dues)
        run = state.runs.get(id)
        if run is None:
            if index < 0 and state.live > state.aside.here and id not in state.recent_ends:
                state.aside.ids[id] = None  # it may be in the store
                state.aside.unseen += 1
            continue
        if run.state != "active":
            continue
        if index == DUE_START:
            run.due = 0.0
            refresh(state, run)
        elif index == DUE_DEADLINE:
            if run.life == 1:
                end_late(state, run)
        else:
            back_off_over(state, run, index, due)
    if state.now >= state.silence_check:
        forget_silent(state)
    if state.now >= state.idle_check:
        drop_idle_plans(state)
    fit(state)
    if state.woken and state.waiters:
        serve(state)  # before anybody is told that there is no work
    time_out(state)


def next_due(state: State) -> float:
    """When `do_due` has something to do next."""
    first, aside, now = min(state.silence_check, state.idle_check), state.aside, state.now
    # Up to these times due times are known; once one has come they are read, and nothing is due by itself.
    if aside.due_until is not None and now < aside.due_until[0] < first:
        first = aside.due_until[0]
    if aside.over_until is not None and now < aside.over_until[0] < first:
        first = aside.over_until[0]
    first = aside.troubles.next(now, first)
    for heap in (state.expiries, state.dues, state.timeouts):
        if heap and heap[0][0] < first:
            first = heap[0][0]
    return first


def drop_idle_plans(state: State) -> None:
    """Drop plans that nobody used for long; while there are any beside the queue's own they are looked over."""
    others = state.plans.drop_idle(state.now)
    state.idle_check = state.now + PLAN_IDLE_SECONDS / 4 if others else math.inf


def release_all(state: State) -> None:
    """The clean slate of a start that forgets leases: everything out goes back uncounted."""
    for hold in list(state.holds.values()):
        out = [(run, index) for run, index, _ in held(state, hold)]
        active = [(run, index) for run, index in out if run.state == "active"]
        release_chunks(state, hold, active)
        lapse(state, hold, len(active))
        for run, index in out:
            if run.state != "active":
                settle(state, run, index, hold.count)
