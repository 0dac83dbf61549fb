"""Listings of active submissions: those in memory and those in the store, as one.

Guards: a submission is listed once, as the engine knows it now; what ended since the store was read is not listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.engine.commands import ListActive, ListDead
from fairway.engine.lodging import run_of
from fairway.engine.lookups import Found
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.engine.thaw import decode_described
from fairway.engine.views import dead_of, submission_of
from fairway.limits import LIST_ROWS_MAX
from fairway.model.submission import DeadChunk, Submission


def list_active(state: State, command: ListActive, found: Found) -> list[Submission]:
    """Active submissions in id order."""
    wanted = command.metadata.items()
    after, many = command.after, min(command.limit, LIST_ROWS_MAX)
    last = found.listed[-1].id if found.more else None
    among = {run.id: run for run in _here(state, command.tenant)}
    among.update({run.id: run for run in _away(state, found)})
    ids = sorted(
        id
        for id, run in among.items()
        if id > after
        and (last is None or id <= last)
        and command.tenant in (None, run.tenant)
        and all(_same(run, key, value) for key, value in wanted)
    )
    return [submission_of(among[id]) for id in ids[:many]]


def _here(state: State, tenant: str | None) -> Iterator[Run]:
    if tenant is None:
        yield from (run for run in state.runs.values() if run.state == "active")
    elif tenant in state.tenants:
        yield from (state.runs[id] for id in state.tenants[tenant].runs)


def _away(state: State, found: Found) -> Iterator[Run]:
    """Runs that were found in the store, by what is known of them now."""
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


def _same(run: Run, key: str, value: str | int) -> bool:
    mine = run.tenant if key == "tenant" else run.metadata.get(key)
    return type(mine) is type(value) and mine == value


def list_dead(state: State, command: ListDead, found: Found) -> list[DeadChunk]:
    """Dead chunks of active submissions after an id."""
    among = {run.id: run for run in (*_here(state, None), *_away(state, found)) if run.dead}
    dead: list[DeadChunk] = []
    for id in sorted(among):
        if id > command.after and len(dead) < command.limit:
            dead += dead_of(among[id])
    return dead
