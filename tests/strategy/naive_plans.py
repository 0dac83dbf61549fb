"""Strategies of any nesting by their definition: every pick looks at everything, counts are counted.

Slow and plain on purpose: nothing here is kept that could be found by looking.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.strategy.terms import (
    CustomPriority,
    Fair,
    MaxSimultaneous,
    NewestFirst,
    OldestFirst,
    OrElse,
    PreferDistinct,
    Random,
    SelectOnly,
    Strategy,
)
from fairway.strategy.tiers import Cap

UNIT = 10_000_000

Pass = tuple[tuple[tuple[str, str | int], ...], tuple[tuple[str, Cap], ...], type]


def passes(strategy: Strategy, pairs: tuple = (), caps: tuple = ()) -> list[Pass]:
    """(selection, limits, base) in the order in which a pick tries them."""
    match strategy:
        case SelectOnly():
            return passes(strategy.inner, (*pairs, (strategy.key, strategy.value)), caps)
        case MaxSimultaneous():
            most = strategy.max
            cap = Cap(percent=int(most.strip("%"))) if isinstance(most, str) else Cap(most)
            return passes(strategy.inner, pairs, (*caps, (strategy.key, cap)))
        case PreferDistinct():
            limited = (*caps, (strategy.key, Cap(strategy.max)))
            found = passes(strategy.inner, pairs, limited) + passes(strategy.inner, pairs, caps)
        case OrElse():
            found = passes(strategy.first, pairs, caps) + passes(strategy.fallback, pairs, caps)
        case _:
            by_key: dict[str, Cap] = {}
            for key, cap in caps:
                known = by_key.get(key, Cap())
                counts = [c for c in (known.chunks, cap.chunks) if c is not None]
                shares = [p for p in (known.percent, cap.percent) if p is not None]
                by_key[key] = Cap(min(counts, default=None), min(shares, default=None))
            selection = sorted(set(pairs), key=lambda p: (p[0], isinstance(p[1], str), p[1]))
            return [(tuple(selection), tuple(sorted(by_key.items())), type(strategy))]
    return list(dict.fromkeys(found))


@dataclass
class Sub:
    id: int
    tenant: str
    metadata: dict[str, str | int]
    priority: int
    waiting: set[int]
    leased: set[int] = field(default_factory=set)
    paused: bool = False
    cancelled: bool = False

    def value(self, key: str) -> str | int | None:
        return self.tenant if key == "tenant" else self.metadata.get(key)

    def has(self, selection: tuple) -> bool:
        return all(self.value(key) == value for key, value in selection)


@dataclass
class Table:
    """V, and (turn, rest) by tenant."""

    v: int = 0
    turns: dict[str, tuple[int, int]] = field(default_factory=dict)


class NaivePlans:
    def __init__(self) -> None:
        self.subs: dict[int, Sub] = {}
        self.weights: dict[str, int] = {}
        self.paused: set[str] = set()
        self.tables: dict[tuple, Table] = {((), None): Table()}
        self.ranked: set[tuple] = set()  # selections that CustomPriority looks at

    def w(self, tenant: str) -> int:
        return self.weights.get(tenant, 1000)

    # -- tables of turns

    def table(self, selection: tuple, priority: int | None) -> Table:
        if (selection, priority) not in self.tables:
            table = self.tables[selection, priority] = Table()
            for sub in self.subs.values():
                if sub.waiting and not sub.cancelled and self.stands(sub, selection, priority):
                    table.turns[sub.tenant] = (UNIT // self.w(sub.tenant) - 1, 0)
        return self.tables[selection, priority]

    def stands(self, sub: Sub, selection: tuple, priority: int | None) -> bool:
        return sub.has(selection) and priority in (None, sub.priority)

    def restart(self) -> None:
        """Only the table of the whole queue is stored."""
        self.tables = {((), None): self.tables[(), None]}
        self.ranked = set()

    # -- what happens

    def submit(self, id: int, tenant: str, n: int, metadata: dict[str, str | int], priority: int) -> None:
        new = Sub(id, tenant, metadata, priority, set(range(n)))
        for selection in self.ranked:
            if new.has(selection):
                self.table(selection, priority)
        for (selection, at), table in self.tables.items():
            had = any(
                sub.waiting and not sub.cancelled and sub.tenant == tenant and self.stands(sub, selection, at)
                for sub in self.subs.values()
            )
            if n and not had and self.stands(new, selection, at):
                start = table.v + UNIT // self.w(tenant) - 1
                if tenant not in table.turns or start > table.turns[tenant][0]:
                    table.turns[tenant] = (start, 0)
        self.subs[id] = new

    def complete(self, id: int, index: int) -> None:
        self.subs[id].leased.remove(index)

    def give_back(self, id: int, index: int) -> None:
        sub = self.subs[id]
        sub.leased.remove(index)
        if sub.cancelled:
            return
        sub.waiting.add(index)
        for (selection, at), table in self.tables.items():
            if self.stands(sub, selection, at) and sub.tenant not in table.turns:
                table.turns[sub.tenant] = (table.v + UNIT // self.w(sub.tenant) - 1, 0)

    def cancel(self, id: int) -> None:
        self.subs[id].cancelled = True

    def set_weight(self, tenant: str, w: int) -> None:
        old = self.w(tenant)
        own = [s for s in self.subs.values() if s.tenant == tenant]
        idle = not any(s.leased or (s.waiting and not s.cancelled) for s in own)
        self.weights[tenant] = w
        for table in self.tables.values():
            if tenant not in table.turns:
                continue
            turn = table.turns[tenant][0]
            if idle and table.turns[tenant] <= (table.v + UNIT // old - 1, 0):
                del table.turns[tenant]  # it has waited out its last turn: it is a newcomer
            elif turn > table.v:
                table.turns[tenant] = (table.v + min((turn - table.v) * old // w, UNIT // w), 0)
            else:
                table.turns[tenant] = (turn, 0)

    # -- choosing

    def in_flight(self, key: str, value: str | int | None) -> int:
        return sum(len(sub.leased) for sub in self.subs.values() if sub.value(key) == value)

    def candidates(self, selection: tuple, caps: tuple, consumers: int) -> list[Sub]:
        def below(sub: Sub, key: str, cap: Cap) -> bool:
            most = [] if cap.chunks is None else [cap.chunks]
            if cap.percent is not None:
                most.append(max(1, cap.percent * consumers // 100))
            return sub.value(key) is None or self.in_flight(key, sub.value(key)) < min(most)

        return [
            sub
            for sub in self.subs.values()
            if sub.waiting
            and not (sub.paused or sub.cancelled or sub.tenant in self.paused)
            and sub.has(selection)
            and all(below(sub, key, cap) for key, cap in caps)
        ]

    def understand(self, strategy: Strategy) -> list[Pass]:
        """What a strategy means; the tables that it needs are there from now on."""
        found = passes(strategy)
        for selection, _, base in found:
            if base is Fair:
                self.table(selection, None)
            if base is CustomPriority:
                self.ranked.add(selection)
                for priority in {sub.priority for sub in self.subs.values()}:
                    self.table(selection, priority)
        return found

    def possible(self, strategy: Strategy, consumers: int = 1) -> tuple[int, list[Sub]]:
        """The first pass that has candidates, and these."""
        for at, (selection, caps, _) in enumerate(passes(strategy)):
            subs = self.candidates(selection, caps, consumers)
            if subs:
                return at, subs
        return -1, []

    def pick(self, strategy: Strategy, consumers: int = 1) -> tuple[int, int] | None:
        found = self.understand(strategy)
        at, subs = self.possible(strategy, consumers)
        if not subs:
            return None
        selection, _, base = found[at]
        if base is OldestFirst:
            sub = min(subs, key=lambda s: s.id)
        elif base is NewestFirst:
            sub = max(subs, key=lambda s: s.id)
        else:
            assert base is not Random
            priority = max(s.priority for s in subs) if base is CustomPriority else None
            table = self.table(selection, priority)
            best = [s for s in subs if priority in (None, s.priority)]
            sub = min(best, key=lambda s: (table.turns[s.tenant][0], s.id))
            self.charge(table, sub.tenant)
        index = min(sub.waiting)
        self.lease(sub.id, index)
        return sub.id, index

    def lease(self, id: int, index: int) -> None:
        self.subs[id].waiting.remove(index)
        self.subs[id].leased.add(index)

    def charge(self, table: Table, tenant: str) -> None:
        turn, rest = table.turns[tenant]
        if turn < table.v:
            turn, rest = table.v, 0
        table.v = turn
        x = UNIT + rest
        table.turns[tenant] = (turn + x // self.w(tenant), x % self.w(tenant))

    def take(self, k: int, strategy: Strategy, consumers: int = 1) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        while len(out) < k and (got := self.pick(strategy, consumers)) is not None:
            out.append(got)
        return out
