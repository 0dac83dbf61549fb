"""Views: what the queue shows of itself.

Guards: a view is made from the state after everything before it, and leaves only when that is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairway.engine.commands import (
    Consumers,
    ConsumerView,
    QueueStats,
    Reserved,
    Stats,
    Tenants,
    TenantView,
    Win,
    Winners,
)
from fairway.engine.lookups import Found
from fairway.engine.run import Run
from fairway.engine.tenant import Tenant
from fairway.engine.thaw import decode_described, pages_into, thaw
from fairway.errors import NotFound
from fairway.fair.weights import W_DEFAULT, weight_of
from fairway.limits import LIST_ROWS_MAX
from fairway.model.ids import seconds_of
from fairway.model.submission import DeadChunk, Described, Submission

if TYPE_CHECKING:  # who is attached uses some of these views, and has no engine
    from fairway.engine.state import State


def find(state: State, id: int, found: Found) -> Run:
    """A run by id, active or ended; NotFound if there is none."""
    run = state.runs.get(id) or state.recent_ends.get(id)
    if run is None:
        stored = found.runs.get(id)
        if stored is None or stored.state == "active":
            raise NotFound(f"there is no submission {id} (or it ended and its retention is over)")
        run = thaw(stored, state.seed)
        pages_into(run, found)
    return run


def submission_of(run: Run) -> Submission:
    """The public form of a run."""
    described = run.described
    return Submission(
        id=run.id,
        state=run.state,
        tenant=run.tenant,
        total=run.total,
        done=run.done.count,
        failed=len(run.dead),
        leased=len(run.out),
        created=seconds_of(run.id),
        ended=run.ended,
        life=run.life,
        paused=run.paused,
        metadata=described.metadata,
        info=described.info,
        priority=described.priority,
        policy=described.policy,
        not_before=described.not_before,
        deadline=described.deadline,
        key=described.key,
        error=run.error,
        error_index=run.error_index,
    )


def dead_of(run: Run) -> list[DeadChunk]:
    """The dead chunks of a run, in index order."""
    return [
        DeadChunk(run.id, index, run.tenant, mark.attempts, mark.error, mark.at)
        for index, mark in sorted(run.dead.items())
    ]


def stats(state: State, command: Stats) -> QueueStats:
    """Counts."""
    return QueueStats(
        queue=state.queue,
        submissions_active=state.live,
        chunks_waiting=sum(tenant.waiting for tenant in state.tenants.values()),
        chunks_leased=state.leased,
        chunks_done=state.done,
        chunks_dead=state.dead,
        tenants=sum(_matters(state, tenant) for tenant in state.tenants.values()),
        reservations=len(state.holds),
        waiters=state.waiting,
        paused=state.paused,
        groups=state.groups,
        calls=state.calls,
        syncs=state.syncs,
        chunks_retrying=sum(_backs_off(state, *due) for due in state.dues),
        handed=state.handed,
        completed=state.completed,
        died=state.died,
    )


def _backs_off(state: State, due: float, id: int, index: int) -> bool:
    """Whether an entry of the due times is the present back-off of a chunk."""
    run = state.runs.get(id)
    tried = run.tried.get(index) if run is not None and run.state == "active" else None
    return tried is not None and tried.due == due


def tenants(state: State, command: Tenants) -> list[TenantView]:
    """Tenants that have work, a weight of their own or a pause, by name."""
    after = command.after
    names = sorted(
        name
        for name, tenant in state.tenants.items()
        if (after is None or name > after) and _matters(state, tenant)
    )
    weight = state.tables.weight
    views: list[TenantView] = []
    for name in names[: min(command.limit, LIST_ROWS_MAX)]:
        tenant = state.tenants[name]
        share = weight_of(weight.get(name, W_DEFAULT))
        oldest = seconds_of(min(tenant.runs)) if tenant.runs else 0.0
        views.append(
            TenantView(
                name,
                share,
                tenant.paused,
                tenant.submissions,
                tenant.waiting,
                tenant.leased,
                tenant.handed,
                oldest,
            )
        )
    return views


def _matters(state: State, tenant: Tenant) -> bool:
    """Whether there is more to a tenant than the turn that is remembered of it."""
    return bool(
        tenant.waiting
        or tenant.leased
        or tenant.submissions
        or tenant.paused
        or tenant.name in state.tables.weight
    )


def consumers(state: State, command: Consumers) -> list[ConsumerView]:
    """Named consumers by name."""
    return [
        ConsumerView(name, consumer.epoch, sorted(consumer.open), consumer.seen)
        for name, consumer in sorted(state.consumers.items())
    ]


def winners(state: State, command: Winners, found: Found) -> list[Win]:
    """Which attempts completed a range of chunks."""
    run = find(state, command.id, found)
    start = max(0, command.start)
    end = min(command.start + command.count, run.total)
    return sorted(run.done.wins(start, end - start), key=lambda win: win.start) if start < end else []


def described_again(state: State, reply: Reserved, found: Found) -> Reserved:
    """A reservation that is handed back, with its submissions; only those that were purged are left out."""
    known: dict[int, Described] = {}
    for id in {span[0] for span in reply.spans}:
        run = state.runs.get(id) or state.recent_ends.get(id) or state.aside.lately(id)
        if run is not None:
            known[id] = run.described
        elif id in found.runs:
            known[id] = decode_described(found.runs[id].body)
    return msgspec.structs.replace(reply, runs=known)
