"""Beside the window: runs in memory that it does not hold, runs that left lately, and what is wanted from the store.

Guards: a run that left memory is known until every read that began before is over; nothing that is wanted is
forgotten before it was read.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from fairway.engine.recent import Recent
from fairway.engine.tickets import Tickets
from fairway.engine.troubles import Troubles

if TYPE_CHECKING:
    from fairway.engine.reads import Read
    from fairway.engine.run import Run
    from fairway.engine.search import Search
    from fairway.engine.state import Waiter
    from fairway.fair.levels import Level
    from fairway.model.stored import Time


class Aside:
    """All of it, and nothing of what is in the window."""

    def __init__(self) -> None:
        self.by_range = False  # the store keeps places until they are given up by range
        self.gc_rows = 0  # finished places that are given up together
        self.rows_max = 0  # the window's size as it was asked for
        self.bytes = 0  # about what the runs in memory take
        # runs in memory that the window does not hold
        self.here = 0  # active runs in memory
        self.spare: OrderedDict[int, None] = OrderedDict()  # they could be handed out, and should leave
        self.idle: OrderedDict[int, None] = OrderedDict()  # parked: they stay while there is room
        self.over: set[tuple[int, int]] = set()  # places of a read that is being merged which are finished
        self.left: OrderedDict[int, tuple[int, Run]] = OrderedDict()  # (reads begun when it left, run)
        self.carried: Recent[int, int] = Recent()  # the new passes of runs that are not in memory
        self.doomed: set[int] = set()  # ended runs of which something is being removed
        # what is wanted from the store
        self.tickets: Tickets[object] = Tickets()
        self.ids: OrderedDict[int, None] = OrderedDict()  # runs that are due or over
        self.tenants: dict[
            str, Level
        ] = {}  # tenants that were resumed, and above which level they are wanted
        self.due_until: Time | None = None  # later due times are not known; None: all are
        self.over_until: Time | None = None  # later deadlines are not known
        self.reading: dict[int, Read] = {}  # reads that are out
        self.slice: Read | None = None  # a slice that was read and waits for the group to be closed
        self.slice_rows: list[tuple[tuple[int, int], bool]] = []
        self.troubles = Troubles()  # reads that fail
        # plans that find nothing
        self.unseen = 0  # rises when a run that is not in memory may have become eligible
        self.dry: dict[str, int] = {}  # by strategy: `unseen` when the store was last searched in vain
        self.searches: dict[str, Search] = {}
        self.overdue: dict[
            int, Waiter
        ] = {}  # reserves whose time is over, while the store is searched for them
        self.given_up_at = 0.0  # when places were last given up
        self.given_up: tuple[int, int] = (0, 0)  # up to where

    def leaves(self, run: Run) -> None:
        """A run leaves memory; it is kept for the reads that are out."""
        self.spare.pop(run.id, None)
        self.idle.pop(run.id, None)
        if self.tickets.begun > self.tickets.oldest:
            self.left[run.id] = (self.tickets.begun, run)

    def lately(self, id: int) -> Run | None:
        """A run that left while a read is out, which may have been begun without looking for it."""
        found = self.left.get(id)
        return None if found is None else found[1]

    def comes_back(self, id: int) -> Run | None:
        """A run that left while a read is out that may not have seen its last changes."""
        found = self.left.pop(id, None)
        return None if found is None else found[1]

    def moves(self, id: int, pass_: int, number: int) -> None:
        """A run that is not in memory takes a new place; a read that is out may bring it from its old one."""
        self.carried.put(id, pass_, number)
        found = self.left.get(id)
        if found is not None:
            found[1].pass_ = pass_

    def forget_left(self) -> None:
        """Let go of runs that no open read can be older than."""
        left, oldest = self.left, self.tickets.oldest
        while left:
            id, (begun, _) = next(iter(left.items()))
            if begun > oldest:
                return
            del left[id]

    def is_reading(self, *kinds: str) -> bool:
        return any(read.kind in kinds for read in self.reading.values())
