"""Fair: the tenant with the lowest (turn, id of its oldest eligible submission) is next.

Guards: each tenant with runs here has one valid entry on top; its key may be too low, never too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic

from fairway.strategy.order import SWEEP_RUNS_MIN, Grab, R, TurnTable

# A key is turn | id | slot, one integer: the heaps compare nothing else. An id has 63 bits and one tenant, so the slot,
# which says whose key it is, decides nothing. Without it two maps would be asked for every pick, and those of many
# tenants are in no cache.
_ID_BITS: Final = 32
_TURN_BITS: Final = 96
_SLOT_MASK: Final = (1 << _ID_BITS) - 1


class _Flow(Generic[R]):
    """One tenant: the ids of its runs, and the turn, id, run and key of its valid entry on top.

    `low` is the part of the key below the turn.
    """

    __slots__ = ("id", "ids", "key", "low", "run", "slot", "tenant", "turn")

    def __init__(self, run: R, turn: int, slot: int) -> None:
        self.tenant = run.tenant
        self.ids = [run.id]
        self.slot = slot
        self.rise(run, turn)

    def rise(self, run: R, turn: int) -> int:
        """This run is its oldest, at this turn; gives the key."""
        self.turn, self.run, self.id = turn, run, run.id
        self.low = low = self.id << _ID_BITS | self.slot
        self.key = key = turn << _TURN_BITS | low
        return key


class FairOrder(Generic[R]):
    """A heap of tenants by (turn, oldest id) over heaps of ids per tenant.

    Turns rise unnoticed, so an entry is corrected when it reaches the top. What lowers a key pushes a new
    entry at once: an older run that becomes eligible, and a new weight. The entry that it replaces is void.
    """

    __slots__ = ("_era", "_flows", "_free", "_runs", "_slots", "_sweep_at", "_top", "turns")

    def __init__(self, turns: TurnTable) -> None:
        self.turns = turns
        self._era = turns.era
        self._runs: dict[int, R] = {}
        self._flows: dict[str, _Flow[R]] = {}
        self._slots: list[_Flow[R] | None] = []
        self._free: list[int] = []  # slots that are empty
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
            runs[id] = run
            self._begin(run, turn)
        else:
            if id not in runs:
                heappush(flow.ids, id)
            elif id == flow.id:
                flow.run = run
            runs[id] = run
            # A turn falls under a flow of dead runs when its tenant was forgotten and came back heavier.
            if id < flow.id or turn < flow.turn:
                self._push(flow, turn)
        if len(runs) > self._sweep_at:
            self.sweep()

    def add_all(self, runs: Iterable[R]) -> None:
        """`add` of many that are new: the turn of a tenant is looked at once."""
        known, flows = self._runs, dict[str, _Flow[R]]()
        for run in runs:
            tenant, id = run.tenant, run.id
            flow = flows.get(tenant)
            if flow is None or id < flow.id or id in known:
                self.add(run)
                if tenant in self._flows:  # it may have been swept away at once
                    flows[tenant] = self._flows[tenant]
            else:
                heappush(flow.ids, id)
                known[id] = run

    def take(self, k: int, grab: Grab[R]) -> int:
        turns = self.turns
        if turns.era != self._era:
            self._rekey()
        top, slots, turn_of = self._top, self._slots, turns.turn
        rests, weights, moved, unit, usual = (
            turns.rest, turns.weight, turns.moved, turns.unit, turns.usual_weight,
        )  # fmt: skip
        left = k
        while left > 0 and top:
            key = top[0]
            flow = slots[key & _SLOT_MASK]
            if flow is None or flow.key != key:
                heappop(top)
                continue
            run, tenant = flow.run, flow.tenant
            if run.eligible:
                now = flow.turn
                if turn_of.get(tenant) != now:
                    flow.turn = now = turn_of[tenant] if tenant in turn_of else turns.appear(tenant)
                    flow.key = key = now << _TURN_BITS | flow.low
                    heapreplace(top, key)
                    continue
                if len(top) > 1:
                    grab(run, 1, False)
                    left -= 1
                    x = rests[tenant] + unit  # `charge` of one, written out: it is asked for every pick
                    if now < turns.v:
                        now, x = turns.v, unit
                    w = weights.get(tenant, usual)
                    turns.v = now
                    flow.turn = turn_of[tenant] = now = now + x // w
                    rests[tenant] = x % w
                    moved.add(tenant)
                else:  # alone, a tenant is next however far its turn moves
                    n = min(left, run.ready)
                    grab(run, n, False)
                    left -= n
                    flow.turn = now = turns.charge(tenant, n)
                if run.eligible:
                    flow.key = key = now << _TURN_BITS | flow.low
                    heapreplace(top, key)
                    continue
            self._over(flow)
        turns.rebase_due()  # the next take sees the new era
        return k - left

    def runs(self) -> Iterable[R]:
        return self._runs.values()

    def reweighed(self, tenant: str) -> None:
        flow = self._flows.get(tenant)
        turn = self.turns.turn.get(tenant)
        if flow is not None and turn is not None and turn < flow.turn:
            self._push(flow, turn)

    def _begin(self, run: R, turn: int) -> None:
        """The first run of a tenant."""
        free, slots = self._free, self._slots
        slot = free.pop() if free else len(slots)
        flow = self._flows[run.tenant] = _Flow(run, turn, slot)
        if slot == len(slots):
            slots.append(flow)
        else:
            slots[slot] = flow
        heappush(self._top, flow.key)

    def _over(self, flow: _Flow[R]) -> None:
        """The oldest run of the flow, which stands first on top, cannot be handed out from."""
        runs, ids = self._runs, flow.ids
        del runs[heappop(ids)]
        if ids:
            heapreplace(self._top, flow.rise(runs[ids[0]], flow.turn))
        else:
            heappop(self._top)
            self._end(flow)

    def _end(self, flow: _Flow[R]) -> None:
        del self._flows[flow.tenant]
        self._slots[flow.slot] = None
        self._free.append(flow.slot)

    def _push(self, flow: _Flow[R], turn: int) -> None:
        heappush(self._top, flow.rise(self._runs[flow.ids[0]], turn))

    def _rekey(self) -> None:
        """Read every turn anew, and leave void entries behind."""
        self._era = self.turns.era
        turn_of = self.turns.turn
        runs = self._runs
        self._top = [
            flow.rise(runs[flow.ids[0]], turn_of.get(tenant, flow.turn))
            for tenant, flow in self._flows.items()
        ]
        heapify(self._top)

    def expect(self, runs: int) -> None:
        self._sweep_at = max(self._sweep_at, 2 * runs)

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
                self._end(flow)
        self._rekey()
        self._sweep_at = max(SWEEP_RUNS_MIN, 2 * len(runs))
