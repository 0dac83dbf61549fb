"""The rules of choosing, written so that they are obviously right: every pick looks at everything.

It forgets a tenant at one place only, never rebases and keeps no index, so whatever agrees with it loses
nothing by doing so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNIT = 10_000_000


@dataclass
class Sub:
    id: int
    tenant: str
    waiting: set[int]
    leased: set[int] = field(default_factory=set)
    paused: bool = False
    cancelled: bool = False


class Naive:
    def __init__(self) -> None:
        self.subs: dict[int, Sub] = {}
        self.weights: dict[str, int] = {}
        self.paused: set[str] = set()
        self.v = 0
        self.turns: dict[str, tuple[int, int]] = {}

    def w(self, tenant: str) -> int:
        return self.weights.get(tenant, 1000)

    # -- what happens

    def submit(self, id: int, tenant: str, n: int) -> None:
        had = any(s.waiting for s in self.subs.values() if s.tenant == tenant and not s.cancelled)
        self.subs[id] = Sub(id, tenant, set(range(n)))
        if n and not had:
            new = self.v + UNIT // self.w(tenant) - 1
            if tenant not in self.turns or new > self.turns[tenant][0]:
                self.turns[tenant] = (new, 0)

    def complete(self, id: int, index: int) -> None:
        self.subs[id].leased.remove(index)

    def give_back(self, id: int, index: int) -> None:
        sub = self.subs[id]
        sub.leased.remove(index)
        if not sub.cancelled:
            sub.waiting.add(index)

    def cancel(self, id: int) -> None:
        self.subs[id].cancelled = True

    def set_weight(self, tenant: str, w: int) -> None:
        old = self.w(tenant)
        own = [s for s in self.subs.values() if s.tenant == tenant]
        idle = not any(s.leased or (s.waiting and not s.cancelled) for s in own)
        if idle and tenant in self.turns and self.turns[tenant] <= (self.v + UNIT // old - 1, 0):
            del self.turns[tenant]  # it has waited out its last turn: it is a newcomer, whatever its weight
        self.weights[tenant] = w
        if tenant in self.turns:
            turn = self.turns[tenant][0]
            if turn > self.v:
                turn = self.v + min((turn - self.v) * old // w, UNIT // w)
            self.turns[tenant] = (turn, 0)

    # -- choosing

    def eligible(self) -> list[Sub]:
        return [
            s
            for s in self.subs.values()
            if s.waiting and not s.paused and not s.cancelled and s.tenant not in self.paused
        ]

    def pick(self, strategy: str) -> tuple[int, int] | None:
        subs = self.eligible()
        if not subs:
            return None
        if strategy == "OldestFirst":
            sub = min(subs, key=lambda s: s.id)
        elif strategy == "NewestFirst":
            sub = max(subs, key=lambda s: s.id)
        else:
            assert strategy == "Fair"
            sub = min(subs, key=lambda s: (self.turns[s.tenant][0], s.id))
            self.charge(sub.tenant)
        index = min(sub.waiting)
        self.lease(sub.id, index)
        return sub.id, index

    def lease(self, id: int, index: int) -> None:
        self.subs[id].waiting.remove(index)
        self.subs[id].leased.add(index)

    def charge(self, tenant: str) -> None:
        turn, rest = self.turns[tenant]
        if turn < self.v:
            turn, rest = self.v, 0
        self.v = turn
        x = UNIT + rest
        self.turns[tenant] = (turn + x // self.w(tenant), x % self.w(tenant))

    def take(self, k: int, strategy: str) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        while len(out) < k and (got := self.pick(strategy)) is not None:
            out.append(got)
        return out
