"""Bugs of fairness: turns, weights, order, limits, and who is woken.

Guards: each gives somebody more or less than his share, and loses nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairway.engine import backlog, steering
from fairway.engine.run import Run
from fairway.engine.state import State
from fairway.fair.turns import Tables, Turns
from fairway.strategy import building, lanes, plan
from fairway.strategy.inflight import InFlight
from fairway.strategy.orders.age import AgeOrder
from fairway.strategy.orders.fair import FairOrder
from fairway.strategy.orders.ranked import RankedOrder
from fairway.strategy.terms import Nested, OrElse, PreferDistinct
from fairway.strategy.tiers import Cap, Tier
from fairway.testing.planted.planting import plant, wrong


@wrong("last turns are forgotten too early", Turns, "forget_due")
def forget_all(self: Turns) -> list[str]:
    gone = list(self.turn)
    for tenant in gone:
        self.forget(tenant)
    return gone


@wrong("the floor is A", backlog, "appear")
def from_a(state: State, tenant: str) -> None:
    state.tables.busy(tenant)
    plain = state.tables.plain
    floor = min(state.window.ack[0], plain.v)
    plain.turn[tenant], plain.rest[tenant] = max(floor, plain.turn.get(tenant, 0)), 0
    plain.moved.add(tenant)


_take, _add = FairOrder.take, FairOrder.add


@wrong("the floor is A", FairOrder, "take")
def without_a_floor(self: FairOrder[Any], k: int, grab: Any) -> int:
    taken, turns = 0, self.turns
    while taken < k:
        v = turns.v
        turns.v = min(turns.turn.values(), default=v)  # nobody is lifted up to V
        now = _take(self, 1, grab)
        turns.v = max(v, turns.v)
        if not now:
            break
        taken += now
    return taken


@wrong("V does not move", FairOrder, "take")
def standing_v(self: FairOrder[Any], k: int, grab: Any) -> int:
    v = self.turns.v
    taken = _take(self, k, grab)
    self.turns.v = v
    return taken


@wrong("only every second dispatch is charged", FairOrder, "take")
def half_price(self: FairOrder[Any], k: int, grab: Any) -> int:
    taken, turns = 0, self.turns
    while taken < k:
        moved, turn, rest = set(turns.moved), dict(turns.turn), dict(turns.rest)
        now = _take(self, 1, grab)
        if not now:
            break
        taken += now
        for tenant in moved & turn.keys() & turns.turn.keys():
            turns.turn[tenant], turns.rest[tenant] = turn[tenant], rest[tenant]
        self._rekey()
    return taken


@wrong("FIFO inside a tenant is broken", FairOrder, "add")
def newest_first(self: FairOrder[Any], run: Any) -> None:
    _add(self, run)
    flow = self._flows.get(run.tenant)
    if flow is not None and len(flow.ids) > 1:
        flow.ids.sort(reverse=True)
        self._push(flow, flow.turn)


@wrong("a new weight is not heard of", steering, "set_weight")
def as_before(state: State, name: str, weight: int) -> None:
    pass


@wrong("a new weight counts for everybody", Tables, "reweigh")
def all_alike(self: Tables, tenant: str, new_w: int) -> None:
    for name in [*self.plain.turn, tenant]:
        self.weight[name] = new_w


for _module in (plan, building, lanes):
    plant("a selection keeps nothing out", _module, "selects", lambda selection, run: True, here=True)


_aged = AgeOrder.__init__


@wrong("the oldest and the newest are mistaken for each other", AgeOrder, "__init__")
def other_end(self: AgeOrder[Any], newest: bool = False) -> None:
    _aged(self, not newest)


_take_ranked = RankedOrder.take


@wrong("the lowest priority comes first", RankedOrder, "take")
def least_urgent(self: RankedOrder[Any], k: int, grab: Any) -> int:
    taken, heap = 0, sorted(self._heap)
    while taken < k and heap:  # each by itself, from the other end
        self._heap = [heap.pop()]
        taken += _take_ranked(self, k - taken, grab)
        heap += self._heap
    self._heap = sorted(heap)
    return taken


@wrong("MaxSimultaneous is one too high", Cap, "at")
def one_above(self: Cap, consumers: int) -> int:
    return _at(self, consumers) + 1


_at = Cap.at


@wrong("a share of the consumers limits nothing", Cap, "at")
def boundless(self: Cap, consumers: int) -> int:
    return _at(self, consumers) if self.percent is None else 1_000_000


@wrong("a share of the consumers is twice as much", Cap, "at")
def shared_twice(self: Cap, consumers: int) -> int:
    return _at(self, consumers * 2)


@wrong("limits are left out of what a strategy means", Nested, "tiers")
def without_limits(self: Nested) -> tuple[Tier, ...]:
    return tuple(replace(tier, limits=()) for tier in _meant(self))


_meant = Nested.tiers


@wrong("PreferDistinct prefers nothing", Nested, "tiers")
def indifferent(self: Nested) -> tuple[Tier, ...]:
    return self.inner.tiers() if isinstance(self, PreferDistinct) else _meant(self)  # pyright: ignore


@wrong("OrElse begins with its fallback", Nested, "tiers")
def fallback_first(self: Nested) -> tuple[Tier, ...]:
    return _meant(self)[::-1] if isinstance(self, OrElse) else _meant(self)


@wrong("a limit counts a reservation once", InFlight, "leased")
def uncounted(self: InFlight[Any], run: Any, n: int, but: Any = ()) -> None:
    for key, counts in self.counts.items():
        value = run.tenant if key == "tenant" else run.metadata.get(key)
        if value is not None and key not in but:
            counts[value] = counts.get(value, 0) + (n if n == 1 else 1)


_admit, _refresh = backlog.admit, backlog.refresh


@wrong("a submit wakes nobody", backlog, "admit")
def unwoken(state: State, ready: list[Run], others: list[Run]) -> None:
    before = state.woken
    _admit(state, ready, others)
    state.woken = before


@wrong("a chunk that comes back wakes nobody", backlog, "refresh")
def back_in_silence(state: State, run: Run) -> None:
    before = state.woken
    _refresh(state, run)
    state.woken = before
