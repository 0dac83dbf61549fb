"""Ending: a submission becomes completed, failed or cancelled, once per life.

Guards: an ended run is in no plan and in no level; its leases count in flight until they are answered or run out.
"""

from __future__ import annotations

from fairway import limits
from fairway.engine.answering import answer
from fairway.engine.backlog import bytes_of, over, refresh, settle_tenant, waits
from fairway.engine.lifecycle import submission_after
from fairway.engine.progress import encode_end, usual_end
from fairway.engine.run import DeadMark, Run
from fairway.engine.sheets import written
from fairway.engine.state import State, Watcher
from fairway.engine.views import submission_of
from fairway.limits import PAGE_CHUNKS
from fairway.model.event import What
from fairway.model.stored import Drop, End, KeyRow, Kind

_NOBODY: dict[int, Watcher] = {}
_TOLD = {"completed": What.ENDED_COMPLETED, "failed": What.ENDED_FAILED, "cancelled": What.ENDED_CANCELLED}


def end_late(state: State, run: Run) -> None:
    """End an active run whose deadline passed."""
    run.error = run.error or "the deadline passed"
    if run.due <= state.now:
        run.due = 0.0
    end(state, run, "deadline")


def end(state: State, run: Run, event: str) -> None:
    """End a run that is active."""
    if run.ready or run.tried:
        waits(state, run, -run.waiting)
    run.state = submission_after("" if event == "submit of no chunks" else run.state, event)
    run.ended = state.now
    run.eligible = False
    over(state, run)
    filling = state.filling
    filling.sync = True
    filling.tell(_TOLD[run.state], state.now, (run.id, 0, run.total), event)
    filling.ends.append(
        End(
            run.id,
            run.pass_,
            run.tenant,
            run.state,
            run.ended,
            _body(state, run),
            len(run.dead),
        )
    )
    _leave_objects(state, run)
    if run.described.key:
        expires = state.now + limits.KEY_SECONDS
        row = KeyRow(run.tenant, run.described.key, run.id, run.described.fingerprint, expires)
        filling.keys.append(row)
        state.recent_keys.put((row.tenant, row.key), row, state.number)
    if not run.out:
        forget(state, run)
    for watcher in state.watchers.pop(run.id, _NOBODY).values():
        state.waiting -= 1
        for draft in watcher.drafts:
            answer(state, draft, submission_of(run))
        watcher.drafts = []


def _body(state: State, run: Run) -> bytes:
    """The end's body; messages of one call that went well have the same."""
    usual, filling = usual_end(run, state.number), state.filling
    if usual is None:
        return encode_end(run, state.number)
    if usual != filling.usual:
        filling.usual, filling.usual_body = usual, encode_end(run, state.number)
    return filling.usual_body


def _leave_objects(state: State, run: Run) -> None:
    """The end's body replaces the progress; pages stay, in their last form."""
    state.dirty.clear(Kind.PROGRESS, run.id)
    run.marked = False
    if run.as_of:
        state.filling.drops.append(Drop(Kind.PROGRESS, run.id, 0))
    if run.total <= PAGE_CHUNKS:
        return  # its only page is in the end's body
    for number, page in run.done.pages.items():
        if (Kind.PAGE, run.id, number) in state.dirty:
            state.dirty.clear(Kind.PAGE, run.id, number)
            state.filling.puts += written(page, run.id, number, state.number)


def forget(state: State, run: Run) -> None:
    """Nothing of an ended run is out any more; a call that counted on it still finds it for a while."""
    del state.runs[run.id]
    state.aside.bytes -= bytes_of(run)
    state.recent_ends.put(run.id, run, state.number)
    state.filling.left.append(run.id)
    settle_tenant(state, run.owner)


def end_if_finished(state: State, run: Run) -> None:
    """End the run if its last chunk is done or dead."""
    if run.done.count + len(run.dead) == run.total:
        end(state, run, "last chunk done, some dead" if run.dead else "last chunk done")


def bury(state: State, run: Run, index: int, attempts: int, error: str) -> None:
    """Give a chunk up that is neither waiting nor leased any more."""
    run.bury(index, DeadMark(attempts, state.now, error))
    state.dead += 1
    state.died += 1


def after_burial(state: State, run: Run) -> None:
    """What dead chunks mean for their submission."""
    if run.state != "active":
        return
    if run.described.policy == "fail_fast":
        end(state, run, "chunk given up under fail_fast")
    else:
        end_if_finished(state, run)
        refresh(state, run)  # nothing of it may be out any more
