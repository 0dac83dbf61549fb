"""Placing: the level of a run, and the room there is for levels.

Guards: a run is placed above A and at most at PASS_MAX; a call that needs more is refused before it has any effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway import limits
from fairway.engine.backlog import appear
from fairway.engine.state import State
from fairway.engine.tenant import Tenant
from fairway.errors import TooLarge
from fairway.fair.levels import after
from fairway.fair.weights import W_DEFAULT, W_MIN, U

Wanted = tuple[str, int, int]
"""(tenant, chunks, weight in thousandths or 0 for its present one) of a run that is to be placed."""


def place(state: State, tenant: Tenant, chunks: int, floor: int) -> int:
    """The pass of a run that enters the backlog, at `floor` or above; call `check_room` first."""
    name, plain = tenant.name, state.tables.plain
    had = tenant.waiting > 0
    if chunks and not had:
        appear(state, name)
    turn, rest = plain.turn.get(name, plain.v), plain.rest.get(name, 0)
    pass_ = state.forecast.place(name, chunks, turn, rest, had, floor)
    plain.moved.add(name)  # its forecast moved
    if pass_ > state.top:
        state.top = pass_
    return pass_


class Trail:
    """The new runs of one tenant in a call: each lies as far behind the one before it as that has chunks.

    What they change in the tenant is told at the end of the call. Call `check_room` first.
    """

    __slots__ = ("_before", "_floor", "_ids", "_rest", "_state", "_waits", "level", "tenant", "total", "w")

    def __init__(self, state: State, name: str, floor: int) -> None:
        self._state = state
        self._floor = floor
        self.tenant = tenant = state.tenant(name)
        self._waits = (
            False  # `level`, `_rest` and `_before` are those of a run behind which the next one lies
        )
        self.level = self._rest = self._before = 0
        self.w = state.tables.weight.get(name, W_DEFAULT)
        self.total = tenant.waiting
        self._ids: list[int] = []

    def follow(self, id: int, chunks: int) -> int:
        """The pass of the next run."""
        self._ids.append(id)
        if not self._waits:
            return self._first(chunks)
        rest = self._rest + self._before * U  # `after`, written out: it is asked for every message
        self.level = level = self.level + rest // self.w
        self._rest = rest % self.w
        self._before = chunks
        self.total += chunks
        return level

    def _first(self, chunks: int) -> int:
        """A run before which nothing new of the tenant waits."""
        tenant, state = self.tenant, self._state
        self.level = place(state, tenant, chunks, self._floor)
        self.total += chunks
        self._waits = self.total > 0
        _, self._rest, self._before = state.forecast.last(tenant.name) or (0, 0, 0)
        return self.level

    def end(self) -> None:
        """The call has no more of them."""
        tenant, state = self.tenant, self._state
        runs = tenant.runs
        for id in self._ids:
            runs[id] = None
        tenant.submissions += len(self._ids)
        tenant.waiting = self.total
        state.counted.add(tenant.name)
        if self._waits:
            state.forecast.restore(tenant.name, self.level, self._rest, self._before)
        if self.level > state.top:
            state.top = self.level


def far_away(state: State, chunks: int, floor: int) -> bool:
    """The usual case: so many chunks cannot reach PASS_MAX whatever their tenants' weights are."""
    chunks += limits.CHUNKS_MAX  # and those of the run placed last
    return max(state.top, floor) + state.tables.plain.v + (chunks + 2) * (U // W_MIN + 1) < limits.PASS_MAX


def check_room(state: State, wanted: Iterable[Wanted], floor: int) -> None:
    """Refuse the whole call if a level could pass PASS_MAX; never too late, and at most some strides too early."""
    wanted = list(wanted)
    if far_away(state, sum(chunks for _, chunks, _ in wanted), floor):
        return
    lowest: dict[str, int] = {}
    for name, _, weight in wanted:
        w = state.tables.weight.get(name, W_DEFAULT)
        lowest[name] = min(lowest.get(name, w), w, weight or w)
    ahead: dict[str, tuple[int, int]] = {}
    for name, chunks, _ in wanted:
        at = ahead.get(name) or _first(state, name, lowest[name], floor)
        if at[0] > limits.PASS_MAX:
            raise TooLarge(
                f"tenant {name!r} has more chunks waiting than its weight allows to place;"
                " let some of them be served, or give it a higher weight",
                tenant=name,
            )
        ahead[name] = after(*at, chunks, lowest[name])


def _first(state: State, name: str, w: int, floor: int) -> tuple[int, int]:
    """The highest (pass, rest) that the tenant's next run could have."""
    plain, last = state.tables.plain, state.forecast.last(name)
    behind = after(*last, w)[0] + 1 if last is not None else 0
    return max(behind, plain.turn.get(name, 0) + 1, plain.v + U // w + 1, floor), 0
