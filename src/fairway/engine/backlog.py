"""The backlog: which runs can be handed out from, and the counts of their tenants.

Guards: a run is eligible iff it is active, due, not paused, has ready chunks, and the window or a plan holds it;
tenants' counts are exact, also of what is not in memory.
"""

from __future__ import annotations

from heapq import heappush

from fairway.engine.run import AWAY, FETCHED, TRACKED, Run
from fairway.engine.state import DUE_DEADLINE, DUE_START, State
from fairway.engine.tenant import Tenant
from fairway.fair.window import COUNTED, FINISHED, OUT, PARKED
from fairway.model.stored import Kind
from fairway.model.submission import Described

RUN_BYTES = 600  # of a run without anything special


def admit(state: State, ready: list[Run], others: list[Run]) -> None:
    """New runs of a call, whose tenants have counted them, enter the backlog; `others` cannot be handed out now."""
    aside = state.aside
    here = state.runs
    for runs in (ready, others):
        for run in runs:  # faster than an update from a dict that is made for it
            here[run.id] = run
        if any(map(_is_large, {id(run.described): run.described for run in runs}.values())):
            aside.bytes += sum(map(bytes_of, runs))
        else:
            aside.bytes += RUN_BYTES * len(runs)
        aside.here += len(runs)
        state.live += len(runs)
        state.roll.add(runs)
        if state.plans.laned:
            for run in runs:
                state.plans.enters(run, run.waiting)
    for run in others:
        _find_place(state, run)
    if not ready:
        return
    outside = state.window.submit_counted([(run.pass_, run.id) for run in ready])
    if outside:
        for run in ready:
            if run.level in outside:
                _put_aside(state, run, COUNTED)
        ready = [run for run in ready if run.level not in outside]
    for run in ready:
        run.standing = TRACKED
        run.eligible = True
    state.plans.add_all(ready)
    state.woken = True


def admit_again(state: State, run: Run) -> None:
    """A redriven run takes a new place in the backlog, with its chunks counted."""
    tenant, id, aside = run.owner, run.id, state.aside
    if id not in state.runs:  # else it ended and its leases are still out
        aside.bytes += bytes_of(run)
    state.runs[id] = run
    state.roll.add((run,))
    aside.here += 1
    tenant.runs[id] = None
    tenant.submissions += 1
    tenant.waiting += run.waiting
    state.live += 1
    state.done += run.done.count
    state.counted.add(tenant.name)
    if state.plans.laned:
        state.plans.enters(run, run.waiting)
    _find_place(state, run)


def _find_place(state: State, run: Run) -> None:
    """The window and the orders hear of a run, whatever it waits for."""
    described, level = run.described, run.level
    if described.not_before > state.now:
        run.due = described.not_before
        plan_time(state, run.due, run.id, DUE_START)
    if described.deadline > state.now and run.life == 1:  # a redriven submission is past it
        plan_time(state, described.deadline, run.id, DUE_DEADLINE)
    if state.window.submit(level) and level in state.window.tracked:
        run.standing = TRACKED
    else:
        _put_aside(state, run, standing_of(run))
    refresh(state, run)


def bytes_of(run: Run) -> int:
    """About what a run takes in memory."""
    described = run.described
    if len(described.page_starts) < 2 and not described.info and not described.segments:  # not `_is_large`
        return RUN_BYTES
    return RUN_BYTES + len(described.info) + 40 * len(described.page_starts) + 120 * len(described.segments)


def _is_large(described: Described) -> bool:
    return len(described.page_starts) > 1 or bool(described.info or described.segments)


def plan_time(state: State, time: float, id: int, what: int) -> None:
    """A due time or deadline of a run in memory; of one that leaves only the next times are kept."""
    heappush(state.dues, (time, id, what))


def standing_of(run: Run) -> int:
    """What a run is to the window."""
    if run.state != "active":
        return FINISHED
    if run.ready and not run.paused and not run.due and not run.owner.paused:
        return COUNTED
    if run.out or (run.tried and run.backing_off):
        return OUT
    return PARKED if run.ready else FINISHED


def refresh(state: State, run: Run) -> None:
    """Say whether the run can be handed out from, after anything that may have changed it."""
    if run.state != "active":
        run.eligible = False
        return
    standing = standing_of(run)
    if run.standing == TRACKED:
        if not state.window.stands((run.pass_, run.id), standing):
            _put_aside(state, run, standing)
    elif run.standing == FETCHED:
        if standing != COUNTED:
            state.window.unfetch(run.id)
            _put_aside(state, run, standing)
    elif standing != FINISHED:
        _take_in(state, run, standing)
    if standing == COUNTED and run.standing:
        run.eligible = True
        state.plans.add(run)
        state.woken = True
    else:
        run.eligible = False


def _take_in(state: State, run: Run, standing: int) -> None:
    """A run beside the window: it goes in if it lies there and need not wait."""
    window, level = state.window, run.level
    stored = level <= window.read or not window.pinned(level)
    if standing != PARKED and stored and window.unpark(level):
        run.standing = TRACKED
        state.aside.spare.pop(run.id, None)
        state.aside.idle.pop(run.id, None)
    else:
        _put_aside(state, run, standing)
    drop_gone(state)


def _put_aside(state: State, run: Run, standing: int) -> None:
    """The run is not in the window."""
    aside = state.aside
    run.standing = AWAY
    run.eligible = False
    if standing == COUNTED:
        if run.id not in aside.spare:
            aside.spare[run.id] = None
            aside.unseen += 1  # else it just came from the store, and changes nothing
        aside.idle.pop(run.id, None)
        return
    aside.spare.pop(run.id, None)
    if standing == PARKED:
        aside.idle[run.id] = None
    else:
        aside.idle.pop(run.id, None)


def fit(state: State) -> None:
    """Not more runs are handed out from than the window holds."""
    if state.window.counted > state.window.rows_max:
        state.window.fit()
        drop_gone(state)


def drop_gone(state: State) -> None:
    """Runs that the window cut off are no longer handed out from."""
    gone = state.window.gone
    while gone:
        pass_, id = gone.pop()
        run = state.runs.get(id)
        cut = (pass_, id) not in state.window.tracked and id not in state.window.fetched
        if cut and run is not None and run.pass_ == pass_ and run.standing:
            _put_aside(state, run, standing_of(run))  # also one that a read had just brought in from beside


def all_out(state: State, run: Run) -> None:
    """The last chunk of a run that could be handed out was."""
    if run.standing == TRACKED:
        state.window.stands((run.pass_, run.id), OUT)
    elif run.standing == FETCHED:
        state.window.unfetch(run.id)
        run.standing = AWAY  # its leases keep it in memory


def over(state: State, run: Run) -> None:
    """A run is finished: it leaves the backlog."""
    aside, id = state.aside, run.id
    state.window.finish((run.pass_, id))
    if run.standing == FETCHED:
        state.window.unfetch(id)
    elif run.standing == AWAY:
        aside.spare.pop(id, None)
        aside.idle.pop(id, None)
    run.standing = AWAY
    owner = run.owner
    del owner.runs[id]
    aside.here -= 1
    owner.submissions -= 1
    state.counted.add(owner.name)
    state.live -= 1
    state.done -= run.done.count
    state.dead -= len(run.dead)
    if aside.by_range:
        state.finished += 1


def back(state: State, run: Run, index: int) -> None:
    """A leased chunk waits again."""
    waits(state, run, 1)
    run.give_back(index)


def waits(state: State, run: Run, n: int) -> None:
    """n chunks more of the run wait; fewer, if it is negative."""
    run.owner.waiting += n
    state.counted.add(run.owner.name)
    if state.plans.laned:
        state.plans.waits(run, n)


def appear(state: State, tenant: str) -> None:
    """A submit brings chunks to a tenant that had none waiting."""
    state.tables.busy(tenant)
    state.tables.plain.appear(tenant)


def settle_tenant(state: State, tenant: Tenant) -> None:
    """Tell the tables when nothing of a tenant is unfinished any more."""
    if not tenant.waiting and not tenant.leased:
        state.tables.idle(tenant.name)


def touch(state: State, run: Run) -> None:
    """The run's progress differs from its stored form, and the journal says how."""
    if not run.marked:
        run.marked = True
        state.dirty.mark(Kind.PROGRESS, run.id, 0, state.number)
