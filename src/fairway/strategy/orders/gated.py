"""Random below limits: every chunk whose values are all below their limits is equally likely.

Guards: each unit of the caps of open gates is drawn with the same chance, and accepted iff it is a chunk that can
be handed out: exactly uniform, whatever was found full or over on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from fairway.model.dice import Dice
from fairway.strategy.candidate import value_of
from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R
from fairway.strategy.orders.ceilings import Ceilings
from fairway.strategy.orders.urn import Urn
from fairway.strategy.tiers import Cap, Value

_Name = tuple[str, Value] | None
_FREE: _Name = None  # the gate of runs that no limit binds: always open


class GatedOrder(Generic[R]):
    """Every run stands at one of its values, an urn of runs by what they have ready; open values are in an urn too.

    A value that is found full leaves the urn of open ones until it is freed; a run that another of its values
    blocks moves there when it is drawn.
    """

    def __init__(
        self, dice: Dice, caps: tuple[tuple[str, Cap], ...], counts: dict[str, dict[Value, int]]
    ) -> None:
        self._dice = dice
        self._counts = counts
        self._ceilings = Ceilings(caps, counts)
        self.most = self._ceilings.most
        self._runs: dict[int, R] = {}
        self._where: dict[int, _Name] = {}
        self._gates: dict[_Name, Urn[int]] = {}
        self._open: Urn[_Name] = Urn()
        self._sweep_at = SWEEP_RUNS_MIN

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: R) -> None:
        if run.ready <= 0:
            return
        id = run.id
        known = id in self._runs
        self._runs[id] = run
        if not known:
            self._enter(run, self._best_gate(run))
            if len(self._runs) > self._sweep_at:
                self.sweep()
        elif run.ready > self._gates[self._where[id]].cap(id):
            self._enter(run, self._where[id])

    def take(self, k: int, grab: Grab[R]) -> int:
        left, below = k, self._dice.below
        while left > 0 and self._open.total:
            name, rest = self._open.at(below(self._open.total))
            urn = self._gates[name]
            if self._is_full(name):
                self._open.remove(name)  # until it is freed
            elif rest >= urn.total:
                if urn.total << 1 <= self._open.cap(name):
                    self._open.put(name, urn.total)
            else:
                left -= self._draw(name, urn, rest, grab)
        return k - left

    def _draw(self, name: _Name, urn: Urn[int], draw: int, grab: Grab[R]) -> int:
        """One draw inside an open gate; gives how many chunks were handed out, 0 or 1."""
        id, rest = urn.at(draw)
        run, taken = self._runs[id], 0
        if run.eligible:
            blocking = self._blocking(run)
            if blocking is not _FREE:
                self._leave(id)
                self._enter(run, blocking)
                return 0
            if rest < run.ready:
                grab(run, 1, True)
                taken = 1
        if not run.eligible:
            self._leave(id)
            del self._runs[id]
        elif run.ready << 1 <= urn.cap(id):
            self._enter(run, name)
        return taken

    def freed(self, key: str, value: Value) -> None:
        urn = self._gates.get((key, value))
        if urn is not None:
            self._open.put((key, value), urn.total)

    def seen(self, consumers: int) -> None:
        for key, value in self._ceilings.seen(consumers):
            self.freed(key, value)

    def end(self) -> None:
        pass  # nothing in it leads back

    def reweighed(self, tenant: str) -> None:
        pass

    def runs(self) -> Iterable[R]:
        return self._runs.values()

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

    def sweep(self) -> None:
        for id in [id for id, run in self._runs.items() if not run.eligible]:
            self._leave(id)
            del self._runs[id]
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(self._runs))

    # -- where runs stand

    def _is_full(self, name: _Name) -> bool:
        return name is not None and self._counts[name[0]].get(name[1], 0) >= self.most[name[0]]

    def _names(self, run: R) -> list[tuple[str, Value]]:
        found = [(key, value_of(run, key)) for key in self.most]
        return [(key, value) for key, value in found if value is not None]

    def _blocking(self, run: R) -> _Name:
        for name in self._names(run):
            if self._is_full(name):
                return name
        return _FREE

    def _best_gate(self, run: R) -> _Name:
        """A full value if there is one, else the one that most runs stand at: if it fills up, nothing moves."""
        blocking = self._blocking(run)
        if blocking is not _FREE:
            return blocking
        names, gates = self._names(run), self._gates
        return max(names, key=lambda name: len(gates[name]) if name in gates else 0, default=_FREE)

    def _enter(self, run: R, name: _Name) -> None:
        urn = self._gates.get(name)
        if urn is None:
            urn = self._gates[name] = Urn()
        urn.put(run.id, run.ready)
        self._where[run.id] = name
        if name in self._open:
            if urn.total > self._open.cap(name):
                self._open.put(name, urn.total)
        elif not self._is_full(name):
            self._open.put(name, urn.total)

    def _leave(self, id: int) -> None:
        name = self._where.pop(id)
        urn = self._gates[name]
        urn.remove(id)
        if not len(urn):
            del self._gates[name]
            if name in self._open:
                self._open.remove(name)
