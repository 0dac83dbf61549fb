"""Turns: who is next, in exact integers, by self-clocked fair queueing with finish tags.

Guards: `turn < V + stride + 1` for every tenant; no rounding adds up; a forgotten tenant starts where a
remembered one would.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from fairway import limits
from fairway.fair.weights import W_DEFAULT, U

Selection = tuple[tuple[str, str | int], ...]
"""Sorted key = value pairs; () is the whole queue."""


class Turns:
    """The table of turns of one selection.

    `turn` and `rest` have the same keys. `weight` is shared; a tenant that it does not hold has W = 1000.
    `era` rises when all turns were lowered together, so that an order knows that its keys are void; `lowered`
    is by how much in all, so that an order may keep keys that need no correction.
    """

    __slots__ = (
        "_due",
        "_early",
        "_heap",
        "_idle",
        "era",
        "lowered",
        "moved",
        "rest",
        "trying",
        "turn",
        "v",
        "weight",
    )

    def __init__(self, weight: dict[str, int]) -> None:
        self.v = 0
        self.turn: dict[str, int] = {}
        self.rest: dict[str, int] = {}
        self.weight = weight
        self.moved: set[str] = set()
        self.era = 0
        self.lowered = 0
        self.trying = False  # charges are going to be taken back, so nothing else may move
        self._idle: set[str] = set()
        # One valid entry per tenant: (the V at which it may be forgotten, tenant); `_due` says which it is.
        self._heap: list[tuple[int, str]] = []
        self._due: dict[str, int] = {}
        self._early: list[str] = []  # forgotten by a new weight; the next forget_due names them

    @classmethod
    def restore(cls, weight: dict[str, int], v: int, rows: Iterable[tuple[str, int, int]]) -> Turns:
        """A table as it was stored, from rows (tenant, turn, rest). Call `idle` for those without chunks."""
        table = cls(weight)
        table.v = v
        for tenant, turn, rest in rows:
            table.turn[tenant] = turn
            table.rest[tenant] = rest
        return table

    @property
    def unit(self) -> int:
        """A tenant's stride is this divided by its weight."""
        return U

    @property
    def usual_weight(self) -> int:
        return W_DEFAULT

    def appear(self, tenant: str) -> int:
        """A submit gave the tenant chunks to hand out where it had none; gives its turn."""
        new = self.v + U // self.weight.get(tenant, W_DEFAULT) - 1
        turn = self.turn.get(tenant)
        if turn is None or new > turn:
            self.turn[tenant] = turn = new
            self.rest[tenant] = 0
            self.moved.add(tenant)
        return turn

    def charge(self, tenant: str, n: int = 1) -> int:
        """n dispatches in a row; gives the tenant's next turn. V becomes the turn of the last of them."""
        turns, rests, w = self.turn, self.rest, self.weight.get(tenant, W_DEFAULT)
        turn, x = turns[tenant], rests[tenant]
        if turn < self.v:
            turn, x = self.v, 0
        if n == 1:
            self.v = turn
            x += U
        else:
            self.v = turn + (x + (n - 1) * U) // w
            x += n * U
        turns[tenant] = turn = turn + x // w
        rests[tenant] = x % w
        self.moved.add(tenant)
        return turn

    def reweigh(self, tenant: str, old_w: int, new_w: int) -> None:
        """What is left to wait scales with the stride. Call it beside setting `weight[tenant] = new_w`."""
        if tenant in self._idle and self._forgettable(tenant, old_w):
            # Scaling could round it to one unit above a newcomer's turn; forgetting now keeps both the same.
            self.forget(tenant)
            self._early.append(tenant)
            return
        turn = self.turn.get(tenant)
        if turn is None:
            return
        if turn > self.v:
            self.turn[tenant] = self.v + min((turn - self.v) * old_w // new_w, U // new_w)
        self.rest[tenant] = 0  # it counted parts of the old weight
        self.moved.add(tenant)
        if tenant in self._idle:
            self._watch(tenant, new_w)

    # -- forgetting

    def idle(self, tenant: str) -> None:
        """The tenant has no unfinished chunk left: nothing waits and nothing is leased."""
        if tenant in self.turn and tenant not in self._idle:
            self._idle.add(tenant)
            self._watch(tenant, self.weight.get(tenant, W_DEFAULT))

    def busy(self, tenant: str) -> None:
        """The tenant has an unfinished chunk again."""
        self._idle.discard(tenant)

    def may_forget(self, tenant: str) -> bool:
        """Whether an idle tenant would start at the same turn if it were forgotten."""
        return self._forgettable(tenant, self.weight.get(tenant, W_DEFAULT))

    def forget(self, tenant: str) -> None:
        """Drop what is known of the tenant; its stored row goes with the next group."""
        if self.turn.pop(tenant, None) is not None:
            del self.rest[tenant]
            self.moved.add(tenant)
        self._idle.discard(tenant)

    def forget_due(self) -> list[str]:
        """Forget every idle tenant that may be forgotten; gives their names."""
        heap, gone = self._heap, [tenant for tenant in self._early if tenant not in self.turn]
        self._early.clear()
        while heap and heap[0][0] <= self.v:
            due, tenant = heappop(heap)
            if self._due.get(tenant) != due:
                continue
            del self._due[tenant]
            if tenant not in self._idle:
                continue
            if self.may_forget(tenant):
                self.forget(tenant)
                gone.append(tenant)
            else:
                self._watch(tenant, self.weight.get(tenant, W_DEFAULT))
        return gone

    def _forgettable(self, tenant: str, w: int) -> bool:
        turn = self.turn.get(tenant)
        if turn is None:
            return False
        start = self.v + U // w - 1
        # With an equal turn a remembered tenant would keep its rest, a forgotten one would not.
        return turn < start or (turn == start and self.rest[tenant] == 0)

    def _watch(self, tenant: str, w: int) -> None:
        due = self.turn[tenant] - U // w + (1 if self.rest[tenant] == 0 else 2)
        known = self._due.get(tenant)
        if known is None or due < known:
            self._due[tenant] = due
            heappush(self._heap, (due, tenant))

    # -- numbers that grow

    def rebase(self) -> None:
        """Lower V and all turns by V; their order and distances stay."""
        v, self.v = self.v, 0
        for tenant in self.turn:
            self.turn[tenant] -= v
        self.moved.update(self.turn)
        self.era += 1
        self.lowered += v
        self._heap = [(due - v, tenant) for due, tenant in self._heap]
        self._due = {tenant: due - v for tenant, due in self._due.items()}

    def rebase_due(self) -> bool:
        """Rebase if V has passed its bound; says whether it did. The orders call it after each take."""
        if self.v <= limits.V_REBASE_MAX or self.trying:
            return False
        self.rebase()
        return True

    def take_moved(self) -> set[str]:
        """Tenants that changed or were forgotten since the last call; the caller stores them with `v`."""
        moved, self.moved = self.moved, set[str]()
        return moved


class Tables:
    """The tables of one queue by selection and, under CustomPriority, priority.

    `plain`, of the whole queue, always exists and is stored.
    """

    __slots__ = ("_tables", "plain", "weight")

    def __init__(self, weight: dict[str, int], plain: Turns | None = None) -> None:
        self.weight = weight
        self.plain = Turns(weight) if plain is None else plain
        self._tables: dict[tuple[Selection, int | None], Turns] = {((), None): self.plain}

    def table(
        self, selection: Selection = (), tenants: Iterable[str] = (), priority: int | None = None
    ) -> Turns:
        """The table of a selection; a new one starts level, with the tenants that have chunks in it."""
        found = self._tables.get((selection, priority))
        if found is None:
            found = self._tables[selection, priority] = Turns(self.weight)
            for tenant in tenants:
                found.appear(tenant)
        return found

    def drop(self, selection: Selection, priority: int | None = None) -> None:
        """Drop a table that no order uses; the plain one stays."""
        if selection or priority is not None:
            self._tables.pop((selection, priority), None)

    def reweigh(self, tenant: str, new_w: int) -> None:
        """Set a tenant's weight and scale what it has left to wait; then call Plans.reweighed."""
        old_w = self.weight.get(tenant, W_DEFAULT)
        self.weight[tenant] = new_w
        for table in self._tables.values():
            table.reweigh(tenant, old_w, new_w)

    def idle(self, tenant: str) -> None:
        """The tenant has no unfinished chunk left: nothing waits and nothing is leased."""
        for table in self._tables.values():
            table.idle(tenant)

    def busy(self, tenant: str) -> None:
        """The tenant has an unfinished chunk again."""
        for table in self._tables.values():
            table.busy(tenant)

    def forget_due(self) -> list[str]:
        """Forget every idle tenant that may be forgotten; gives the names forgotten in the plain table."""
        gone = self.plain.forget_due()
        for table in self._tables.values():
            if table is not self.plain:
                table.forget_due()
        return gone
