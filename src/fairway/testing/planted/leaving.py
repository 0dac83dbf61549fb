"""Bugs of what is over: it stays in the store, or is still counted, or lives on in the next life.

Guards: each is harmless for a while, and does harm in the end.
"""

from __future__ import annotations

from typing import Any

from fairway.engine import closing, ending, finishing, leases, presence, steering
from fairway.engine.holds import Hold
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.fair.turns import Turns
from fairway.model.stored import Kind
from fairway.testing.planted.planting import wrong

# -- in the store


@wrong("a lease record stays in the store when its last chunk is answered", leases, "remove")
def kept(state: State, hold: Hold) -> None:
    state.holds.pop((hold.count, hold.part), None)
    state.dirty.clear(Kind.HOLD, hold.count, hold.part)


_leave_objects = ending._leave_objects


@wrong("the progress of what ended stays in the store", ending, "_leave_objects")
def progress_kept(state: State, run: Run) -> None:
    drops = len(state.filling.drops)
    _leave_objects(state, run)
    del state.filling.drops[drops:]


@wrong("a client that left stays in the store", presence, "forget_client")
def client_kept(state: State, id: int) -> None:
    del state.clients[id]
    state.dirty.clear(Kind.CLIENT, id)


@wrong("the turns of idle tenants are kept for ever", Turns, "forget_due")
def none_due(self: Turns) -> list[str]:
    return []


_advance = closing._advance


@wrong("places that are over are never given up", closing, "_advance")
def never(state: State) -> Any:
    _advance(state)


# -- in flight


@wrong(
    "a lease of an ended submission is counted though a result came for it", finishing, "settle", here=True
)
def unsettled(state: State, run: Run, index: int, count: int) -> None:
    pass


# -- in the next life


_reopen = steering._reopen


@wrong("a new life knows the attempts of the last one", steering, "_start_over")
def worn_out(run: Run) -> None:
    for index, tried in run.tried.items():
        tried.due, tried.epoch, tried.count = 0.0, 0, 0
        if index not in run.out:
            run.put_back(index)


@wrong("a redrive is no life of its own", steering, "_reopen")
def same_life(run: Run) -> None:
    _reopen(run)
    run.life -= 1
