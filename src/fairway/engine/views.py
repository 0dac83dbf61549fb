"""Views: what the queue shows of itself.

Guards: a view is made from the state after everything before it, and leaves only when that is stored.
"""

from __future__ import annotations

import msgspec

from fairway.engine.commands import (
    Consumers,
    ConsumerView,
    ListActive,
    ListDead,
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
from fairway.engine.state import State
from fairway.engine.tenant import Tenant
from fairway.engine.thaw import decode_described, pages_into, thaw
from fairway.errors import NotFound
from fairway.fair.weights import W_DEFAULT, weight_of
from fairway.limits import LIST_ROWS_MAX
from fairway.model.ids import seconds_of
from fairway.model.submission import DeadChunk, Described, Submission


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


def list_active(state: State, command: ListActive) -> list[Submission]:
    """Active submissions in id order."""
    if command.tenant is None:
        among = state.runs
    else:
        tenant = state.tenants.get(command.tenant)
        among = {} if tenant is None else tenant.runs
    wanted = command.metadata.items()
    after, many = command.after, min(command.limit, LIST_ROWS_MAX)
    ids = sorted(
        id
        for id in among
        if id > after
        and (run := state.runs[id]).state == "active"
        and all(_same(run, key, value) for key, value in wanted)
    )
    return [submission_of(state.runs[id]) for id in ids[:many]]


def _same(run: Run, key: str, value: str | int) -> bool:
    mine = run.tenant if key == "tenant" else run.metadata.get(key)
    return type(mine) is type(value) and mine == value


def dead_of(run: Run) -> list[DeadChunk]:
    """The dead chunks of a run, in index order."""
    return [
        DeadChunk(run.id, index, run.tenant, mark.attempts, mark.error, mark.at)
        for index, mark in sorted(run.dead.items())
    ]


def list_dead(state: State, command: ListDead) -> list[DeadChunk]:
    """Dead chunks of active submissions after an id."""
    dead: list[DeadChunk] = []
    for id in sorted(run.id for run in state.runs.values() if run.dead and run.state == "active"):
        if id > command.after and len(dead) < command.limit:
            dead += dead_of(state.runs[id])
    return dead


def stats(state: State, command: Stats) -> QueueStats:
    """Counts."""
    active = [run for run in state.runs.values() if run.state == "active"]
    return QueueStats(
        queue=state.queue,
        submissions_active=len(active),
        chunks_waiting=sum(tenant.waiting for tenant in state.tenants.values()),
        chunks_leased=state.leased,
        chunks_done=sum(run.done.count for run in active),
        chunks_dead=sum(len(run.dead) for run in active),
        tenants=sum(_matters(state, tenant) for tenant in state.tenants.values()),
        reservations=len(state.holds),
        waiters=state.waiting,
        paused=state.paused,
        groups=state.groups,
        calls=state.calls,
        syncs=state.syncs,
    )


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
        views.append(TenantView(name, share, tenant.paused, len(tenant.runs), tenant.waiting, tenant.leased))
    return views


def _matters(state: State, tenant: Tenant) -> bool:
    """Whether there is more to a tenant than the turn that is remembered of it."""
    return bool(
        tenant.waiting or tenant.leased or tenant.runs or tenant.paused or tenant.name in state.tables.weight
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
        run = state.runs.get(id) or state.recent_ends.get(id)
        if run is not None:
            known[id] = run.described
        elif id in found.runs:
            known[id] = decode_described(found.runs[id].body)
    return msgspec.structs.replace(reply, runs=known)
