"""Listings of active submissions: those in memory and those in the store, as one.

Guards: a submission is listed once, as the engine knows it now; what ended since the store was read is not listed. A
page costs what is on it, not what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from fairway.engine.commands import ListActive, ListDead
from fairway.engine.lodging import run_of
from fairway.engine.lookups import Found
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.thaw import decode_described
from fairway.engine.views import dead_of, submission_of
from fairway.limits import LIST_ROWS_MAX, LIST_WALK_RUNS
from fairway.model.submission import DeadChunk, Submission, cut


def asks_index(state: State, command: ListActive) -> bool:
    """Whether a listing by metadata would look through more runs in memory than it should: the store has an index."""
    if not command.metadata.keys() - {"tenant"}:
        return False
    tenant = state.tenants.get(command.tenant) if command.tenant is not None else None
    return len(state.runs if tenant is None else tenant.runs) > LIST_WALK_RUNS


def list_active(state: State, command: ListActive, found: Found) -> list[Submission]:
    """Active submissions in id order."""
    return list(cut(_listed(state, command, found)))


def _listed(state: State, command: ListActive, found: Found) -> Iterator[Submission]:
    away = {run.id: run for run in _away(state, found)}
    last = found.listed[-1].id if found.more else None
    pages = merge(_here(state, command, found), sorted(away))
    before, left = command.after, min(command.limit, LIST_ROWS_MAX)
    for id in pages:
        if not left or (last is not None and id > last):
            return
        run = away[id] if id in away else state.runs[id]
        if id > before and _fits(run, command):
            yield submission_of(run)
            left -= 1
        before = max(before, id)


def _here(state: State, command: ListActive, found: Found) -> Iterator[int]:
    """Active runs in memory that may be listed, by id, rising; of those in the store's index only what it missed."""
    after = command.after
    if found.above is not None and command.metadata.keys() - {"tenant"}:
        known = {stored.id for stored in found.listed} | set(state.recent_lives)
        old = (id for id in known if after < id <= found.above and _is_active(state, id))
        yield from sorted(old)
        yield from state.roll.above(max(after, found.above))
        return
    name = command.tenant
    if name is None:
        yield from state.roll.above(after)
        return
    mine = state.tenants[name].runs if name in state.tenants else {}
    if len(mine) * len(mine) <= LIST_WALK_RUNS * len(state.runs):
        yield from sorted(id for id in mine if id > after)
    else:  # so large a share of all is met soon
        yield from state.roll.above(after)


def _is_active(state: State, id: int) -> bool:
    run = state.runs.get(id)
    return run is not None and run.state == "active"


def _fits(run: Run, command: ListActive) -> bool:
    return command.tenant in (None, run.tenant) and all(
        _same(run, key, value) for key, value in command.metadata.items()
    )


def _away(state: State, found: Found) -> Iterator[Run]:
    """Runs that were found in the store, or went there since it was read, by what is known of them now."""
    if found.above is not None:
        yield from (run for id, (_, run) in state.aside.left.items() if _missed(state, id, found.above))
    for stored in found.listed:
        id = stored.id
        if id in state.runs or id in state.recent_ends:
            continue
        known = state.aside.left.get(id)
        if known is not None:
            yield known[1]
        else:
            pages = [(part, body) for (of, part), body in found.pages.items() if of == id]
            yield run_of(state, stored, decode_described(stored.body), pages)


def _missed(state: State, id: int, above: int) -> bool:
    """Whether a run that left memory may be missing in what was read."""
    if id <= above and id not in state.recent_lives:
        return False
    return id not in state.runs and id not in state.recent_ends


def _same(run: Run, key: str, value: str | int) -> bool:
    mine = run.tenant if key == "tenant" else run.metadata.get(key)
    return type(mine) is type(value) and mine == value


def list_dead(state: State, command: ListDead, found: Found) -> list[DeadChunk]:
    """Dead chunks of active submissions after an id."""
    here = (run for run in state.runs.values() if run.state == "active")
    among = {run.id: run for run in (*here, *_away(state, found)) if run.dead}
    dead: list[DeadChunk] = []
    for id in sorted(among):
        if id > command.after and len(dead) < command.limit:
            dead += dead_of(among[id])
    return dead
