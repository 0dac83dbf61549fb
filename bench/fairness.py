"""How fair, and how fast: lag behind the fluid share, order breaks inside a tenant, and CPU per pick.

Every tenant submits the same number of messages, in one random order; then all are dispatched. The four
restarts come after each fifth of the submits, and four more after each fifth of the dispatches.

fairway: turns and V are stored and come back.
fifo: the order of submission.
counter: a level is given at submit, one stride after the last one of its tenant, from an exact counter per
    tenant in memory; what is dispatched goes by level. A restart loses the counters.
sketch: the same with the counters of more than 100 tenants in a count-min sketch (5 rows, 100 cells wide,
    half as wide again, and empty, when too many updates hit a cell that is higher already; at most 10,000).
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator

from fairway.fair.turns import Tables, Turns
from fairway.model.dice import Dice
from fairway.strategy.candidate import Candidate
from fairway.strategy.plan import Plans

PARTS = 5
STRATEGIES = ("Fair", "Random", "OldestFirst", "NewestFirst")
NOTHING: dict[str, str | int] = {}


class Lag:
    """The worst lag behind the fluid share of equal tenants, and order breaks, dispatch by dispatch."""

    def __init__(self, tenants: int, messages: int) -> None:
        self.tenants = tenants
        self.got = array("q", [0]) * tenants
        self.last = array("q", [-1]) * tenants
        self.at = [tenants] + [0] * messages
        self.lowest = self.done = self.breaks = 0
        self.worst = 0.0

    def see(self, tenant: int, id: int) -> None:
        got = self.got[tenant]
        self.got[tenant] = got + 1
        self.at[got] -= 1
        self.at[got + 1] += 1
        while not self.at[self.lowest]:
            self.lowest += 1
        self.done += 1
        self.worst = max(self.worst, self.done / self.tenants - self.lowest)
        if id < self.last[tenant]:
            self.breaks += 1
        self.last[tenant] = id


def arrivals(tenants: int, messages: int) -> array[int]:
    order = array("q", range(tenants)) * messages
    random.Random(5).shuffle(order)
    return order


def grab_into(out: Callable[[int, int], None]) -> Callable[[Candidate, int, bool], None]:
    def grab(run: Candidate, n: int, shuffled: bool) -> None:
        run.ready -= n
        if not run.ready:
            run.eligible = False
        for _ in range(n):
            out(int(run.tenant), run.id)

    return grab


def fairway(order: array[int], lag: Lag, restarts: bool) -> None:
    runs: list[Candidate] = []
    tables = Tables({})
    part = len(order) // PARTS

    def opened(tables: Tables) -> Plans[Candidate]:
        plans = Plans(tables, Dice(1), lambda: runs)
        plans.get("Fair")
        return plans

    def restarted() -> tuple[Tables, Plans[Candidate]]:
        turns = tables.plain
        rows = [(tenant, turn, turns.rest[tenant]) for tenant, turn in turns.turn.items()]
        again = Tables({}, Turns.restore({}, turns.v, rows))
        return again, opened(again)

    plans = opened(tables)
    for id, tenant in enumerate(order):
        run = Candidate(id, str(tenant), metadata=NOTHING)
        run.ready, run.eligible = 1, True
        runs.append(run)
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


RULES = {"fairway": fairway, "fifo": fifo, "counter": by_level(Exact), "sketch": by_level(Sketch)}


def measure_fairness(quick: bool) -> None:
    print("Equal weights: worst lag behind the fluid share (dispatches), order breaks inside a tenant")
    print(f"{'tenants':>9} {'messages':>9} {'restarts':>8}  " + "".join(f"{rule:>20}" for rule in RULES))
    for tenants, messages in ((10**3, 100), (10**5, 10), (10**6, 2)):
        if quick and tenants > 10**5:
            continue
        order = arrivals(tenants, messages)
        for restarts in (False, True):
            cells: list[str] = []
            for rule in RULES.values():
                lag = Lag(tenants, messages)
                rule(order, lag, restarts)
                cells.append(f"{lag.worst:.3f} / {lag.breaks}")
                gc.collect()
            row = f"{tenants:>9} {len(order):>9} {PARTS - 1 if restarts else 0:>8}  "
            print(row + "".join(f"{cell:>20}" for cell in cells), flush=True)


def cpu_per_pick(strategy: str, submissions: int, chunks: int, picks: int) -> tuple[float, float]:
    """Microseconds of CPU per add and per pick, in takes of 100, a tenth as many tenants as submissions."""
    runs: list[Candidate] = []
    tables = Tables({})
    plans = Plans(tables, Dice(7), lambda: runs)
    order = plans.get(strategy)
    for id in range(1, submissions + 1):
        run = Candidate(id, f"tenant {id * 7919 % max(1, submissions // 10)}", metadata=NOTHING)
        run.ready, run.eligible = chunks, True
        tables.plain.appear(run.tenant)
        runs.append(run)
    gc.collect()
    gc.disable()
    start = time.process_time()
    for run in runs:
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


def measure_cpu(quick: bool) -> None:
    print("\nCPU per add and per pick in takes of 100, microseconds: best of 3 (an empty grab included)")
    print(f"{'submissions':>11} {'chunks':>7}  " + "".join(f"{s:>16}" for s in STRATEGIES))
    for submissions in (10**3, 10**4, 10**5):
        for chunks in (10_000, 1):
            cells: list[str] = []
            for strategy in STRATEGIES:
                runs = [
                    cpu_per_pick(strategy, submissions, chunks, 20_000 if quick else 200_000)
                    for _ in range(3)
                ]
                cells.append(f"{min(a for a, _ in runs):.2f} / {min(p for _, p in runs):.2f}")
            print(f"{submissions:>11} {chunks:>7}  " + "".join(f"{cell:>16}" for cell in cells), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="leave out 10^6 tenants; fewer picks")
    quick = parser.parse_args().quick
    measure_fairness(quick)
    measure_cpu(quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
