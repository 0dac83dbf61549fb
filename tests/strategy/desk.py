"""A queue just large enough to drive the real tables, plans and levels the way the engine does.

It keeps what a store would keep, from `take_moved` alone, so a restart shows whether that is enough.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

import msgspec

from fairway import limits
from fairway.fair.levels import Acked, Forecast, Level
from fairway.fair.turns import Tables, Turns
from fairway.fair.weights import W_DEFAULT, thousandths
from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate
from fairway.strategy.plan import Plans

Chunk = tuple[int, int]


class Row(Candidate, eq=False):
    """A submission: its next fresh index, the indexes that came back, and how many are out."""

    total: int
    fresh: int = 0
    back: list[int] = msgspec.field(default_factory=list)
    out: set[int] = msgspec.field(default_factory=set)
    done: int = 0
    paused: bool = False
    cancelled: bool = False
    level: Level = (0, 0)

    @classmethod
    def new(
        cls, id: int, tenant: str, total: int, metadata: dict[str, str | int] | None = None, priority: int = 0
    ) -> Row:
        return cls(id, tenant, priority, metadata or {}, total, False, total)

    @property
    def waiting(self) -> int:
        return 0 if self.cancelled else self.ready


class Desk:
    def __init__(self, seed: int = 0, steps: int = limits.PLAN_STEPS) -> None:
        self.dice = Dice(seed)
        self.steps = steps  # of a slice of a new plan
        self.weight: dict[str, int] = {}
        self.rows: dict[int, Row] = {}
        self.paused: set[str] = set()
        self.waiting: Counter[str] = Counter()
        self.unfinished: Counter[str] = Counter()
        self.stored: dict[str, tuple[int, int]] = {}
        self.stored_v = 0
        self.next_id = 1
        self.got: list[Chunk] = []
        self.shuffled: list[bool] = []
        self._open(Tables(self.weight))
        self.forecast = Forecast(self.weight)
        self.acked = Acked()

    def _open(self, tables: Tables) -> None:
        self.tables = tables
        self.turns = tables.plain
        self.woken = False
        self.plans: Plans[Row] = Plans(
            tables, self.dice, self.rows, lambda row: len(row.out), steps=self.steps
        )

    def restart(self) -> None:
        """Everything in memory is gone; what was stored comes back."""
        self.store()
        rows = [(tenant, turn, rest) for tenant, (turn, rest) in self.stored.items()]
        self._open(Tables(self.weight, Turns.restore(self.weight, self.stored_v, rows)))
        for tenant in self.turns.turn:
            if not self.unfinished[tenant]:
                self.turns.idle(tenant)

    def store(self) -> None:
        for tenant in self.turns.take_moved():
            if tenant in self.turns.turn:
                self.stored[tenant] = (self.turns.turn[tenant], self.turns.rest[tenant])
            else:
                self.stored.pop(tenant, None)
        self.stored_v = self.turns.v

    # -- what happens

    def submit(
        self, tenant: str, n: int = 1, metadata: dict[str, str | int] | None = None, priority: int = 0
    ) -> int:
        id, self.next_id = self.next_id, self.next_id + 1
        row = Row.new(id, tenant, n, metadata, priority)
        if self.plans.laned:
            self.plans.enters(row, n)
        self.rows[id] = row
        if not n:
            return id
        had = self.waiting[tenant] > 0
        if not self.unfinished[tenant]:
            self.tables.busy(tenant)
        if not had:
            self.turns.appear(tenant)
        turn, rest = self.turns.turn[tenant], self.turns.rest[tenant]
        row.level = (self.forecast.place(tenant, n, turn, rest, had, self.acked.ack[0]), id)
        self.acked.placed(row.level)
        self.waiting[tenant] += n
        self.unfinished[tenant] += n
        self.judge(row)
        return id

    def judge(self, row: Row) -> None:
        row.eligible = (
            row.ready > 0 and not row.paused and not row.cancelled and row.tenant not in self.paused
        )
        if row.eligible:
            self.plans.add(row)
            self.woken = True

    def grab(self, row: Row, n: int, shuffled: bool) -> None:
        assert row.eligible and 0 < n <= row.ready
        for _ in range(n):
            if row.back:
                index = heappop(row.back)
            else:
                index, row.fresh = row.fresh, row.fresh + 1
            row.out.add(index)
            self.got.append((row.id, index))
        self.shuffled.append(shuffled)
        row.ready -= n
        if self.plans.limited:
            self.plans.leased(row, n)
        if self.plans.laned:
            self.plans.waits(row, -n)
        self.waiting[row.tenant] -= n
        if not row.ready:
            row.eligible = False

    def take(self, k: int, strategy: str = "Fair", consumers: int = 1) -> list[Chunk]:
        self.got = []
        plan = self.plans.get(strategy)
        if not plan.ready:
            self.plans.finish()
        n = plan.take(k, self.grab, consumers)
        assert n == len(self.got)
        return self.got

    def complete(self, id: int, index: int) -> None:
        row = self.rows[id]
        self._returned(row, index)
        row.done += 1
        if not row.cancelled and row.done == row.total:
            self.acked.finished(row.level)
            self.acked.advance()
        self._less(row.tenant, 1)

    def give_back(self, id: int, index: int) -> None:
        row = self.rows[id]
        self._returned(row, index)
        if row.cancelled:
            self._less(row.tenant, 1)
            return
        heappush(row.back, index)
        row.ready += 1
        if self.plans.laned:
            self.plans.waits(row, 1)
        self.waiting[row.tenant] += 1
        self.judge(row)

    def _returned(self, row: Row, index: int) -> None:
        row.out.remove(index)
        if self.plans.limited and self.plans.freed(row, 1):
            self.woken = True

    def cancel(self, id: int) -> None:
        row = self.rows[id]
        if row.cancelled or row.done == row.total:
            return
        if self.plans.laned:
            self.plans.waits(row, -row.ready)
        row.cancelled, row.eligible = True, False
        self.acked.finished(row.level)
        self.waiting[row.tenant] -= row.ready
        self._less(row.tenant, row.ready)
        row.ready = 0

    def _less(self, tenant: str, n: int) -> None:
        self.unfinished[tenant] -= n
        if not self.unfinished[tenant]:
            self.tables.idle(tenant)

    def pause(self, id: int, on: bool) -> None:
        self.rows[id].paused = on
        self.judge(self.rows[id])

    def pause_tenant(self, tenant: str, on: bool) -> None:
        (self.paused.add if on else self.paused.discard)(tenant)
        for row in self.rows.values():
            if row.tenant == tenant:
                self.judge(row)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.tables.reweigh(tenant, thousandths(weight))
        self.plans.reweighed(tenant)

    # -- what can be seen

    def w(self, tenant: str) -> int:
        return self.weight.get(tenant, W_DEFAULT)

    def served(self, k: int, strategy: str = "Fair", done: bool = True) -> list[str]:
        """The tenants of the next k dispatches; each is completed at once unless `done` is False."""
        out = list(self.take(k, strategy))
        if done:
            for id, index in out:
                self.complete(id, index)
        return [self.rows[id].tenant for id, _ in out]

    def order(self, k: int) -> str:
        return "".join(self.served(k))

    def check_invariant(self) -> None:
        for tenant, turn in self.turns.turn.items():
            # turn < V + U / W + 1, in integers
            assert (turn - self.turns.v - 1) * self.w(tenant) < 10_000_000, (tenant, turn, self.turns.v)
            assert 0 <= self.turns.rest[tenant] < self.w(tenant)
