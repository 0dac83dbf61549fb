"""The backlog: which runs can be handed out from, and the counts of their tenants.

Guards: a run is eligible iff it is active, due, not paused and has ready chunks; tenants' counts are exact.
"""

from __future__ import annotations

from heapq import heappush

from fairway.engine.run import Run
from fairway.engine.state import DUE_DEADLINE, DUE_START, State
from fairway.engine.tenant import Tenant
from fairway.model.stored import Kind


def admit(state: State, run: Run) -> None:
    """A run enters the backlog (submitted, redriven or loaded), with its chunks counted."""
    tenant, id = run.owner, run.id
    state.runs[id] = run
    tenant.runs[id] = None
    tenant.waiting += run.waiting
    if state.plans.laned:
        state.plans.enters(run, run.waiting)
    described = run.described
    if described.not_before > state.now:
        run.due = described.not_before
        heappush(state.dues, (run.due, id, DUE_START))
    if described.deadline and run.life == 1:  # a redriven submission is past it
        heappush(state.dues, (described.deadline, id, DUE_DEADLINE))
    refresh(state, run)


def refresh(state: State, run: Run) -> None:
    """Say whether the run can be handed out from, after anything that may have changed it."""
    if run.ready and run.state == "active" and not run.paused and not run.due and not run.owner.paused:
        run.eligible = True
        state.plans.add(run)
        state.woken = True
    else:
        run.eligible = False


def back(state: State, run: Run, index: int) -> None:
    """A leased chunk waits again."""
    waits(state, run, 1)
    run.give_back(index)


def waits(state: State, run: Run, n: int) -> None:
    """n chunks more of the run wait; fewer, if it is negative."""
    run.owner.waiting += n
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
