"""Steering: weights, the three pauses, configuration, cancel and redrive.

Guards: a change acts at once on the existing backlog, and is stored whole in the group that makes it.
"""

from __future__ import annotations

import msgspec

from fairway.engine.backlog import admit, appear, refresh
from fairway.engine.commands import Cancel, Configure, Pause, Redrive
from fairway.engine.ending import end
from fairway.engine.lifecycle import submission_after
from fairway.engine.lookups import Found
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.views import find, submission_of
from fairway.errors import AlreadyEnded, NothingToRedrive
from fairway.model.config import QueueConfig, changed
from fairway.model.event import Happened, What
from fairway.model.stored import KeyRow, Kind, Move
from fairway.model.submission import Submission
from fairway.strategy.text import canonical


def set_weight(state: State, name: str, weight: int) -> None:
    """A tenant's share, in thousandths."""
    tenant = state.tenant(name)
    state.tables.reweigh(tenant.name, weight)
    state.plans.reweighed(tenant.name)
    state.dirty.write_now(Kind.TENANT, name)
    state.filling.sync = True


def pause(state: State, command: Pause) -> None:
    """Set or clear one of the three flags; leases out go on."""
    state.filling.sync = True
    if command.tenant is not None:
        tenant = state.tenant(command.tenant)
        tenant.paused = command.on
        for run in tenant.runs.values():
            refresh(state, run)
        state.dirty.write_now(Kind.TENANT, tenant.name)
    elif command.submission:
        run = state.runs.get(command.submission)
        if run is None or run.state != "active":
            raise AlreadyEnded(
                f"submission {command.submission} is not active, so it cannot be paused or resumed"
            )
        run.paused = command.on
        refresh(state, run)
        state.dirty.write_now(Kind.PROGRESS, run.id)
    else:
        state.paused = command.on
        state.woken = True
        state.dirty.write_now(Kind.CONFIG, 0)


def configure(state: State, command: Configure) -> dict[str, object]:
    """Change the queue's configuration."""
    changes: dict[str, object] = dict(command.changes)
    if "strategy" in changes:
        changes["strategy"] = canonical(str(changes["strategy"]))
    state.config = changed(state.config, changes)
    state.dirty.write_now(Kind.CONFIG, 0)
    state.filling.sync = True
    return config_dict(state.config)


def config_dict(config: QueueConfig) -> dict[str, object]:
    return msgspec.structs.asdict(config)


def cancel(state: State, command: Cancel, found: Found) -> Submission:
    """End a submission; the loser of a race with another end gets AlreadyEnded."""
    run = find(state, command.id, found)
    if run.state != "active":
        raise AlreadyEnded(
            f"submission {run.id} is {run.state} already; nothing was changed", state=run.state
        )
    end(state, run, "cancel")
    return submission_of(run)


def redrive(state: State, command: Redrive, found: Found) -> Submission:
    """Open dead and skipped chunks again, in a new life."""
    run = find(state, command.id, found)
    if not run.dead and run.state not in ("failed", "cancelled"):
        raise NothingToRedrive(f"submission {run.id} is {run.state} and has no dead or skipped chunk")
    if run.state == "active":
        _reopen(state, run)
        run.owner.waiting += len(run.dead)
        run.ready += len(run.dead)
    else:
        _revive(state, run)
    run.dead = {}
    state.dirty.write_now(Kind.PROGRESS, run.id)
    state.filling.sync = True
    state.filling.events.append(Happened(What.REDRIVEN, state.now, [(run.id, 0, run.total)]))
    refresh(state, run)
    return submission_of(run)


def _reopen(state: State, run: Run) -> None:
    """Dead chunks wait again, as if never tried."""
    submission_after(run.state, "redrive")
    run.life += 1
    run.error, run.error_index = "", -1
    for index in run.dead:
        run.put_back(index)
    run.gaps = sorted(run.returned)


def _revive(state: State, run: Run) -> None:
    """An ended run becomes active in a new place; what was skipped waits again, leases still out stay leased."""
    old_pass, name = run.pass_, run.tenant
    run.owner = tenant = state.tenant(name)
    run.returned = run.returned | {
        index for index in (*run.tried, *run.dead) if index not in run.done and index not in run.out
    }
    run.tried = {}
    _reopen(state, run)
    run.state = "active"
    run.ended = 0.0
    run.ready = run.total - run.done.count - len(run.out)
    run.due = 0.0
    had = appear(state, tenant, run.ready)
    plain = state.tables.plain
    run.pass_ = state.forecast.place(
        name, run.ready, plain.turn.get(name, plain.v), plain.rest.get(name, 0), had, state.acked.ack[0] + 1
    )
    plain.moved.add(name)
    state.top = max(state.top, run.pass_)
    state.acked.placed((run.pass_, run.id))
    state.filling.moves.append(Move(run.id, old_pass, run.pass_))
    if run.described.key:
        row = KeyRow(name, run.described.key, run.id, run.described.fingerprint)
        state.filling.keys.append(row)
        state.recent_keys.put((name, row.key), row, state.number)
    run.dead = {}
    admit(state, run)
