"""How fair, and how fast: lag and waits beside FIFO and the ideal, order inside a tenant, and CPU per pick.

    python bench/fairness.py [--tenants 10 1000 100000] [--full] [--quick] [--json FILE]

Everybody submits, then all is dispatched. `even`: every tenant has the same number of messages, in one random order.
`skewed`: the tenant of rank r has 1/r as many as the first, and the largest submit first, each all at once. The four
restarts come after each fifth of the submits, and four more after each fifth of the dispatches.

ideal: the fluid share: at any moment every tenant that has messages left is served at the same speed.
fairway: turns and V are stored and come back.
fifo: the order of submission.
counter: a level is given at submit, one stride after the last one of its tenant, from an exact counter per
    tenant in memory; what is dispatched goes by level. A restart loses the counters.
sketch: the same with the counters of more than 100 tenants in a count-min sketch (5 rows, 100 cells wide,
    half as wide again, and empty, when too many updates hit a cell that is higher already; at most 10,000).

Lag is how far a tenant is behind the ideal just before it is served, in dispatches. A tenant's wait is how many
dispatches pass until it has nothing left; beside the ideal, it is divided by what that tenant would wait there.
"""

from __future__ import annotations

import gc
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from figures import Figures, parser

from fairway.fair.turns import Tables, Turns
from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate
from fairway.strategy.plan import Plans

PARTS = 5
STRATEGIES = ("Fair", "Random", "OldestFirst", "NewestFirst")
MESSAGES = {10: 10_000, 10**3: 100, 10**5: 10, 10**6: 2}  # of each tenant, for so many tenants
NOTHING: dict[str, str | int] = {}


class Ideal:
    """The fluid share: what each tenant would have after so many dispatches, whoever has how many messages."""

    def __init__(self, counts: list[int]) -> None:
        ends = Counter(counts)
        self.served = [0]  # [k]: dispatches until everybody has k, or all that it brought
        left = len(counts)
        for k in range(1, max(counts) + 1):
            self.served.append(self.served[-1] + left)
            left -= ends[k]
        self._level = 0

    def share(self, dispatches: int) -> float:
        """What a tenant with messages left would have; asked with a growing number."""
        while self._level + 1 < len(self.served) and self.served[self._level + 1] <= dispatches:
            self._level += 1
        if self._level + 1 == len(self.served):
            return float(self._level)
        low, high = self.served[self._level], self.served[self._level + 1]
        return self._level + (dispatches - low) / (high - low)


class Lag:
    """The worst lag behind the ideal, order breaks, and when each tenant had nothing left, dispatch by dispatch."""

    def __init__(self, counts: list[int]) -> None:
        self.counts, self.ideal = counts, Ideal(counts)
        self.got = array("q", [0]) * len(counts)
        self.last = array("q", [-1]) * len(counts)
        self.ended = array("q", [0]) * len(counts)
        self.done = self.breaks = 0
        self.worst = 0.0

    def see(self, tenant: int, id: int) -> None:
        got, count = self.got[tenant], self.counts[tenant]
        self.worst = max(self.worst, min(self.ideal.share(self.done), count) - got)
        self.got[tenant] = got + 1
        self.done += 1
        if got + 1 == count:
            self.ended[tenant] = self.done
        if id < self.last[tenant]:
            self.breaks += 1
        self.last[tenant] = id


def even(tenants: int, messages: int) -> array[int]:
    order = array("q", range(tenants)) * messages
    random.Random(5).shuffle(order)
    return order


def skewed(tenants: int, messages: int) -> array[int]:
    whole = sum(1 / rank for rank in range(1, tenants + 1))
    order = array("q")
    for tenant in range(tenants):
        order.extend([tenant] * max(1, round(tenants * messages / whole / (tenant + 1))))
    return order


def grab_into(out: Callable[[int, int], None]) -> Callable[[Candidate, int, bool], None]:
    def grab(run: Candidate, n: int, shuffled: bool) -> None:
        run.ready -= n
        if not run.ready:
            run.eligible = False
        for _ in range(n):
            out(int(run.tenant), run.id)

    return grab


def by_turns(order: array[int], lag: Lag, restarts: bool) -> None:
    runs: dict[int, Candidate] = {}
    tables = Tables({})
    part = len(order) // PARTS

    def opened(tables: Tables) -> Plans[Candidate]:
        plans = Plans(tables, Dice(1), runs)
        plans.get("Fair")
        plans.finish()
        return plans

    def restarted() -> tuple[Tables, Plans[Candidate]]:
        turns = tables.plain
        rows = [(tenant, turn, turns.rest[tenant]) for tenant, turn in turns.turn.items()]
        again = Tables({}, Turns.restore({}, turns.v, rows))
        return again, opened(again)

    plans = opened(tables)
    for id, tenant in enumerate(order):
        run = runs[id] = Candidate(id, str(tenant), 0, NOTHING, 1, True)
        tables.plain.appear(run.tenant)  # it changes nothing for one that has messages: V stands still
        plans.add(run)
        if restarts and id % part == part - 1 and len(runs) < len(order):
            tables, plans = restarted()
    grab = grab_into(lag.see)
    while lag.done < len(order):
        plans.get("Fair").take(min(100, part - lag.done % part), grab)
        if restarts and lag.done % part == 0 and lag.done < len(order):
            tables, plans = restarted()


def fifo(order: array[int], lag: Lag, restarts: bool) -> None:
    for id, tenant in enumerate(order):
        lag.see(tenant, id)


class Sketch:
    """Counters that share cells: what two tenants share counts for both."""

    ROWS, KEYS_EXACT, WIDTH, WIDTH_MAX, LOOK_EVERY, CROWDED = 5, 100, 100, 10_000, 10_000, 0.35

    def __init__(self) -> None:
        self.exact: dict[int, int] | None = {}
        self.width, self.salt = self.WIDTH, 1
        self.cells = [[0] * self.width for _ in range(self.ROWS)]
        self.calls = self.skipped = 0

    def next(self, tenant: int) -> int:
        if self.exact is not None:
            pass_ = self.exact[tenant] = self.exact.get(tenant, 0) + 1
            if len(self.exact) > self.KEYS_EXACT:
                old, self.exact = self.exact, None
                for key, count in old.items():
                    self.raise_to(key, count)
            return pass_
        pass_ = 1 + min(row[i] for row, i in self.places(tenant))
        self.skipped += self.raise_to(tenant, pass_)
        self.calls += 1
        if self.calls > self.LOOK_EVERY:
            self.look()
        return pass_

    def places(self, tenant: int) -> Iterator[tuple[list[int], int]]:
        for n, row in enumerate(self.cells):
            yield row, hash((tenant, n, self.salt)) % self.width

    def raise_to(self, tenant: int, count: int) -> int:
        skipped = 0
        for row, i in self.places(tenant):
            if row[i] < count:
                row[i] = count
            else:
                skipped += 1
        return skipped

    def look(self) -> None:
        crowded = self.skipped >= self.CROWDED * self.calls * self.ROWS
        self.skipped, self.calls = self.skipped // 2, self.calls // 2
        if crowded and self.width < self.WIDTH_MAX:
            self.width = min(self.width * 3 // 2, self.WIDTH_MAX)
            self.cells = [[0] * self.width for _ in range(self.ROWS)]
            self.salt += 1
            self.skipped = self.calls = 0


class Exact:
    """A counter of its own for every tenant."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}

    def next(self, tenant: int) -> int:
        pass_ = self.count[tenant] = self.count.get(tenant, 0) + 1
        return pass_


def by_level(counters: type[Exact] | type[Sketch]) -> Callable[[array[int], Lag, bool], None]:
    def run(order: array[int], lag: Lag, restarts: bool) -> None:
        part = len(order) // PARTS
        counter = counters()
        levels: list[tuple[int, int]] = []
        for id, tenant in enumerate(order):
            levels.append((counter.next(tenant), id))
            if restarts and id % part == part - 1:
                counter = counters()
        levels.sort()
        for _, id in levels:
            lag.see(order[id], id)

    return run


RULES = {"fairway": by_turns, "fifo": fifo, "counter": by_level(Exact), "sketch": by_level(Sketch)}


def percentiles(values: Iterable[float]) -> tuple[float, float]:
    """The median, and what 99 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


def measure_fairness(figures: Figures, sizes: list[tuple[int, int]]) -> None:
    lags = figures.table(
        "Equal weights: the worst lag behind the ideal, in dispatches / order breaks inside a tenant",
        *("tenants", "messages", "shape", "restarts", *RULES),
    )
    waits: list[tuple[str | int | float | None, ...]] = []
    for tenants, messages in sizes:
        for shape in (even, skewed):
            order = shape(tenants, messages)
            count = Counter(order)
            counts = [count[tenant] for tenant in range(tenants)]
            served = Ideal(counts).served
            ideal = [served[count] for count in counts]
            for restarts in (False, True):
                cells, found = [], {}
                for name, rule in RULES.items():
                    lag = Lag(counts)
                    rule(order, lag, restarts)
                    cells.append(f"{lag.worst:,.3f} / {lag.breaks:,}")
                    found[name] = lag.ended
                    gc.collect()
                row = (f"{tenants:,}", len(order), shape.__name__, PARTS - 1 if restarts else 0)
                lags.add(*row, *cells)
                ended = (ideal, found["fairway"], found["fifo"])
                pairs = [f"{p50:,} / {p99:,}" for p50, p99 in map(percentiles, ended)]
                for one in ended[1:]:
                    beside = [wait / fluid for wait, fluid in zip(one, ideal, strict=True)]
                    pairs.append("{:.2f} / {:.2f} / {:.2f}".format(*percentiles(beside), max(beside)))
                waits.append((*row, *pairs))
    table = figures.table(
        "How long tenants wait until they have nothing left, in dispatches, p50 / p99 of all tenants",
        *("tenants", "messages", "shape", "restarts", "ideal", "fairway", "fifo"),
        *("fairway beside the ideal: p50 / p99 / worst", "fifo beside the ideal"),
    )
    for wait in waits:
        table.add(*wait)


def cpu_per_pick(strategy: str, submissions: int, chunks: int, picks: int) -> tuple[float, float]:
    """Microseconds of CPU per add and per pick, in takes of 100, a tenth as many tenants as submissions."""
    runs: dict[int, Candidate] = {}
    tables = Tables({})
    plans = Plans(tables, Dice(7), runs)
    order = plans.get(strategy)
    for id in range(1, submissions + 1):
        tenant = f"tenant {id * 7919 % max(1, submissions // 10)}"
        run = runs[id] = Candidate(id, tenant, 0, NOTHING, chunks, True)
        tables.plain.appear(run.tenant)
    gc.collect()
    gc.disable()
    start = time.process_time()
    for run in runs.values():
        plans.add(run)
    added = time.process_time() - start

    def grab(run: Candidate, n: int, shuffled: bool) -> None:
        run.ready -= n
        if not run.ready:
            run.eligible = False

    done, picks = 0, min(picks, submissions * chunks)
    start = time.process_time()
    while done < picks:
        done += order.take(100, grab)
    spent = time.process_time() - start
    gc.enable()
    return added / submissions * 1e6, spent / done * 1e6


def measure_cpu(figures: Figures, sizes: list[int], picks: int, rounds: int) -> None:
    table = figures.table(
        f"CPU microseconds per add / per pick in takes of 100, the best of {rounds} (an empty grab included)",
        *("submissions", "chunks each", *STRATEGIES),
    )
    for submissions in sizes:
        for chunks in (10_000, 1):
            cells: list[str] = []
            for strategy in STRATEGIES:
                runs = [cpu_per_pick(strategy, submissions, chunks, picks) for _ in range(rounds)]
                cells.append(f"{min(a for a, _ in runs):.2f} / {min(p for _, p in runs):.2f}")
            table.add(f"{submissions:,}", chunks, *cells)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--tenants", type=int, nargs="+", choices=MESSAGES, default=list(MESSAGES)[:3])
    options.add_argument("--full", action="store_true", help="10^6 tenants too")
    given = options.parse_args()
    sizes = [(tenants, MESSAGES[tenants]) for tenants in (MESSAGES if given.full else given.tenants)]
    figures = Figures("fairness", given)
    if given.quick:
        measure_fairness(figures, [(10, 20), (100, 5)])
        measure_cpu(figures, [100], 200, 1)
    else:
        measure_fairness(figures, sizes)
        measure_cpu(figures, [n for n in (10**3, 10**4, 10**5) if n <= max(given.tenants)], 100_000, 3)
    figures.end()


if __name__ == "__main__":
    main()
