"""Bugs of the window: what it tracks, what it reads, where A stands, which runs are in memory.

Guards: each loses rows, or keeps them from being found, only when a backlog is longer than the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.engine import search, steering
from fairway.engine import windowing as windowing_
from fairway.engine.reads import Read
from fairway.engine.state import State
from fairway.errors import FairwayError
from fairway.fair.levels import Forecast, Level
from fairway.fair.tracking import NEVER, Mode, Tracking
from fairway.testing.planted.planting import wrong

# -- A


@wrong("parked rows do not bound A", Tracking, "_parks")
def unbound(self: Tracking, level: Level) -> None:
    pass


@wrong("no pin", Tracking, "lowest_pin")
def unpinned(self: Tracking) -> Level:
    return NEVER


_merge = Tracking.merge
_place = Forecast.place


@wrong("a row is placed below A", Forecast, "place")
def anywhere(
    self: Forecast, tenant: str, chunks: int, turn: int, rest: int, has_backlog: bool, a_pass: int
) -> int:
    return _place(self, tenant, chunks, turn, rest, has_backlog, 0)


@wrong("places are given up above the saved A", windowing_, "give_up_places")
def up_to_what_was_read(state: State) -> Level | None:
    aside, read = state.aside, state.window.read
    if not aside.by_range or read <= aside.given_up:
        return None
    aside.given_up, aside.given_up_at = read, state.now
    return read


# -- R and reads


@wrong("R follows the rows that are tracked", Tracking, "merge")
def low_read(self: Tracking, levels: Sequence[Level], mode: Mode, more: bool = False) -> None:
    before = self.read
    _merge(self, levels, mode, more)
    if mode == "MIDDLE":
        self.read = max(before, max(self.tracked, default=before))


_fail_read = windowing_.fail


@wrong("a read that failed is not made again", windowing_, "fail")
def give_up(state: State, read: Read, error: FairwayError) -> None:
    if read.kind != "main":
        _fail_read(state, read, error)
    elif state.aside.reading.pop(read.ticket, None) is not None:
        state.aside.tickets.close(read.ticket)


# -- what is in memory


@wrong("no work is said before the store is asked", search, "in_vain")
def always(state: State, strategy: str) -> bool:
    return True


_pause = steering.pause


@wrong("a resumed tenant is not looked for in the store", steering, "pause")
def not_looked_for(state: State, command: Any) -> None:
    wanted, unseen = dict(state.aside.tenants), state.aside.unseen
    _pause(state, command)
    state.aside.tenants, state.aside.unseen = wanted, unseen
