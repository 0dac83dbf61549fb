"""Steering: weights, the three pauses, configuration, cancel and redrive.

Guards: a change acts at once on the existing backlog, and is stored whole in the group that makes it.
"""

from __future__ import annotations

import msgspec

from fairway.engine.backlog import admit_again, refresh, waits
from fairway.engine.commands import Cancel, Configure, Pause, Redrive
from fairway.engine.ending import end
from fairway.engine.lifecycle import submission_after
from fairway.engine.lookups import Found
from fairway.engine.placing import check_room, place
from fairway.engine.run import Run
from fairway.engine.sheets import page_of
from fairway.engine.state import State
from fairway.engine.views import find, submission_of
from fairway.engine.waiting import follow
from fairway.errors import AlreadyEnded, KeyConflict, NotFound, NothingToRedrive
from fairway.fair.levels import START
from fairway.fair.weights import W_DEFAULT
from fairway.model.config import QueueConfig, changed
from fairway.model.event import Happened, What
from fairway.model.stored import KeyRow, Kind, Move
from fairway.model.submission import Submission
from fairway.strategy.text import canonical


def set_weight(state: State, name: str, weight: int) -> None:
    """A tenant's share, in thousandths."""
    if weight == state.tables.weight.get(name, W_DEFAULT):
        return  # scaling rounds, so a weight that is given again and again must not scale
    tenant = state.tenant(name)
    state.tables.reweigh(tenant.name, weight)
    state.plans.reweighed(tenant.name)
    state.dirty.write_now(Kind.TENANT, name)
    state.filling.sync = True


def pause(state: State, command: Pause) -> None:
    """Set or clear one of the three flags; leases out go on."""
    if command.tenant is not None:
        tenant = state.tenant(command.tenant)
        tenant.paused = command.on
        for id in tenant.runs:
            refresh(state, state.runs[id])
        if not command.on:
            if tenant.away:
                state.aside.tenants[tenant.name] = START
            state.aside.unseen += 1
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
    """Change the queue's configuration; TooManyStrategies, and nothing is changed, if a new strategy has no place."""
    changes: dict[str, object] = dict(command.changes)
    if "strategy" in changes:
        changes["strategy"] = canonical(str(changes["strategy"]))
    config = changed(state.config, changes)
    follow(state, config.strategy)
    state.config = config
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
    if command.id in state.aside.doomed:
        raise NotFound(f"submission {command.id} ended, its retention is over, and it is being removed")
    run = find(state, command.id, found)
    if not run.dead and run.state not in ("failed", "cancelled"):
        raise NothingToRedrive(f"submission {run.id} is {run.state} and has no dead or skipped chunk")
    if run.state == "active":
        waits(state, run, len(run.dead))
        state.dead -= len(run.dead)
        run.ready += len(run.dead)
        _reopen(run)
    else:
        _revive(state, run, found)
    state.dirty.write_now(Kind.PROGRESS, run.id)
    state.filling.sync = True
    state.filling.events.append(Happened(What.REDRIVEN, state.now, [(run.id, 0, run.total)]))
    refresh(state, run)
    return submission_of(run)


def _reopen(run: Run) -> None:
    """Dead chunks wait again, as if never tried."""
    run.state = submission_after(run.state, "redrive")
    run.life += 1
    run.error, run.error_index = "", -1
    for index in run.dead:
        run.put_back(index)
    run.dead = {}
    run.gaps = sorted(run.returned)


def _revive(state: State, run: Run, found: Found) -> None:
    """An ended run becomes active in a new place; what was skipped waits again, leases still out stay leased."""
    old_pass, name = run.pass_, run.tenant
    ready = run.total - run.done.count - len(run.out)
    # Above its old place too: A may not have passed that yet, and a place is finished only once.
    floor = max(state.window.ack[0], old_pass) + 1
    check_room(state, [(name, ready, 0)], floor)
    if run.described.key:
        _keep_key(state, run, found)
    _start_over(run)
    _reopen(run)
    run.owner = state.tenant(name)
    run.ended = run.due = 0.0
    run.ready = ready
    run.pass_ = place(state, run.owner, ready, floor)
    state.filling.moves.append(Move(run.id, old_pass, run.pass_))
    # If it ended in this group, its pages stand there as they were then.
    for put in state.filling.puts:
        if put.kind is Kind.PAGE and put.key == run.id:
            state.dirty.write_now(Kind.PAGE, run.id, page_of(put.part))
    state.recent_ends.forget(run.id)  # else it would count as ended once it leaves memory
    state.recent_lives.put(run.id, None, state.number)
    admit_again(state, run)


def _start_over(run: Run) -> None:
    """A new life knows nothing of the attempts of the last one, nor of receipts that had run out."""
    for index in run.tried:
        if index not in run.out:
            run.put_back(index)
    run.tried = {}


def _keep_key(state: State, run: Run, found: Found) -> None:
    """The key of a submission that is active again; KeyConflict if another one has got it since."""
    where = (run.tenant, run.described.key)
    taken = state.recent_keys.get(where) or found.keys.get(where)
    if taken is not None and taken.id != run.id and not 0 < taken.expires <= state.now:
        raise KeyConflict(
            f"key {run.described.key!r} of submission {run.id} belongs to submission {taken.id} by now;"
            " submit the content again under a new key",
            submission=taken.id,
        )
    row = KeyRow(run.tenant, run.described.key, run.id, run.described.fingerprint)
    state.filling.keys.append(row)
    state.recent_keys.put(where, row, state.number)
