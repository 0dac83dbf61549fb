"""Bugs of leases, receipts, attempts and dead letters.

Guards: each lets a chunk come too early, too late, too often, or with a receipt that is worth nothing.
"""

from __future__ import annotations

from heapq import heappop
from typing import Any

from msgspec.structs import replace

from fairway.engine import backlog, ending, finishing, leases, listing, named, returning, steering, views
from fairway.engine.commands import Fail, Part
from fairway.engine.holds import Hold
from fairway.engine.leases import Spans
from fairway.engine.lookups import Found
from fairway.engine.records import Settled
from fairway.engine.run import Run, Tried
from fairway.engine.state import State
from fairway.model.page import result_page
from fairway.model.stored import ResultPage
from fairway.testing.planted.planting import wrong

# -- leases end

_give_back = returning.give_back


@wrong("a lease that ran out is never taken back", returning, "expired")
def never(state: State) -> list[Hold]:
    return []


@wrong("a lease is taken back too early", returning, "expired")
def early(state: State) -> list[Hold]:
    due: list[Hold] = []
    while state.expiries and state.expiries[0][0] <= state.now + 2.0:
        deadline, count, part = heappop(state.expiries)
        hold = state.holds.get((count, part))
        if hold is not None and hold.deadline == deadline:
            hold.deadline = state.now
            due.append(hold)
    return due


@wrong("a lease that ran out comes back a minute late", returning, "expired")
def late(state: State) -> list[Hold]:
    now, state.now = state.now, state.now - 60.0
    try:
        return _expired(state)
    finally:
        state.now = now


_expired = returning.expired


@wrong("an expired lease does not count", returning, "expire_one")
def uncounted(state: State, run: Run, index: int, hold: Hold, batch: Any) -> None:
    leases.drop_out(state, run, index)
    run.note(index, Tried(run.attempts(index), hold.epoch, hold.count))
    backlog.back(state, run, index)
    batch.waiting.setdefault(0.0, Spans()).add(run.id, index)
    batch.runs[run.id] = run


@wrong("a released lease counts", returning, "give_back")
def counted(state: State, run: Run, index: int, batch: Any) -> None:
    attempts = run.attempts(index) + 1
    _give_back(state, run, index, batch)
    run.note(index, Tried(attempts))


_drop_out = leases.drop_out


@wrong("a lease of a tenant that ends is still counted", leases, "drop_out")
def leaking(state: State, run: Run, index: int) -> Hold:
    hold = _drop_out(state, run, index)
    run.owner.leased += 1
    return hold


@wrong("a limit does not hear of completions", finishing, "freed", here=True)
def unheard(state: State, run: Run, n: int) -> None:
    pass


@wrong("a lease of an ended submission is in flight for ever", leases, "settle")
def unsettled(state: State, run: Run, index: int, count: int) -> None:
    state.filling.records.append(Settled(count, []))


# -- receipts


@wrong("a receipt needs no seal", leases, "genuine")
def anything(state: State, part: Part) -> bool:
    return True


_genuine = leases.genuine


@wrong("a receipt of the owner before is refused", leases, "genuine")
def of_this_owner(state: State, part: Part) -> bool:
    return part.epoch == state.epoch and _genuine(state, part)


_leased_by, _late, _complete = returning.leased_by, finishing._late, finishing.complete


@wrong("a stale receipt may fail, renew and release", returning, "leased_by")
def any_holder(state: State, id: int, index: int, part: Part, found: Found) -> Any:
    run = state.runs.get(id)
    hold = run.out.get(index) if run is not None else None
    if hold is None:
        return _leased_by(state, id, index, part, found)
    return _leased_by(state, id, index, replace(part, epoch=hold.epoch, count=hold.count), found)


@wrong("a stale receipt may complete", finishing, "_late")
def any_reservation(state: State, run: Run, index: int, hold: Hold | None, epoch: int, count: int) -> Any:
    tried = run.tried.get(index)
    if hold is None and tried is not None and tried.count:
        epoch, count = tried.epoch, tried.count
    return _late(state, run, index, hold, epoch, count)


@wrong("a result that comes after its lease is refused", finishing, "_late")
def too_late(state: State, run: Run, index: int, hold: Hold | None, epoch: int, count: int) -> Any:
    return _late(state, run, index, hold, epoch, count) if index in run.done else "lost"


@wrong("a completion is applied twice", finishing, "_late")
def done_again(state: State, run: Run, index: int, hold: Hold | None, epoch: int, count: int) -> Any:
    outcome = _late(state, run, index, hold, epoch, count)
    return "done" if outcome == "already" else outcome


@wrong("a result that lost is kept", finishing, "complete")
def keep_all(state: State, command: Any, found: Any) -> Any:
    reply = _complete(state, command, found)
    results = iter(command.results or ())
    words = (word for word, many in reply.outcomes for _ in range(many))
    for part in command.parts:
        for id, start, many in part.spans:
            for index in range(start, start + many):
                body, word = next(results, None), next(words)
                taken = any((page.id, page.first) == (id, index) for page in state.filling.results)
                if word == "lost" and body is not None and id in state.runs and not taken:
                    state.filling.results.append(ResultPage(id, index, result_page([(index, body)])))
    return reply


@wrong("a receipt of an earlier life is accepted", steering, "_start_over")
def remember(run: Run) -> None:
    for index, tried in run.tried.items():
        tried.due, tried.attempts = 0.0, 0
        if index not in run.out:
            run.put_back(index)


# -- attempts and dead letters

_fail, _attempts_max, _bury = returning.fail, returning.attempts_max, ending.bury


@wrong("one attempt more than attempts_max", returning, "attempts_max")
def one_more(state: State, run: Run) -> int:
    return _attempts_max(state, run) + 1


@wrong("one attempt less than attempts_max", returning, "attempts_max")
def one_less(state: State, run: Run) -> int:
    return max(1, _attempts_max(state, run) - 1)


@wrong("no dead letter is listed", listing, "list_dead")
def nothing_died(state: State, command: Any, found: Any) -> Any:
    return []


_dead_of = views.dead_of


@wrong("what waits is listed as a dead letter", views, "dead_of")
def next_one(run: Run) -> Any:
    return [replace(one, index=min(one.index + 1, run.total - 1)) for one in _dead_of(run)]


@wrong("a dead chunk waits as well", ending, "bury")
def half_dead(state: State, run: Run, index: int, attempts: int, error: str) -> None:
    _bury(state, run, index, attempts, error)
    backlog.back(state, run, index)


@wrong("a dead letter is counted twice", ending, "bury")
def twice_dead(state: State, run: Run, index: int, attempts: int, error: str) -> None:
    _bury(state, run, index, attempts, error)
    state.dead += 1


@wrong("fail_fast goes on", ending, "after_burial")
def go_on(state: State, run: Run) -> None:
    if run.state == "active":
        ending.end_if_finished(state, run)
        backlog.refresh(state, run)


@wrong("a dead letter ends its submission", ending, "after_burial")
def go_no_further(state: State, run: Run) -> None:
    if run.state == "active":
        ending.end(state, run, "chunk given up under fail_fast")


@wrong("nobody backs off", returning, "fail")
def at_once(state: State, command: Fail, found: Found) -> Any:
    return _fail(state, replace(command, delay_seconds=0.0), found)


@wrong("a back-off takes ten times as long", returning, "fail")
def ten_times(state: State, command: Fail, found: Found) -> Any:
    return _fail(state, replace(command, delay_seconds=command.delay_seconds * 10), found)


@wrong("a chunk that failed for good is tried again", returning, "fail")
def once_more(state: State, command: Fail, found: Found) -> Any:
    return _fail(state, replace(command, retry=True), found)


@wrong("a back-off never ends", returning, "back_off_over")
def stay_away(state: State, run: Run, index: int, due: float) -> None:
    pass


@wrong("a chunk that came back is handed out twice", Run, "_lowest_returned")
def still_there(self: Run) -> int:
    return min(self.returned)


# -- named reservations

_join, _trim = named.join, named.trim


@wrong("an old consumer is heard", named, "consumer_of")
def anybody(state: State, name: str, epoch: int) -> Any:
    consumer = state.consumers.get(name)
    return _consumer_of(state, name, epoch if consumer is None else consumer.epoch)


_consumer_of = named.consumer_of


@wrong("a name is taken over without a new epoch", named, "join")
def same_epoch(state: State, command: Any) -> int:
    known = command.consumer in state.consumers
    epoch = _join(state, command)
    state.consumers[command.consumer].epoch -= known
    return epoch - known


@wrong("a named reservation shrinks after its first completion", finishing, "_mark_named")
def unmarked(state: State, name: str, seq: int) -> None:
    pass


@wrong("a trimmed seq is handed out again", named, "trim")
def untrimmed(state: State, command: Any, found: Any) -> None:
    consumer = state.consumers.get(command.consumer)
    before = -1 if consumer is None else consumer.trimmed
    _trim(state, command, found)
    state.consumers[command.consumer].trimmed = before
