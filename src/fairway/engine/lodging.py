"""Lodging: runs enter memory from the store, and leave it when the store knows all of them.

Guards: a run is in memory while anything of it is out, backs off, is watched, or differs from its stored form; what
enters is never older than what the engine knows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappush

from fairway.engine.backlog import RUN_BYTES, bytes_of, fit, plan_time, refresh
from fairway.engine.progress import decode_progress, restore
from fairway.engine.reads import Answer
from fairway.engine.run import AWAY, Run
from fairway.engine.sheets import put_pages
from fairway.engine.state import DUE_DEADLINE, State
from fairway.engine.thaw import decode_described
from fairway.limits import PAGE_CHUNKS, WINDOW_BYTES_MAX
from fairway.model.stored import Kind, StoredRun
from fairway.model.submission import Described

_STAY_MAX = 1000  # runs found at a time that may not leave yet; the others are looked at next time


def run_of(
    state: State, stored: StoredRun, described: Described, pages: Iterable[tuple[int, bytes]] = ()
) -> Run:
    """An active run as the store knows it; leases are put in by their holds."""
    run = Run.new(stored.id, stored.pass_, described, state.tenant(described.tenant), state.seed)
    if stored.progress:
        restore(run, decode_progress(stored.progress))
    if run.total > PAGE_CHUNKS:
        put_pages(run, pages)
    return run


def adopt(state: State, answer: Answer, stored: StoredRun) -> Run | None:
    """The run of a stored row, in memory from now on; None if it ended, or stands elsewhere, by what is known."""
    run = lodge(state, answer, stored)
    return run if run is not None and run.pass_ == stored.pass_ else None


def lodge(state: State, answer: Answer, stored: StoredRun) -> Run | None:
    """`adopt`, wherever the run stands by now; None if it ended by what is known."""
    id = stored.id
    run = state.runs.get(id)
    if run is None:
        if stored.state != "active" or id in state.recent_ends:
            return None
        run = state.aside.comes_back(id)
        if run is None:
            described = answer.described.get(id) or decode_described(stored.body)
            run = run_of(state, stored, described, answer.pages.get(id, ()))
            run.pass_ = max(run.pass_, state.aside.carried.get(id) or 0)  # places of a run only rise
            run.ready = run.total - run.done.count - len(run.dead) - run.backing_off
            if run.described.not_before > state.now:
                run.due = run.described.not_before
        enter(state, run)
    return run if run.state == "active" else None


def enter(state: State, run: Run) -> None:
    """A run that was counted comes into memory, beside the window."""
    owner = run.owner
    if state.tenants.get(owner.name) is not owner:
        run.owner = owner = state.tenant(owner.name)
    state.runs[run.id] = run
    state.roll.add((run,))
    state.aside.here += 1
    owner.runs[run.id] = None
    owner.away -= run.waiting
    run.standing = AWAY
    if run.due and run.due <= state.now:
        run.due = 0.0
    state.aside.bytes += bytes_of(run)
    if state.plans.laned:
        state.plans.enters(run, run.waiting)
    if run.returned:
        run.gaps = list(run.returned)
        heapify(run.gaps)
    for index, tried in run.tried.items():
        if tried.due > state.now:
            heappush(state.dues, (tried.due, run.id, index))
        elif tried.due:
            tried.due = 0.0  # it ended while nobody looked; that is not stored
            run.give_back(index)
    deadline = run.described.deadline
    if deadline and run.life == 1:
        # Its time may have come while it was away, or lie beyond those that are known.
        plan_time(state, deadline, run.id, DUE_DEADLINE)
        if deadline <= state.now and not run.due:
            run.due = deadline  # until `do_due` ends it, nobody is handed anything of it
    state.aside.spare[run.id] = None  # until it is said what it is


def bring(state: State, ids: Iterable[int]) -> None:
    """Runs that a call names and that left after its lookups began come back."""
    if state.aside.left:
        for id in ids:
            run = state.aside.comes_back(id) if id not in state.runs else None
            if run is not None:
                enter(state, run)
                refresh(state, run)


def may_leave(state: State, run: Run) -> bool:
    """Whether the store knows all of a run, and nothing in memory needs it. If a write is missing, it is asked for."""
    id = run.id
    if run.standing or run.state != "active" or run.out or id in state.watchers:
        return False
    if run.as_of > state.stored_number or state.window.pinned((run.pass_, id)):
        return False
    if run.tried and run.backing_off:
        return False
    dirty = state.dirty
    clean = True
    if run.marked or (Kind.PROGRESS, id, 0) in dirty:
        dirty.write_now(Kind.PROGRESS, id)
        clean = False
    if run.total > PAGE_CHUNKS:
        for part, page in run.done.pages.items():
            if page.marked or (Kind.PAGE, run.id, part) in dirty:
                dirty.write_now(Kind.PAGE, run.id, part)
                clean = False
            elif page.as_of > state.stored_number:
                clean = False
    return clean


def leave(state: State, run: Run) -> None:
    """A run leaves memory; its tenant's counts stay."""
    owner, id, aside = run.owner, run.id, state.aside
    waiting = run.waiting if run.tried else run.ready
    del state.runs[id]
    aside.here -= 1
    del owner.runs[id]
    owner.away += waiting
    run.eligible = False
    aside.bytes -= bytes_of(run)
    if state.plans.laned:
        state.plans.leaves(run, waiting)
    aside.leaves(run)


def too_large(state: State) -> bool:
    """Whether the runs in memory take more than they may."""
    return state.aside.bytes > WINDOW_BYTES_MAX


def room(state: State) -> tuple[int, int]:
    """How many rows, and how many bytes of their bodies, a read may bring; one row at least."""
    share = (
        max(0, WINDOW_BYTES_MAX - state.aside.bytes) // 2
    )  # as much for the bodies as for what is beside them
    return max(1, share // RUN_BYTES), max(1, share)


def make_room(state: State) -> None:
    """Runs that the window does not hold leave: those that could be handed out soon, parked ones for room."""
    aside = state.aside
    if too_large(state):
        state.window.rows_max = max(1, min(aside.rows_max, len(state.runs) * WINDOW_BYTES_MAX // aside.bytes))
        fit(state)
    elif state.window.rows_max < aside.rows_max and aside.bytes < WINDOW_BYTES_MAX // 2:
        state.window.rows_max = aside.rows_max
    _let_go(state, aside.spare, len(aside.spare))
    if aside.idle:
        _let_go(state, aside.idle, len(state.runs) - state.window.rows_max)
    aside.forget_left()


def _let_go(state: State, among: OrderedDict[int, None], many: int) -> None:
    stay, runs = 0, state.runs
    # Most were never handed out (a backlog beyond the window): for these `may_leave` and `leave` are written out.
    usual = not (state.watchers or state.plans.laned or state.aside.tickets.open)
    has_progress, pinned = state.dirty.has_progress, state.window.pinned
    gone: list[Run] = []
    for _ in range(min(many, len(among))):
        id, _ = among.popitem(last=False)
        run = runs.get(id)
        if run is None or run.standing:
            continue
        new = not (run.next or run.as_of or run.marked or run.shuffled or run.returned or run.tried)
        if usual and new and run.state == "active" and not pinned((run.pass_, id)) and not has_progress(id):
            del runs[id]
            owner = run.owner
            del owner.runs[id]
            owner.away += run.ready
            run.eligible = False
            gone.append(run)
        elif may_leave(state, run):
            leave(state, run)
        else:
            among[id] = None
            stay += 1
            if stay == _STAY_MAX:
                break
    state.aside.here -= len(gone)
    state.aside.bytes -= sum(map(bytes_of, gone))
