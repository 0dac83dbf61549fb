"""Reserving: picks become leases, recorded before they leave.

Guards: reserve(k) is k single picks; no chunk is leased twice at a time; an attempt is never issued twice.
"""

from __future__ import annotations

from heapq import heappush

from fairway import limits
from fairway.engine.backlog import all_out, touch
from fairway.engine.commands import Reserve, Reserved
from fairway.engine.holds import Hold, seal_of
from fairway.engine.records import Leased
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.errors import BadArgument, BadStrategy
from fairway.model.event import Happened, What
from fairway.model.stored import Kind

NOTHING = Reserved(0, 0, 0, 0.0, [])


def strategy_of(state: State, command: Reserve) -> str:
    """The strategy that counts: the caller's, unless the queue has locked its own."""
    config = state.config
    if config.strategy_locked and command.strategy and command.strategy != config.strategy:
        raise BadStrategy(f"this queue is locked to the strategy {config.strategy}; leave the strategy out")
    return command.strategy or config.strategy


def check(command: Reserve) -> None:
    """Refuse what is out of bounds."""
    if not 1 <= command.max <= limits.RESERVE_CHUNKS_MAX:
        raise BadArgument(f"max must be from 1 to {limits.RESERVE_CHUNKS_MAX}, not {command.max}")
    seconds = command.lease_seconds
    if seconds and not limits.LEASE_SECONDS_MIN <= seconds <= limits.LEASE_SECONDS_MAX:
        low, high = limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX
        raise BadArgument(f"lease_seconds must be from {low} to {high:.0f}, not {seconds}")
    if not 0 <= command.wait_seconds <= limits.WAIT_SECONDS_MAX:
        raise BadArgument(
            f"wait_seconds must be from 0 to {limits.WAIT_SECONDS_MAX:.0f}, not {command.wait_seconds}"
        )


def pick(state: State, command: Reserve) -> Hold | None:
    """Lease up to command.max chunks, or None if nothing can be handed out now, or the plan is being made."""
    plans = state.plans
    plan = plans.get(strategy_of(state, command))
    if state.paused or not plan.ready:
        return None
    seconds = command.lease_seconds or state.config.lease_seconds
    if command.consumer:
        seconds = state.config.consumer_silent_seconds
    hold = Hold(state.epoch, state.next_count, 0, state.now + seconds, seconds)

    def grab(run: Run, n: int, shuffled: bool) -> None:
        if shuffled is not hold.shuffled:
            hold.turn(shuffled)
        run.take(n, hold)
        if not run.ready:
            run.eligible = False
            all_out(state, run)
        if told:
            if limited:
                plans.leased(run, n)
            if laned:
                plans.waits(run, -n)

    limited, laned = plans.limited, plans.laned
    told = limited or laned
    plan.take(command.max, grab, state.reservers.count(state.now) if plan.by_share else 1)
    if not hold.spans:
        return None
    state.next_count += 1
    hold.consumer, hold.seq = command.consumer, command.seq
    _count(state, hold)
    _record(state, hold)
    return hold


def _count(state: State, hold: Hold) -> None:
    """What is out now, of the hold, its runs and their tenants."""
    runs, counted, left = state.runs, state.counted, 0
    for id, _, n, _ in hold.spans:
        run = runs[id]
        owner = run.owner
        owner.waiting -= n
        owner.leased += n
        owner.handed += n
        counted.add(owner.name)
        left += n
        if not run.marked:
            touch(state, run)
    hold.left = left
    state.handed += left
    state.leased += left


def _record(state: State, hold: Hold) -> None:
    """A new lease record."""
    state.holds[hold.count, hold.part] = hold
    heappush(state.expiries, (hold.deadline, hold.count, hold.part))
    filling = state.filling
    filling.records.append(
        Leased(
            hold.epoch,
            hold.count,
            hold.deadline,
            hold.seconds,
            hold.spans,
            hold.cuts,
            hold.consumer,
            hold.seq,
        )
    )
    filling.events.append(Happened(What.RESERVED, state.now, hold.spans, hold.epoch, hold.count))  # pyright: ignore[reportArgumentType]
    state.dirty.mark(Kind.HOLD, hold.count, hold.part, state.number)


def reserved(state: State, hold: Hold) -> Reserved:
    """The reply for a lease record."""
    runs = state.runs
    return Reserved(
        hold.epoch,
        hold.count,
        seal_of(state.secret, hold.epoch, hold.count),
        hold.deadline,
        hold.spans,
        {span[0]: runs[span[0]].described for span in hold.spans},
    )
