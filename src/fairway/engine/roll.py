"""The roll: the ids of runs in memory in their order, for listings that stop at their limit.

Guards: every active run in memory is on it, some that are gone as well; it is made when a listing first wants it, and
let go when too much of it is gone, so that a queue that nobody lists does nothing for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from fairway.engine.run import Run

_GONE_MAX = 1024  # entries that may be of runs that are gone, beside as many as there are runs


class Roll:
    """Ids, rising; those that came out of their order are put among the others when somebody looks."""

    __slots__ = ("_ids", "_late", "_runs")

    def __init__(self, runs: Mapping[int, Run]) -> None:
        self._runs = runs
        self._ids: list[int] | None = None
        self._late: list[int] = []

    def add(self, runs: Sequence[Run]) -> None:
        """These are in memory from now on, in the order of their ids."""
        ids = self._ids
        if ids is None or not runs:
            return
        if len(ids) + len(self._late) > 2 * len(self._runs) + _GONE_MAX:
            self._let_go()
        elif ids and runs[0].id <= ids[-1]:
            self._late += [run.id for run in runs]
        else:
            ids += [run.id for run in runs]

    def above(self, id: int) -> Iterator[int]:
        """The ids of active runs above one, rising. Nothing may come into memory before it was left."""
        ids = self._made()
        last, gone = 0, 0
        try:
            for one in islice(ids, bisect_right(ids, id), None):
                run = self._runs.get(one)
                if run is None or run.state != "active" or one == last:
                    gone += 1
                    continue
                last = one
                yield one
        finally:
            if gone > _GONE_MAX:
                self._let_go()

    def _made(self) -> list[int]:
        if self._ids is None:
            self._ids = sorted(self._runs)
        elif self._late:
            self._ids += self._late
            self._ids.sort()
            self._late = []
        return self._ids

    def _let_go(self) -> None:
        self._ids, self._late = None, []
