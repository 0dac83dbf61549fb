"""Leases: taking chunks out of their lease records, one way for every end of a lease.

Guards: a chunk that leaves its hold is counted out of it, of its tenant and of the queue exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.engine.commands import Part, Span
from fairway.engine.ending import forget
from fairway.engine.holds import Hold, seal_of
from fairway.engine.records import Settled
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.model.stored import Drop, Kind


class Spans:
    """Chunks in the order given, with neighbours joined."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def add(self, id: int, index: int, count: int = 1) -> None:
        if self.spans:
            last_id, start, many = self.spans[-1]
            if last_id == id and start + many == index:
                self.spans[-1] = (id, start, many + count)
                return
        self.spans.append((id, index, count))


def genuine(state: State, part: Part) -> bool:
    """Whether the receipts were made by this queue."""
    if not 0 <= part.epoch < 1 << 64 or not 0 <= part.count < 1 << 64:
        return False
    # Not `==`: how long a comparison takes must not tell how much of a guess is right.
    return not part.seal ^ seal_of(state.secret, part.epoch, part.count)


def drop_out(state: State, run: Run, index: int) -> Hold:
    """The chunk is no longer leased; its hold goes with its last chunk."""
    hold = run.out.pop(index)
    hold.left -= 1
    run.owner.leased -= 1
    state.leased -= 1
    if state.plans.limited:
        freed(state, run, 1)
    left_behind(state, hold)
    return hold


def freed(state: State, run: Run, n: int) -> None:
    """Chunks are no longer in flight; a limit that opens wakes those who wait."""
    if state.plans.freed(run, n):
        state.woken = True
        state.aside.unseen += 1  # rows of its value that are not in memory


def left_behind(state: State, hold: Hold) -> None:
    """Chunks left the hold; it goes with its last one."""
    if hold.left:
        state.dirty.mark(Kind.HOLD, hold.count, hold.part, state.number)
    else:
        remove(state, hold)


def remove(state: State, hold: Hold) -> None:
    """A hold with nothing out leaves."""
    state.holds.pop((hold.count, hold.part), None)
    state.dirty.clear(Kind.HOLD, hold.count, hold.part)
    if hold.as_of:
        state.filling.drops.append(Drop(Kind.HOLD, hold.count, hold.part))


def settle(state: State, run: Run, index: int, count: int) -> None:
    """A lease of an ended submission was answered or ran out."""
    drop_out(state, run, index)
    run.put_back(index)  # for a redrive
    state.filling.records.append(Settled(count, [(run.id, index, 1)]))
    if not run.out:
        forget(state, run)


def held(state: State, hold: Hold) -> Iterator[tuple[Run, int, int]]:
    """The chunks of a hold that are still out, with the attempt they were leased for."""
    for id, start, count, attempt in hold.spans:
        run = state.runs.get(id)
        if run is not None:
            for index in range(start, start + count):
                if run.out.get(index) is hold:
                    yield run, index, attempt
