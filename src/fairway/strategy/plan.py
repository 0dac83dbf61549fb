"""Plans: strategies compiled into live orders, one for each tier, shared by every strategy that has the tier.

Guards: every live order hears of every run of its selection that becomes eligible; at most `plans_max` plans live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from fairway import limits
from fairway.errors import BadStrategy
from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate, selects
from fairway.strategy.compiling import Compiler, Live
from fairway.strategy.inflight import InFlight
from fairway.strategy.lanes import Lanes
from fairway.strategy.order import Grab, Limited, Order, R, TurnTables
from fairway.strategy.telling import held_back
from fairway.strategy.text import parse
from fairway.strategy.tiers import Tier


class Plan(Generic[R]):
    """A strategy that can be taken from."""

    __slots__ = ("_orders", "_plans", "_shares", "pinned", "tiers")

    def __init__(self, plans: Plans[R], tiers: tuple[Tier, ...], live: Sequence[Live[R]]) -> None:
        self._plans = plans
        self.tiers = tiers
        self.pinned = 0
        """How many waiters need it; it is not dropped while there is one. The engine counts them."""
        self._orders: list[Order[R]] = [one.order for one in live]
        self._shares: list[Limited[R]] = [
            one.limited for one in live if one.limited is not None and one.by_share
        ]

    @property
    def by_share(self) -> bool:
        """Whether a limit is a share of the consumers: then more consumers may make more eligible."""
        return bool(self._shares)

    def __len__(self) -> int:
        """How many runs its largest order holds."""
        return max(map(len, self._orders))

    def take(self, k: int, grab: Grab[R], consumers: int = 1) -> int:
        """Make up to k single picks; gives how many were made: fewer than k only if nothing can be picked.

        Counts only rise inside a call, so a tier that has nothing left is not tried again.
        """
        for order in self._shares:
            order.seen(consumers)
        left = k
        for order in self._orders:
            left -= order.take(left, grab)
            if left <= 0:
                break
        return k - left

    def next_up(self, n: int, consumers: int = 1) -> list[tuple[R, int]]:
        """The runs of the next n single picks and the tier of each; nothing is taken, but it looks at all runs.

        Under Random it is one of many that may come.
        """
        return self._plans.rehearse(self.tiers, n, consumers)

    def held_back(self, run: R, consumers: int = 1) -> str:
        """Why the run cannot be picked, or what is before it, in words."""
        return held_back(self.tiers, run, self._plans.in_flight.counts, consumers)

    def played(self, k: int, grab: Grab[R], consumers: int, tier: Callable[[int], None]) -> None:
        """`take`, telling which tier it has come to."""
        for order in self._shares:
            order.seen(consumers)
        for at, order in enumerate(self._orders):
            tier(at)
            k -= order.take(k, grab)


class Plans(Generic[R]):
    """The compiled strategies of one queue.

    `candidates` gives the queue's runs; it is called when an order is made, and only eligible ones are taken.
    `candidates_out` gives (run, chunks out) of every run with leases, ended ones included; it is called when a
    key is limited for the first time. `limited` and `laned` say whether `leased`, `freed` and `enters`, `waits`
    have to be called.
    """

    def __init__(
        self,
        tables: TurnTables,
        dice: Dice,
        candidates: Callable[[], Iterable[R]],
        candidates_out: Callable[[], Iterable[tuple[R, int]]] = lambda: (),
        plans_max: int = limits.PLANS_MAX,
        in_flight: InFlight[R] | None = None,
    ) -> None:
        self.tables = tables
        self.candidates = candidates
        self.in_flight = InFlight[R]() if in_flight is None else in_flight
        self.lanes = Lanes(tables, candidates)
        self.limited = False
        self.laned = False
        self._candidates_out = candidates_out
        self._plans_max = plans_max
        self._compile = Compiler[R](dice, self.lanes, self.in_flight)
        self._plans: dict[tuple[Tier, ...], Plan[R]] = {}  # least recently used first
        self._live: dict[Tier, Live[R]] = {}
        self._orders: dict[Tier, Order[R]] = {}
        self._tiers: dict[str, tuple[Tier, ...]] = {}  # by text
        self._everywhere: list[Callable[[R], None]] = []  # the `add` of orders that see the whole queue
        self._somewhere: list[Live[R]] = []  # orders of a selection

    def get(self, text: str) -> Plan[R]:
        """The plan of a strategy, made and filled if it is not live; BadStrategy if it is no strategy."""
        tiers = self._tiers.get(text)
        if tiers is None:
            tiers = self._understand(text)
        return self.of(tiers)

    # -- what the engine tells

    def add(self, run: R) -> None:
        """The run became eligible, or its `ready` grew."""
        for add in self._everywhere:
            add(run)
        for live in self._somewhere:
            if selects(live.tier.selection, run):
                live.order.add(run)

    def enters(self, run: R, n: int) -> None:
        """A submit or redrive brings a run of which n chunks wait; call it before `add`, if `laned`."""
        if self.lanes.enters(run, n):
            for order in self._orders.values():
                order.sweep()

    def waits(self, run: R, n: int) -> None:
        """n chunks more (fewer, if negative) of the run are waiting; call it if `laned`."""
        self.lanes.waits(run, n)

    def leased(self, run: R, n: int) -> None:
        """n chunks of the run went out; call it if `limited`, before the next pick."""
        self.in_flight.leased(run, n)

    def freed(self, run: R, n: int) -> bool:
        """n chunks of the run are no longer out; call it if `limited`. Says whether a limit went from full to open."""
        return self.in_flight.freed(run, n)

    def reweighed(self, tenant: str) -> None:
        """The tenant's weight changed; call it after Tables.reweigh."""
        for order in self._orders.values():
            order.reweighed(tenant)

    def live(self) -> int:
        """How many orders are live."""
        return len(self._live)

    def rehearse(self, tiers: tuple[Tier, ...], n: int, consumers: int) -> list[tuple[R, int]]:
        """The next n picks of a live plan and their tiers, made on copies of the runs, turns and counts."""
        real = {run.id: run for run in self.candidates() if run.eligible}
        copies = [
            Candidate(run.id, run.tenant, run.priority, run.metadata, run.ready, True)
            for run in real.values()
        ]
        counts = InFlight[Candidate]()
        counts.counts = {key: out.copy() for key, out in self.in_flight.counts.items()}
        stage = Plans[Candidate](self.tables.copy(), Dice(n), lambda: copies, in_flight=counts)
        found: list[tuple[R, int]] = []
        at = 0

        def come_to(tier: int) -> None:
            nonlocal at
            at = tier

        def grab(run: Candidate, many: int, shuffled: bool) -> None:
            run.ready -= many
            run.eligible = run.ready > 0
            stage.leased(run, many)
            found.extend([(real[run.id], at)] * many)

        stage.of(tiers).played(n, grab, consumers, come_to)
        return found

    # -- making and dropping

    def of(self, tiers: tuple[Tier, ...]) -> Plan[R]:
        """The plan of these tiers, made and filled if it is not live."""
        plan = self._plans.pop(tiers, None)
        if plan is None:
            plan = self._make(tiers)
        self._plans[tiers] = plan
        return plan

    def _understand(self, text: str) -> tuple[Tier, ...]:
        tiers = parse(text).tiers()
        if len(self._tiers) >= 4 * limits.PLANS_MAX:  # the same strategy has many spellings
            self._tiers.clear()
        self._tiers[text] = tiers
        return tiers

    def _make(self, tiers: tuple[Tier, ...]) -> Plan[R]:
        leaving = self._unused() if len(self._plans) >= self._plans_max else None
        self.in_flight.track([key for tier in tiers for key, _ in tier.limits], self._candidates_out)
        new = [self._compile(tier) for tier in tiers if tier not in self._live]
        for live in new:
            self._live[live.tier] = live
        for tier in tiers:
            self._live[tier].plans += 1
        if leaving is not None:
            self._drop(leaving)
        self._sort()
        for run in self.candidates() if new else ():
            if run.eligible:
                for live in new:
                    if selects(live.tier.selection, run):
                        live.order.add(run)
        return Plan(self, tiers, [self._live[tier] for tier in tiers])

    def _unused(self) -> tuple[Tier, ...]:
        for tiers, plan in self._plans.items():
            if not plan.pinned:
                return tiers
        raise BadStrategy(
            f"{self._plans_max} other strategies have waiting consumers, which is the most;"
            " use one of them, or try again when one of them is free"
        )

    def _drop(self, tiers: tuple[Tier, ...]) -> None:
        del self._plans[tiers]
        for tier in tiers:
            live = self._live[tier]
            live.plans -= 1
            if not live.plans:
                del self._live[tier]
                self._compile.end(live)

    def _sort(self) -> None:
        self._orders = {tier: live.order for tier, live in self._live.items()}
        self._everywhere = [live.order.add for live in self._live.values() if not live.tier.selection]
        self._somewhere = [live for live in self._live.values() if live.tier.selection]
        self.limited = bool(self.in_flight.counts)
        self.laned = bool(self.lanes)
