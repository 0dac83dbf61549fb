"""Building: a new plan takes in the runs of the queue slice by slice, while commands go on between the slices.

Guards: every run is counted and added exactly once: by the walk if it was there before, else by what brings it; what
is built so is what would have been built at once when the last slice is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic

from fairway.strategy.candidate import selects
from fairway.strategy.compiling import Live
from fairway.strategy.inflight import InFlight
from fairway.strategy.lanes import Lanes
from fairway.strategy.order import R
from fairway.strategy.tiers import Tier


class Building(Generic[R]):
    """The orders, counts and lanes that are new with one plan, and the runs that they have not seen.

    What happens to an unseen run is not told to them: the walk finds it as it is by then.
    """

    __slots__ = ("_ids", "_in_flight", "_lanes", "_out", "keys", "lives", "tiers", "unseen")

    def __init__(
        self,
        tiers: tuple[Tier, ...],
        lives: Sequence[Live[R]],
        keys: frozenset[str],
        runs: Mapping[int, R],
        in_flight: InFlight[R],
        lanes: Lanes[R],
        out: Callable[[R], int],
    ) -> None:
        self.tiers = tiers
        self.lives = lives
        self.keys = keys  # counted in flight for the first time
        self.unseen = dict(runs)
        for live in lives:
            live.order.expect(len(runs))  # a sweep in the middle of a slice would take as long as many slices
        self._ids: Iterator[int] = iter(list(self.unseen))
        self._in_flight = in_flight
        self._lanes = lanes
        self._out = out

    def go_on(self, steps: int) -> bool:
        """Take in the next runs, as many as so many orders' additions cost; says whether all are in."""
        unseen = self.unseen
        for id in islice(self._ids, max(1, steps // len(self.lives))):
            run = unseen.pop(id, None)
            if run is not None:
                self._take_in(run)
        return not unseen

    def _take_in(self, run: R) -> None:
        if self.keys and (out := self._out(run)):
            self._in_flight.count(run, out, self.keys)
        if self._lanes.young:
            self._lanes.count(run)
        self.add(run)

    def add(self, run: R) -> None:
        """A run that was seen may have become eligible."""
        if run.eligible and run.id not in self.unseen:
            for live in self.lives:
                if selects(live.tier.selection, run):
                    live.order.add(run)

    def comes(self, run: R) -> bool:
        """A run enters the queue; says whether the walk is still to meet it, as its new self."""
        if run.id not in self.unseen:
            return False
        self.unseen[run.id] = run
        return True
