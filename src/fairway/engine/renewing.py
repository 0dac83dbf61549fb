"""Renewing: leases get a new deadline; those renewed together form a part of their own.

Guards: a renewal never shortens another lease of the same reservation.
"""

from __future__ import annotations

from heapq import heappush

from fairway.engine.commands import LeasedSpan, Part, Renew
from fairway.engine.commands import Settled as SettledReply
from fairway.engine.finishing import Tally, check_parts
from fairway.engine.holds import Hold
from fairway.engine.leases import left_behind
from fairway.engine.lookups import Found
from fairway.engine.records import Renewed
from fairway.engine.returning import leased
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.errors import BadArgument
from fairway.limits import LEASE_SECONDS_MAX, LEASE_SECONDS_MIN
from fairway.model.event import Happened, What
from fairway.model.stored import Kind


def renew(state: State, command: Renew, found: Found) -> SettledReply:
    """New deadlines, counted from now."""
    check_parts(command.parts)
    seconds = command.seconds or state.config.lease_seconds
    if not LEASE_SECONDS_MIN <= seconds <= LEASE_SECONDS_MAX:
        raise BadArgument(
            f"seconds must be from {LEASE_SECONDS_MIN} to {LEASE_SECONDS_MAX:.0f}, not {seconds}"
        )
    tally = Tally()
    deadline = state.now + seconds
    for part in command.parts:
        mine: dict[tuple[int, int], Run] = {}  # a chunk that is named twice is renewed once
        for run, index in leased(state, part, tally, found):
            mine[run.id, index] = run
            tally.add("renewed")
        if mine:
            _move(state, part, mine, deadline, seconds)
    return SettledReply(tally.outcomes, deadline)


def _move(
    state: State, part: Part, mine: dict[tuple[int, int], Run], deadline: float, seconds: float
) -> None:
    new = Hold(part.epoch, part.count, state.next_count, deadline, seconds)
    state.next_count += 1  # part numbers come from the same well, so none is used twice
    for (_, index), run in mine.items():
        transfer(state, run, index, new)
    state.holds[new.count, new.part] = new
    heappush(state.expiries, (deadline, new.count, new.part))
    if new.consumer in state.consumers:
        state.consumers[new.consumer].seen = state.now
    state.dirty.mark(Kind.HOLD, new.count, new.part, state.number)
    filling = state.filling
    record = Renewed(new.epoch, new.count, new.part, deadline, seconds, new.spans, new.consumer, new.seq)
    filling.records.append(record)
    filling.events.append(Happened(What.RENEWED, state.now, new.spans, part.epoch, part.count))  # pyright: ignore[reportArgumentType]


def transfer(state: State, run: Run, index: int, new: Hold) -> None:
    """Move one leased chunk from its hold into another of the same reservation."""
    old = run.out[index]
    run.out[index] = new
    old.left -= 1
    new.left += 1
    new.consumer, new.seq = old.consumer, old.seq
    attempt = run.attempts(index) + 1
    last: LeasedSpan | None = new.spans[-1] if new.spans else None
    if last is not None and last[0] == run.id and last[1] + last[2] == index and last[3] == attempt:
        new.spans[-1] = (run.id, last[1], last[2] + 1, attempt)
    else:
        new.spans.append((run.id, index, 1, attempt))
    left_behind(state, old)
