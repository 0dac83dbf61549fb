"""Every base order but Random below limits: what a full value blocks is parked there and costs nothing.

Guards: flows and open gates that hold runs have one valid entry on top; its key may be too low, never too high.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic

from fairway.strategy.candidate import value_of
from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R
from fairway.strategy.orders.ceilings import Ceilings
from fairway.strategy.orders.cells import GONE, Cell, Flow, Gate
from fairway.strategy.orders.ranking import ID_BITS, Ranking
from fairway.strategy.tiers import Cap, Value

_FEW: Final = 8  # so many cells of a flow are born at a gate; so many at a gate go home, more are corrected
_VOID_MAX: Final = 64  # a heap with more void entries than this, and than valid ones, is made anew


class ParkingOrder(Generic[R]):
    """Flows and gates on one heap; a cell stands at home in its flow, or is parked at one gate.

    A cell that a full value blocks is parked there; when the gate's turn comes its best cell goes home. So a
    value that fills up or is freed moves one gate, however many runs have it. Where many cells are parked, the
    turns of those that were charged since are corrected on the spot; few go home, where one key stands for all.
    """

    def __init__(
        self, ranking: Ranking, caps: tuple[tuple[str, Cap], ...], counts: dict[str, dict[Value, int]]
    ) -> None:
        self._ranking = ranking
        self._sign = ranking.sign
        self._counts = counts
        self._ceilings = Ceilings(caps, counts)
        self.most = self._ceilings.most
        # The tenant's own limit is looked at once for its flow, not for each of its cells.
        self._by_tenant = ranking.tenants and "tenant" in self.most
        self._keys = tuple(key for key in self.most if not (self._by_tenant and key == "tenant"))
        self._runs: dict[int, R] = {}  # by signed id
        self._clear()
        self._sweep_at = SWEEP_RUNS_MIN

    def _clear(self) -> None:
        self._top: list[tuple[int, Flow | Gate]] = []
        self._flows: dict[Hashable, Flow] = {}
        self._of_tenant: dict[str, list[Flow]] = {}
        self._cells: dict[Hashable, Cell] = {}
        self._gates: dict[tuple[str, Value], Gate] = {}

    def __len__(self) -> int:
        return len(self._runs)

    # -- what happens

    def add(self, run: R) -> None:
        id = run.id * self._sign
        flow = self._flow(run)
        if flow.turns is not None and run.tenant not in flow.turns.turn:
            flow.turns.appear(run.tenant)
        known = id in self._runs
        self._runs[id] = run
        if known:
            return
        cell = self._cell(flow, run, id)
        heappush(cell.ids, id)
        if id <= cell.id:
            cell.id = id
            if cell.parked is None:
                self._home(cell)
            else:
                self._park(cell, cell.parked)
        if len(self._runs) > self._sweep_at:
            if all(run.eligible for run in self._runs.values()):
                self._sweep_at = 2 * len(self._runs)
            else:
                self.sweep()

    def take(self, k: int, grab: Grab[R]) -> int:
        left = k
        while left > 0 and (cell := self._next()) is not None:
            run, flow = self._runs[cell.id], cell.flow
            turns = flow.turns
            if turns is None:
                n = min(left, run.ready, *[self.most[gate.key] - self._out(gate) for gate in cell.gates])
                grab(run, n, False)
                left -= n
                continue
            grab(run, 1, False)
            left -= 1
            turns.charge(flow.tenant)
            key = flow.entry = self._key(flow, cell.id)
            heapreplace(self._top, (key, flow))
            turns.rebase_due()
        return k - left

    def freed(self, key: str, value: Value) -> None:
        if self._by_tenant and key == "tenant":
            for flow in self._of_tenant.get(str(value), ()):
                self._raise(flow)
            return
        gate = self._gates.get((key, value))
        if gate is not None and gate.heap:
            self._raise_gate(gate, gate.heap[0][0])

    def reweighed(self, tenant: str) -> None:
        # Also if it is forgotten now: it may come back at a lower turn than its dead runs had.
        for flow in self._of_tenant.get(tenant, ()):
            self._lower(flow)

    def seen(self, consumers: int) -> None:
        for key, value in self._ceilings.seen(consumers):
            self.freed(key, value)

    def end(self) -> None:
        for gate in self._gates.values():
            gate.heap.clear()
        for flow in self._flows.values():
            flow.home.clear()
            flow.cells.clear()

    def runs(self) -> Iterable[R]:
        return self._runs.values()

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

    def sweep(self) -> None:
        runs, self._runs = self._runs, {}
        self.end()
        self._clear()
        self._sweep_at = len(runs) + 1
        for run in runs.values():
            if run.eligible:
                self.add(run)
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(self._runs))

    # -- making and ending

    def _flow(self, run: R) -> Flow:
        name = self._ranking.flow(run)
        flow = self._flows.get(name)
        if flow is None:
            ranking = self._ranking
            flow = self._flows[name] = Flow(name, run.tenant, ranking.turns(run), ranking.above(run))
            if ranking.tenants:
                self._of_tenant.setdefault(run.tenant, []).append(flow)
        return flow

    def _cell(self, flow: Flow, run: R, id: int) -> Cell:
        values = tuple([value_of(run, key) for key in self._keys])
        name = (flow.name, values)
        cell = self._cells.get(name)
        if cell is not None:
            return cell
        gates: list[Gate] = []
        parked = None
        for key, value in zip(self._keys, values, strict=True):
            if value is None:
                continue
            gate = self._gates.get((key, value))
            if gate is None:
                gate = self._gates[key, value] = Gate(key, value, self._counts[key])
            elif not gates and len(flow.cells) < _FEW:
                parked = gate  # so that a value that fills up closes one gate, and nothing moves
            gate.users += 1
            gates.append(gate)
        cell = self._cells[name] = Cell(name, flow, tuple(gates), id)
        flow.cells.append(cell)
        if parked is not None:
            cell.parked = parked
            parked.parked += 1
        return cell

    def _end(self, cell: Cell) -> None:
        """No run of the cell is left; what only it used goes with it."""
        flow = cell.flow
        del self._cells[cell.name]
        if cell.parked is not None:
            cell.parked.parked -= 1
            cell.parked = None
        cell.id = GONE
        for gate in cell.gates:
            gate.users -= 1
            if not gate.users:
                gate.entry = None
                gate.heap.clear()
                del self._gates[gate.key, gate.value]
        last = flow.cells.pop()
        if last is not cell:
            flow.cells[cell.place] = last
            last.place = cell.place
        if not flow.cells:
            flow.entry = None
            flow.home.clear()
            del self._flows[flow.name]
            if self._ranking.tenants:
                own = self._of_tenant[flow.tenant]
                own.remove(flow)
                if not own:
                    del self._of_tenant[flow.tenant]

    # -- choosing

    def _next(self) -> Cell | None:
        """The cell whose lowest run is next; its flow stands first on top."""
        top, most = self._top, self.most
        while top:
            key, first = top[0]
            if first.entry != key:
                heappop(top)
            elif isinstance(first, Gate):
                self._visit(first, key)
            elif self._by_tenant and self._counts["tenant"].get(first.tenant, 0) >= most["tenant"]:
                heappop(top)
                first.entry = None  # until the tenant is freed
            elif (cell := self._front(first)) is None:
                heappop(top)
                first.entry = None
            else:
                if first.turns is not None and first.tenant not in first.turns.turn:
                    first.turns.appear(first.tenant)  # forgotten under its run
                now = self._key(first, cell.id)
                if now == key:
                    return cell
                first.entry = now
                heapreplace(top, (now, first))
        return None

    def _front(self, flow: Flow) -> Cell | None:
        """The cell at home with the lowest eligible run and no full value; those that are blocked are parked."""
        home = flow.home
        while home:
            id, cell = home[0]
            if cell.id != id or cell.parked is not None:
                heappop(home)
                continue
            first = self._first(cell)
            if first is None:
                heappop(home)
                self._end(cell)
            elif first != id:
                cell.id = first
                heapreplace(home, (first, cell))
            else:
                full = self._full(cell)
                if full is None:
                    return cell
                heappop(home)
                self._park(cell, full)
        return None

    def _visit(self, gate: Gate, key: int) -> None:
        """The gate stands first on top: its best cell goes home, or the gate to its right place."""
        top, heap = self._top, gate.heap
        if self._out(gate) >= self.most[gate.key]:
            heappop(top)
            gate.entry = None  # until it is freed
            return
        best = self._best(gate)
        if best is None:
            heappop(top)
            gate.entry = None
        elif heap[0][0] > key:
            gate.entry = heap[0][0]
            heapreplace(top, (gate.entry, gate))
        elif (first := self._first(best)) is None:
            heappop(heap)
            self._end(best)
        elif first != best.id:
            best.id = first
            self._rekey(best, gate)
        else:
            heappop(heap)
            best.parked = None
            gate.parked -= 1
            if heap:
                gate.entry = heap[0][0]
                heapreplace(top, (gate.entry, gate))
            else:
                heappop(top)
                gate.entry = None
            self._home(best)

    def _best(self, gate: Gate) -> Cell | None:
        """The cell with the lowest key at the gate; what is void or too low before it is dropped or corrected."""
        heap = gate.heap
        many = gate.parked > _FEW
        while heap:
            key, cell = heap[0]
            if cell.parked is not gate or cell.entry != key:
                heappop(heap)
            elif many and (now := self._key(cell.flow, cell.id)) > key:
                cell.entry = now
                heapreplace(heap, (now, cell))
            else:
                return cell
        return None

    def _first(self, cell: Cell) -> int | None:
        """The lowest eligible run of the cell; those that are over are dropped."""
        ids, runs = cell.ids, self._runs
        while ids:
            id = ids[0]
            if runs[id].eligible:
                return id
            del runs[id]
            heappop(ids)
        return None

    def _full(self, cell: Cell) -> Gate | None:
        most = self.most
        for gate in cell.gates:
            if gate.counts.get(gate.value, 0) >= most[gate.key]:
                return gate
        return None

    def _out(self, gate: Gate) -> int:
        return gate.counts.get(gate.value, 0)

    # -- moving

    def _key(self, flow: Flow, id: int) -> int:
        turns = flow.turns
        if turns is None:
            return id
        turn = turns.turn.get(flow.tenant)
        turn = (turns.v if turn is None else turn) + turns.lowered
        return flow.above + (turn << ID_BITS) + id  # a turn may be negative

    def _home(self, cell: Cell) -> None:
        flow = cell.flow
        heappush(flow.home, (cell.id, cell))
        if len(flow.home) > 2 * len(flow.cells) + _VOID_MAX:
            flow.home = [(cell.id, cell) for cell in flow.cells if cell.parked is None]
            heapify(flow.home)
        self._raise(flow)

    def _raise(self, flow: Flow) -> None:
        """The key of the flow may have fallen."""
        if not flow.home:
            return
        if self._by_tenant and self._counts["tenant"].get(flow.tenant, 0) >= self.most["tenant"]:
            return  # freed() brings it back
        key = self._key(flow, flow.home[0][0])
        if flow.entry is None or key < flow.entry:
            flow.entry = key
            self._push(key, flow)

    def _park(self, cell: Cell, gate: Gate) -> None:
        if cell.parked is not gate:
            cell.parked = gate
            gate.parked += 1
        key = self._rekey(cell, gate)
        if self._out(gate) < self.most[gate.key]:
            self._raise_gate(gate, key)

    def _rekey(self, cell: Cell, gate: Gate) -> int:
        key = cell.entry = self._key(cell.flow, cell.id)
        heappush(gate.heap, (key, cell))
        if len(gate.heap) > 2 * gate.parked + _VOID_MAX:  # a gate may be closed for long
            cells = dict.fromkeys(cell for _, cell in gate.heap if cell.parked is gate)
            gate.heap = [(cell.entry, cell) for cell in cells]
            heapify(gate.heap)
        return key

    def _raise_gate(self, gate: Gate, key: int) -> None:
        if gate.entry is None or key < gate.entry:
            gate.entry = key
            self._push(key, gate)

    def _push(self, key: int, what: Flow | Gate) -> None:
        top = self._top
        heappush(top, (key, what))
        if len(top) > 2 * (len(self._flows) + len(self._gates)) + _VOID_MAX:
            valid = dict.fromkeys(what for _, what in top)
            top[:] = [(what.entry, what) for what in valid if what.entry is not None]
            heapify(top)

    def _lower(self, flow: Flow) -> None:
        """The turn of the flow fell, so every key of its cells is too high."""
        for cell in flow.cells:
            if cell.parked is not None:
                self._park(cell, cell.parked)
        self._raise(flow)
