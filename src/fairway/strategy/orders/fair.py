"""Fair: the tenant with the lowest (turn, id of its oldest eligible submission) is next.

Guards: each tenant with runs here has one valid entry on top; its key may be too low, never too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic

from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R, TurnTable

# A key is turn << 64 | id, one integer: the heaps compare nothing else, and an id has 63 bits.
_ID_BITS: Final = 64
_ID_MASK: Final = (1 << _ID_BITS) - 1


class _Flow:
    """One tenant: the ids of its runs, and the turn, id and key of its valid entry on top."""

    __slots__ = ("id", "ids", "key", "turn")

    def __init__(self, ids: list[int], turn: int) -> None:
        self.ids = ids
        self.turn = turn
        self.id = ids[0]
        self.key = turn << _ID_BITS | self.id


class FairOrder(Generic[R]):
    """A heap of tenants by (turn, oldest id) over heaps of ids per tenant.

    Turns rise unnoticed, so an entry is corrected when it reaches the top. What lowers a key pushes a new
    entry at once: an older run that becomes eligible, and a new weight. The entry that it replaces is void.
    """

    __slots__ = ("_era", "_flows", "_runs", "_sweep_at", "_top", "turns")

    def __init__(self, turns: TurnTable) -> None:
        self.turns = turns
        self._era = turns.era
        self._runs: dict[int, R] = {}
        self._flows: dict[str, _Flow] = {}
        self._top: list[int] = []
        self._sweep_at = SWEEP_RUNS_MIN

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: R) -> None:
        turns, runs = self.turns, self._runs
        tenant, id = run.tenant, run.id
        turn = turns.turn.get(tenant)
        if turn is None:
            turn = turns.appear(tenant)
        flow = self._flows.get(tenant)
        if flow is None:
            self._flows[tenant] = flow = _Flow([id], turn)
            heappush(self._top, flow.key)
        else:
            if id not in runs:
                heappush(flow.ids, id)
            # A turn falls under a flow of dead runs when its tenant was forgotten and came back heavier.
            if id < flow.id or turn < flow.turn:
                self._push(flow, turn)
        runs[id] = run
        if len(runs) > self._sweep_at:
            self.sweep()

    def take(self, k: int, grab: Grab[R]) -> int:
        turns = self.turns
        if turns.era != self._era:
            self._rekey()
        top, runs, flows, turn_of, charge = self._top, self._runs, self._flows, turns.turn, turns.charge
        left = k
        while left > 0 and top:
            key = top[0]
            id = key & _ID_MASK
            run = runs.get(id)
            if run is None or (flow := flows[run.tenant]).key != key:
                heappop(top)
                continue
            tenant = run.tenant
            if run.eligible:
                now = turn_of.get(tenant)
                if now != flow.turn:
                    flow.turn = now = turns.appear(tenant) if now is None else now
                    flow.key = key = now << _ID_BITS | id
                    heapreplace(top, key)
                    continue
                # Alone, a tenant is next however far its turn moves.
                n = 1 if len(top) > 1 else min(left, run.ready)
                grab(run, n, False)
                left -= n
                flow.turn = now = charge(tenant, n)
                if run.eligible:
                    flow.key = key = now << _ID_BITS | id
                    heapreplace(top, key)
                    continue
            del runs[id]
            ids = flow.ids
            heappop(ids)
            if ids:
                flow.id = id = ids[0]
                flow.key = key = flow.turn << _ID_BITS | id
                heapreplace(top, key)
            else:
                del flows[tenant]
                heappop(top)
        turns.rebase_due()  # the next take sees the new era
        return k - left

    def runs(self) -> Iterable[R]:
        return self._runs.values()

    def reweighed(self, tenant: str) -> None:
        flow = self._flows.get(tenant)
        turn = self.turns.turn.get(tenant)
        if flow is not None and turn is not None and turn < flow.turn:
            self._push(flow, turn)

    def _push(self, flow: _Flow, turn: int) -> None:
        flow.turn = turn
        flow.id = flow.ids[0]
        flow.key = turn << _ID_BITS | flow.id
        heappush(self._top, flow.key)

    def _rekey(self) -> None:
        """Read every turn anew, and leave void entries behind."""
        self._era = self.turns.era
        turn_of = self.turns.turn
        for tenant, flow in self._flows.items():
            flow.turn = turn_of.get(tenant, flow.turn)
            flow.id = flow.ids[0]
            flow.key = flow.turn << _ID_BITS | flow.id
        self._top = [flow.key for flow in self._flows.values()]
        heapify(self._top)

    def sweep(self) -> None:
        runs = self._runs
        over = [run for run in runs.values() if not run.eligible]
        for run in over:
            del runs[run.id]
        for tenant in {run.tenant for run in over}:
            flow = self._flows[tenant]
            flow.ids = [id for id in flow.ids if id in runs]
            if flow.ids:
                heapify(flow.ids)
            else:
                del self._flows[tenant]
        self._rekey()
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(runs))
