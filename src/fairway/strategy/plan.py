"""Plans: strategies compiled into live orders, one for each tier, shared by every strategy that has the tier.

Guards: every live order hears of every run of its selection that becomes eligible; nothing is taken from a plan
before all runs are in it; a plan is made only if there is a place for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic

from fairway import limits
from fairway.model.dice import Dice
from fairway.strategy.building import Building
from fairway.strategy.candidate import selects
from fairway.strategy.compiling import Compiler, Live
from fairway.strategy.inflight import InFlight
from fairway.strategy.lanes import Lanes
from fairway.strategy.order import Grab, Limited, Order, R, TurnTables
from fairway.strategy.places import Places
from fairway.strategy.telling import held_back
from fairway.strategy.text import parse
from fairway.strategy.tiers import Tier
from fairway.strategy.trial import Trial

_NO_KEYS: Final[frozenset[str]] = frozenset()


class Plan(Generic[R]):
    """A strategy that can be taken from."""

    __slots__ = (
        "_orders",
        "_plans",
        "_shares",
        "by_share",
        "guest",
        "idle_since",
        "pinned",
        "ready",
        "tiers",
        "used",
    )

    def __init__(self, plans: Plans[R], tiers: tuple[Tier, ...]) -> None:
        self._plans = plans
        self.tiers = tiers
        self.pinned = 0
        """How many waiters need it; it is not dropped while there is one. The engine counts them."""
        self.used = False
        """Whether it was taken from since that was last looked at."""
        self.idle_since: float | None = None
        self.guest = False
        """Whether it is beyond the most, made to be explained."""
        self.ready = False
        """Whether all runs are in it; before that nothing may be taken from it."""
        self.by_share = any(cap.percent is not None for tier in tiers for _, cap in tier.limits)
        """Whether a limit is a share of the consumers: then more consumers may make more eligible."""
        self._orders: list[Order[R]] = []
        self._shares: list[Limited[R]] = []

    def open(self, live: Sequence[Live[R]]) -> None:
        """The orders of its tiers are made, though they may not have all runs yet."""
        self._orders = [one.order for one in live]
        self._shares = [one.limited for one in live if one.limited is not None and one.by_share]

    def __len__(self) -> int:
        """How many runs its largest order holds."""
        return max(map(len, self._orders), default=0)

    def take(self, k: int, grab: Grab[R], consumers: int = 1) -> int:
        """Make up to k single picks; gives how many were made: fewer than k only if nothing can be picked.

        Counts only rise inside a call, so a tier that has nothing left is not tried again.
        """
        assert self.ready
        self.used = True
        for order in self._shares:
            order.seen(consumers)
        left = k
        for order in self._orders:
            left -= order.take(left, grab)
            if left <= 0:
                break
        return k - left

    def next_up(self, n: int, consumers: int = 1) -> list[tuple[R, int]]:
        """The runs of the next n single picks and the tier of each: they are made and taken back.

        Under Random it is one of many that may come.
        """
        assert self.ready
        return self._plans.rehearse(self, n, consumers)

    def held_back(self, run: R, consumers: int = 1) -> str:
        """Why the run cannot be picked, or what is before it, in words."""
        return held_back(self.tiers, run, self._plans.in_flight.counts, consumers)

    def played(self, k: int, grab: Grab[R], consumers: int, trial: Trial[R]) -> None:
        """`take`, telling which tier it has come to."""
        for order in self._shares:
            order.seen(consumers)
        for at, (tier, order) in enumerate(zip(self.tiers, self._orders, strict=True)):
            trial.tier = at, tier
            k -= order.take(k, grab)
            if k <= 0:
                break

    def lowered(self, tenants: Iterable[str]) -> None:
        """The turns of these tenants fell."""
        for order in self._orders:
            for tenant in tenants:
                order.reweighed(tenant)


class Plans(Generic[R]):
    """The compiled strategies of one queue.

    `runs` are the queue's, by id, and `out` says how many chunks of one are leased, ended ones included. A new order
    takes in those that are eligible, `steps` additions at a time: the first slice when it is made, the others by
    `build`. `limited` and `laned` say whether `leased`, `freed` and `enters`, `waits`, `leaves` have to be called.
    """

    def __init__(
        self,
        tables: TurnTables,
        dice: Dice,
        runs: Mapping[int, R],
        out: Callable[[R], int] = lambda run: 0,
        plans_max: int = limits.PLANS_MAX,
        in_flight: InFlight[R] | None = None,
        steps: int = limits.PLAN_STEPS,
    ) -> None:
        self.tables = tables
        self.in_flight = InFlight[R]() if in_flight is None else in_flight
        self.lanes = Lanes[R](tables)
        self.limited = False
        self.laned = False
        self._runs = runs
        self._out = out
        self.places = Places(plans_max)
        self._steps = steps
        self._dice = dice
        self._compile = Compiler[R](dice, self.lanes, self.in_flight)
        self._plans: dict[tuple[Tier, ...], Plan[R]] = {}  # least recently used first
        self._live: dict[Tier, Live[R]] = {}
        self._orders: dict[Tier, Order[R]] = {}
        self._tiers: dict[str, tuple[Tier, ...]] = {}  # by text
        self._everywhere: list[Callable[[R], None]] = []  # the `add` of orders that see the whole queue
        self._everywhere_all: list[Callable[[Sequence[R]], None]] = []  # the same for many
        self._somewhere: list[Live[R]] = []  # orders of a selection
        self._building: Building[R] | None = None
        self._later: dict[tuple[Tier, ...], Plan[R]] = {}  # they are built after it
        self.made = False
        """Whether a plan was made since `drop_idle` was called."""

    def own(self, text: str, going: int = 0) -> None:
        """The queue's own strategy from now on, to which `going` waiters of the present one go: they are unpinned.

        A place is kept for it. TooManyStrategies, and nothing is changed, if none can be had.
        """
        tiers, present = self._tiers.get(text) or self._understand(text), self.places.own
        leaving = self.places.leaves_for_own(tiers, self._plans, going)
        if present is not None and present in self._plans:
            self._plans[present].pinned -= going
        self.places.own = tiers
        if leaving is not None:
            self._drop(leaving)

    def get(self, text: str) -> Plan[R]:
        """The plan of a strategy, begun if it is not live; BadStrategy if it is none, or TooManyStrategies."""
        tiers = self._tiers.get(text)
        if tiers is None:
            tiers = self._understand(text)
        return self.of(tiers)

    def peek(self, text: str) -> Plan[R] | None:
        """The plan of a strategy if it is live; it is not younger for it."""
        return self._plans.get(self._tiers.get(text) or self._understand(text))

    def lend(self, text: str) -> Plan[R]:
        """The plan of a strategy, to be explained: no other is dropped for it. Then `give_back` it."""
        tiers = self._tiers.get(text) or self._understand(text)
        plan = self._plans.get(tiers)
        if plan is None:
            plan = self._plans[tiers] = self._make(tiers, guest=self.places.full(tiers, self._plans))
        return plan

    def give_back(self, plan: Plan[R]) -> None:
        """A plan that was lent is not looked at any more."""
        if plan.guest and not plan.used and not plan.pinned and self._plans.get(plan.tiers) is plan:
            self._drop(plan.tiers)

    def drop_idle(self, now: float) -> bool:
        """Drop plans that nobody used or waits for since long, but the queue's own; says whether there are others."""
        self.made = False
        own = self.places.own
        for tiers, plan in list(self._plans.items()):
            if plan.used or plan.pinned or plan.idle_since is None:
                plan.used, plan.idle_since = False, now
            elif now - plan.idle_since >= limits.PLAN_IDLE_SECONDS and tiers != own:
                self._drop(tiers)
        return any(tiers != own for tiers in self._plans)

    # -- what the engine tells

    def add(self, run: R) -> None:
        """The run became eligible, or its `ready` grew."""
        for add in self._everywhere:
            add(run)
        for live in self._somewhere:
            if selects(live.tier.selection, run):
                live.order.add(run)
        if self._building is not None:
            self._building.add(run)

    def add_all(self, runs: Sequence[R]) -> None:
        """`add` of many."""
        for add_all in self._everywhere_all:
            add_all(runs)
        for live in self._somewhere:
            for run in runs:
                if selects(live.tier.selection, run):
                    live.order.add(run)
        if self._building is not None:
            for run in runs:
                self._building.add(run)

    def enters(self, run: R, n: int) -> None:
        """A submit or redrive brings a run of which n chunks wait; call it before `add`, if `laned`."""
        building = self._building
        if self.lanes.enters(run, n, building is None or not building.comes(run)):
            for order in self._orders.values():
                order.sweep()

    def leaves(self, run: R, n: int) -> None:
        """A run of which n chunks wait is no longer in memory; call it if `laned`."""
        self.waits(run, -n)
        if self._building is not None:
            self._building.unseen.pop(run.id, None)

    def waits(self, run: R, n: int) -> None:
        """n chunks more (fewer, if negative) of the run are waiting; call it if `laned`."""
        self.lanes.waits(run, n, not self._is_unseen(run))

    def leased(self, run: R, n: int) -> None:
        """n chunks of the run went out; call it if `limited`, before the next pick."""
        self.in_flight.leased(run, n, self._uncounted(run))

    def freed(self, run: R, n: int) -> bool:
        """n chunks of the run are no longer out; call it if `limited`. Says whether a limit went from full to open."""
        return self.in_flight.freed(run, n, self._uncounted(run))

    def _is_unseen(self, run: R) -> bool:
        return self._building is not None and run.id in self._building.unseen

    def _uncounted(self, run: R) -> frozenset[str]:
        return self._building.keys if self._building is not None and self._is_unseen(run) else _NO_KEYS

    def reweighed(self, tenant: str) -> None:
        """The tenant's weight changed; call it after Tables.reweigh."""
        self.lanes.reweighed(tenant)
        for order in self._orders.values():
            order.reweighed(tenant)

    def live(self) -> int:
        """How many orders are live."""
        return len(self._live)

    def rehearse(self, plan: Plan[R], n: int, consumers: int) -> list[tuple[R, int]]:
        """The next n picks of a live plan and their tiers, made with draws of their own and taken back."""
        trial = Trial(self.lanes, plan.tiers)

        def grab(run: R, many: int, shuffled: bool) -> None:
            trial.grab(run, many, shuffled)
            self.leased(run, many)

        with self._dice.aside():
            plan.played(n, grab, consumers, trial)
        runs, tenants = trial.back()
        for run, many in trial.taken:
            self.freed(run, many)
        self.add_all(runs)
        plan.lowered(tenants)
        return trial.picked

    # -- making and dropping

    def of(self, tiers: tuple[Tier, ...]) -> Plan[R]:
        """The plan of these tiers, begun if it is not live."""
        plan = self._plans.get(tiers)
        if plan is None:
            plan = self._make(tiers)
        elif plan.guest:  # who reserves by it needs a place for it
            leaving = self.places.leaves_for(tiers, self._plans)
            plan.guest = False
            if leaving is not None:
                self._drop(leaving)
        self._plans.pop(tiers, None)
        self._plans[tiers] = plan
        return plan

    @property
    def building(self) -> bool:
        """Whether a plan is being made, so that `build` is to be called."""
        return self._building is not None

    def build(self) -> bool:
        """Take the next slice of runs into the plan that is being made; says whether a plan became ready."""
        building = self._building
        if building is None or not building.go_on(self._steps):
            return False
        self._building = None
        self.lanes.grown()
        self._sort()
        self._plans[building.tiers].ready = True
        self._next()
        return True

    def finish(self) -> bool:
        """Make every plan that is being made ready, however long it takes; says whether there was one."""
        found = self.building
        while self.building:
            self.build()
        return found

    def _understand(self, text: str) -> tuple[Tier, ...]:
        tiers = parse(text).tiers()
        if len(self._tiers) >= 4 * limits.PLANS_MAX:  # the same strategy has many spellings
            self._tiers.clear()
        self._tiers[text] = tiers
        return tiers

    def _make(self, tiers: tuple[Tier, ...], guest: bool = False) -> Plan[R]:
        if guest:
            self.places.check_guest(self._plans)
        leaving = None if guest else self.places.leaves_for(tiers, self._plans)
        plan = self._plans[tiers] = Plan(self, tiers)
        plan.guest, self.made = guest, True
        if self._building is None or self._orders.keys() - self._new_tiers() >= set(tiers):
            self._begin(plan)
        else:
            self._later[tiers] = plan
        if leaving is not None:
            self._drop(leaving)
        if self._building is not None and self._building.tiers == tiers:
            self.build()
        return self._plans.pop(tiers)

    def _begin(self, plan: Plan[R]) -> None:
        """Open the orders of a plan; those that are new take in the runs from now on."""
        tiers = plan.tiers
        keys = self.in_flight.track([key for tier in tiers for key, _ in tier.limits])
        new = [self._compile(tier) for tier in tiers if tier not in self._live]
        for live in new:
            self._live[live.tier] = live
        for tier in tiers:
            self._live[tier].plans += 1
        plan.open([self._live[tier] for tier in tiers])
        if new:
            self._building = Building(tiers, new, keys, self._runs, self.in_flight, self.lanes, self._out)
        else:
            plan.ready = True
        self._sort()

    def _next(self) -> None:
        while self._later and self._building is None:
            self._begin(self._later.pop(next(iter(self._later))))

    def _new_tiers(self) -> set[Tier]:
        return set() if self._building is None else {live.tier for live in self._building.lives}

    def _drop(self, tiers: tuple[Tier, ...]) -> None:
        del self._plans[tiers]
        if self._later.pop(tiers, None) is not None:
            return
        if self._building is not None and self._building.tiers == tiers:
            self._building = None
            self.lanes.grown()
        for tier in tiers:
            live = self._live[tier]
            live.plans -= 1
            if not live.plans:
                del self._live[tier]
                self._compile.end(live)
        self._next()
        self._sort()

    def _sort(self) -> None:
        new = self._new_tiers()
        whole = [live for tier, live in self._live.items() if tier not in new]
        self._orders = {tier: live.order for tier, live in self._live.items()}
        self._everywhere = [live.order.add for live in whole if not live.tier.selection]
        self._everywhere_all = [live.adder() for live in whole if not live.tier.selection]
        self._somewhere = [live for live in whole if live.tier.selection]
        self.limited = bool(self.in_flight.counts)
        self.laned = bool(self.lanes) or self.building
