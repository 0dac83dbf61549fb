"""Coming back: leases that fail, are released or run out.

Guards: a failed or expired lease counts one attempt, a released one none; at most attempts_max attempts, then dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from fairway.engine.backlog import back, refresh, settle_tenant, touch, waits
from fairway.engine.commands import Fail, Outcome, Part, Release
from fairway.engine.commands import Settled as SettledReply
from fairway.engine.ending import after_burial, bury
from fairway.engine.finishing import Tally, check_parts
from fairway.engine.holds import Hold
from fairway.engine.leases import Spans, drop_out, genuine, held, settle
from fairway.engine.lookups import Found
from fairway.engine.records import Died, Returned
from fairway.engine.run import Run, Tried
from fairway.engine.state import State
from fairway.errors import BadArgument
from fairway.limits import DELAY_SECONDS_MAX, ERROR_BYTES_MAX
from fairway.model.event import Happened, What
from fairway.model.stored import Kind


class _Batch:
    """Chunks of one attempt that come back together: to wait, or dead."""

    __slots__ = ("dead", "dead_runs", "runs", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[float, Spans] = {}  # by due time
        self.dead = Spans()
        self.runs: dict[int, Run] = {}
        self.dead_runs: dict[int, Run] = {}


def attempts_max(state: State, run: Run) -> int:
    """How often a chunk of this run is handed out at most."""
    return run.described.attempts_max or state.config.attempts_max


def kept_error(error: str) -> str:
    """As much of an error as is kept of a chunk."""
    return error.encode(errors="replace")[:ERROR_BYTES_MAX].decode(errors="ignore")


def leased_by(state: State, id: int, index: int, part: Part, found: Found) -> Run | Outcome:
    """The run if this receipt is the chunk's present lease and its submission is active; else the outcome."""
    run = state.runs.get(id)
    if run is None:
        stored = found.runs.get(id)
        over = id in state.recent_ends or (stored is not None and stored.state != "active")
        return "ended" if over else "lost"
    hold = run.out.get(index)
    if hold is None or hold.count != part.count or hold.epoch != part.epoch:
        return "lost" if run.state == "active" else "ended"
    if run.state != "active":
        settle(state, run, index, part.count)
        return "ended"
    return run


def leased(state: State, part: Part, tally: Tally, found: Found) -> Iterator[tuple[Run, int]]:
    """The chunks of a part that its receipt holds, one by one; the outcome of each other one goes to the tally."""
    honest = genuine(state, part)
    for id, start, many in part.spans:
        for index in range(start, start + many):
            run = leased_by(state, id, index, part, found) if honest else "lost"
            if isinstance(run, str):
                tally.add(run)
            else:
                yield run, index


def fail(state: State, command: Fail, found: Found) -> SettledReply:
    """The work failed: again later, or given up."""
    check_parts(command.parts)
    if command.delay_seconds > DELAY_SECONDS_MAX:
        raise BadArgument(
            f"delay_seconds must be at most {DELAY_SECONDS_MAX:.0f}, not {command.delay_seconds}"
        )
    error = kept_error(command.error)
    tally = Tally()
    for part in command.parts:
        batch = _Batch()
        for run, index in leased(state, part, tally, found):
            tally.add(_fail_one(state, run, index, command, error, batch))
        _store(state, part.epoch, part.count, batch, What.FAILED, error, latest=False)
        state.filling.sync = True
    return SettledReply(tally.outcomes)


def _fail_one(state: State, run: Run, index: int, command: Fail, error: str, batch: _Batch) -> Outcome:
    drop_out(state, run, index)
    attempts = run.attempts(index) + 1
    if not command.retry or attempts >= attempts_max(state, run):
        bury(state, run, index, attempts, error)
        batch.dead.add(run.id, index)
        batch.dead_runs[run.id] = run
        return "dead"
    delay = command.delay_seconds
    if delay < 0:
        config = state.config
        delay = min(config.retry_delay_seconds * 2 ** (attempts - 1), config.retry_delay_seconds_max)
    due = state.now + delay if delay else 0.0
    run.note(index, Tried(attempts, 0, 0, due, error))
    if due:
        waits(state, run, 1)
        heappush(state.dues, (due, run.id, index))
    else:
        back(state, run, index)
    batch.waiting.setdefault(due, Spans()).add(run.id, index)
    batch.runs[run.id] = run
    return "retrying"


def release(state: State, command: Release, found: Found) -> SettledReply:
    """Leases given back untouched."""
    check_parts(command.parts)
    tally = Tally()
    for part in command.parts:
        batch = _Batch()
        for run, index in leased(state, part, tally, found):
            give_back(state, run, index, batch)
            tally.add("released")
        _store(state, part.epoch, part.count, batch, What.RELEASED, "", latest=False, counted=False)
    return SettledReply(tally.outcomes)


def give_back(state: State, run: Run, index: int, batch: _Batch) -> None:
    """A lease ends and counts nothing."""
    drop_out(state, run, index)
    tried = run.tried.get(index)
    if tried is not None:
        tried.epoch = tried.count = 0
    back(state, run, index)
    batch.waiting.setdefault(0.0, Spans()).add(run.id, index)
    batch.runs[run.id] = run


def lapse(state: State, hold: Hold, chunks: int) -> None:
    """Chunks of a named reservation went back, and its consumer did not say so: it may have used them."""
    consumer = state.consumers.get(hold.consumer)
    named = consumer.open.get(hold.seq) if consumer is not None else None
    if chunks and named is not None and (named.epoch, named.count) == (hold.epoch, hold.count):
        named.lapsed += chunks
        state.dirty.write_now(Kind.CONSUMER, hold.consumer)


def release_chunks(state: State, hold: Hold, chunks: list[tuple[Run, int]]) -> None:
    """Some chunks of a hold go back uncounted."""
    batch = _Batch()
    for run, index in chunks:
        give_back(state, run, index, batch)
    _store(state, hold.epoch, hold.count, batch, What.RELEASED, "", latest=False, counted=False)


def expire(state: State, hold: Hold) -> None:
    """The time of a hold is over: what is still out comes back, counted."""
    batch, back = _Batch(), 0
    for run, index, _ in list(held(state, hold)):
        if run.state != "active":
            settle(state, run, index, hold.count)
        else:
            expire_one(state, run, index, hold, batch)
            back += 1
    lapse(state, hold, back)
    _store(state, hold.epoch, hold.count, batch, What.EXPIRED, "the lease ran out", latest=True)


def expire_one(state: State, run: Run, index: int, hold: Hold, batch: _Batch) -> None:
    """One lease ran out; its receipt stays the latest until somebody takes the chunk."""
    drop_out(state, run, index)
    attempts = run.attempts(index) + 1
    if attempts >= attempts_max(state, run):
        bury(state, run, index, attempts, "the lease ran out")
        batch.dead.add(run.id, index)
        batch.dead_runs[run.id] = run
    else:
        run.note(index, Tried(attempts, hold.epoch, hold.count))
        back(state, run, index)
        batch.waiting.setdefault(0.0, Spans()).add(run.id, index)
        batch.runs[run.id] = run


def _store(
    state: State,
    epoch: int,
    count: int,
    batch: _Batch,
    what: What,
    error: str,
    *,
    latest: bool,
    counted: bool = True,
) -> None:
    filling = state.filling
    for due, spans in batch.waiting.items():
        filling.records.append(
            Returned(epoch, count, counted, latest, due, spans.spans, error if not latest else "")
        )
        filling.events.append(Happened(what, state.now, spans.spans, epoch, count, detail=error))  # pyright: ignore[reportArgumentType]
    if batch.dead.spans:
        filling.records.append(Died(epoch, count, state.now, error, batch.dead.spans))
        filling.events.append(Happened(What.DEAD, state.now, batch.dead.spans, epoch, count, detail=error))  # pyright: ignore[reportArgumentType]
    for run in batch.runs.values():
        touch(state, run)
        refresh(state, run)
    for run in batch.dead_runs.values():
        touch(state, run)
        after_burial(state, run)
    for run in (*batch.runs.values(), *batch.dead_runs.values()):
        settle_tenant(state, run.owner)


def back_off_over(state: State, run: Run, index: int, due: float) -> None:
    """A back-off has ended, if this was still it."""
    tried = run.tried.get(index)
    if tried is not None and tried.due == due and run.state == "active":
        tried.due = 0.0
        run.give_back(index)  # it counted as waiting all the time
        refresh(state, run)  # nothing to store: a start sees the same due time


def expired(state: State) -> list[Hold]:
    """Holds whose time is over, taken off the heap."""
    due: list[Hold] = []
    while state.expiries and state.expiries[0][0] <= state.now:
        deadline, count, part = heappop(state.expiries)
        hold = state.holds.get((count, part))
        if hold is not None and hold.deadline == deadline:
            due.append(hold)
    return due
