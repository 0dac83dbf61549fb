"""What strategies cost: reserve(100) and complete(100) in the engine, for every block, deep nestings, hostile cases.

    python bench/strategies.py [--sizes 1000 10000 100000] [--calls 300] [--rounds 3] [--only TEXT] [--random-completes]
                               [--pauses | --no-pauses] [--quick] [--json FILE]

Submissions of 10^4 chunks, about 500 chunks in flight. Tenant, region and mode of a submission are drawn apart from one
another, by a seeded generator, so that they cross; a case where each tenant has one region says so. Reservations are
completed whole, the oldest first; with `random completes` as many chunks are, drawn from all that are out.
Times are CPU time of the calling thread, as these machines are noisy; the store is left out (embedded.py has it). Each
percentile, and the making of a plan, is the best of the rounds, `worst` the longest of all reserves; `growth` is p99 at
the largest size over p99 at the smallest. Memory is what tracemalloc says that a plan keeps, per submission.
`slice` is the longest in which it is made: nobody else is served then. A walk that only looks at as many runs as a
reserve hands out says what of the growth is the memory's. At the end, on a real queue in a file, `put` is timed on the
wall while plans are made, and as long again while none is.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

from figures import Figures, parser
from figures.pauses import pauses
from figures.walk import walk

from fairway.engine.commands import Call, Complete, Explain, Part, Reserve, Reserved, Submit
from fairway.engine.engine import Engine
from fairway.engine.state import Start
from fairway.model.dice import Dice
from fairway.model.submission import Described, Offer
from fairway.store.memory import MemoryStore
from fairway.strategy.plan import Plans

CHUNKS, BATCH, HELD = 10_000, 100, 5  # HELD reservations are open at a time
NOW = 1_800_000_000.0
REGIONS, SMALL_MIN, TOLD = 50, 600, ("tenant", "metadata", "priority")  # SMALL_MIN: more than are in flight

Make = Callable[[random.Random, int, int], Described]  # (chance, which, how many in all) -> a submission


def usual(rng: random.Random, i: int, n: int) -> Described:
    """A tenth as many tenants, 50 regions, a tenth of all in the fast lane, each drawn apart."""
    tenant, region = rng.randrange(max(1, n // 10)), rng.randrange(REGIONS)
    mode = "preview" if rng.random() < 0.1 else "normal"
    return Described(f"t{tenant}", CHUNKS, {"region": f"r{region}", "mode": mode}, priority=rng.randrange(3))


def apart(rng: random.Random, i: int, n: int) -> Described:
    """As usual, but all submissions of a tenant have one region and one mode: one cell a tenant, nothing crosses."""
    made = usual(rng, i, n)
    tenant = int(made.tenant[1:])
    mode = "preview" if tenant % 10 == 0 else "normal"
    at = f"r{tenant % REGIONS}"
    return Described(made.tenant, CHUNKS, {"region": at, "mode": mode}, priority=made.priority)


def whale(rng: random.Random, i: int, n: int) -> Described:
    """Nine tenths belong to one tenant, which is saturated; every other submission has a tenant of its own."""
    made = usual(rng, i, n)
    return Described("whale" if i % 10 else f"t{i}", CHUNKS, made.metadata)


def whale_beside_many(rng: random.Random, i: int, n: int) -> Described:
    """The same with more small tenants than chunks in flight, at every size; so it is less than nine tenths at 10^3."""
    made = whale(rng, i, n)
    return Described(f"t{i}", CHUNKS, made.metadata) if i < SMALL_MIN else made


def own_value(rng: random.Random, i: int, n: int) -> Described:
    """Every submission has its own value."""
    return Described(f"t{rng.randrange(max(1, n // 10))}", CHUNKS, {"region": i, "mode": "normal"})


def own_tenant(rng: random.Random, i: int, n: int) -> Described:
    """A tenant for each submission, all in one region."""
    return Described(f"t{i}", CHUNKS, {"region": "only", "mode": "normal"})


def one_tenant(rng: random.Random, i: int, n: int) -> Described:
    """One tenant, each submission with a region of its own."""
    return Described("one", CHUNKS, {"region": i, "mode": "normal"})


def grid(rng: random.Random, i: int, n: int) -> Described:
    """As many tenants as regions, every pair once."""
    side = max(1, round(n**0.5))
    return Described(f"t{i % side}", CHUNKS, {"region": f"r{i // side}", "mode": "normal"})


class Case(NamedTuple):
    """A strategy over one kind of submissions."""

    name: str
    text: str
    make: Make
    batch: int = BATCH
    at_random: bool = False  # chunks are completed in any order

    @property
    def label(self) -> str:
        """What a reader has to know beside the strategy."""
        extra = [f"reserve({self.batch})"] * (self.batch != BATCH) + ["random completes"] * self.at_random
        return ", ".join([self.name] * (self.name != "block") + extra)


BLOCKS: list[Case] = [
    Case("block", text, usual)
    for text in (
        "Fair",
        "OldestFirst",
        "NewestFirst",
        "Random",
        "CustomPriority",
        'SelectOnly("mode", "preview", Random)',
        'PreferDistinct("tenant", 1, OldestFirst)',
        'MaxSimultaneous("tenant", 5, Fair)',
        'OrElse(SelectOnly("mode", "none", Random), MaxSimultaneous("tenant", 5, Fair))',
    )
]
BY_REGION = 'PreferDistinct("region", 2, MaxSimultaneous("tenant", 5, SelectOnly("mode", "normal", Fair)))'
NONE = 'OrElse(SelectOnly("mode", "none", Fair), OldestFirst)'
BY_MODE = f'MaxSimultaneous("tenant", 5, PreferDistinct("mode", 200, {NONE}))'
BY_TENANT = (
    'OrElse(SelectOnly("mode", "preview", MaxSimultaneous("tenant", 1, CustomPriority)),'
    ' PreferDistinct("tenant", 2, Random))'
)
DEEP: list[Case] = [
    Case("deep, one region a tenant", BY_REGION, apart),
    Case("deep", BY_TENANT, usual),
    Case("deep, one mode a tenant", BY_MODE, apart),
]
HOSTILE: list[Case] = [
    Case("50 regions, one a tenant", 'MaxSimultaneous("region", 3, Fair)', apart),
    Case("whale 90 %", 'MaxSimultaneous("tenant", 5, Fair)', whale),
    Case("whale 90 %", 'PreferDistinct("tenant", 1, OldestFirst)', whale, batch=BATCH // 10),
    Case("whale, 600 small tenants or more", 'PreferDistinct("tenant", 1, OldestFirst)', whale_beside_many),
    Case("own values", 'MaxSimultaneous("region", 3, Fair)', own_value),
    Case("own values", 'PreferDistinct("region", 1, Random)', own_value),
    Case("a tenant each", 'MaxSimultaneous("tenant", 5, Fair)', own_tenant),
    Case("one tenant, own regions", 'MaxSimultaneous("region", 3, Fair)', one_tenant),
]
CROSSING: list[Case] = [
    Case(f"crossing: {name}", text, make, at_random=at_random)
    for name, text, make in (
        ("50 regions", 'MaxSimultaneous("region", 3, Fair)', usual),
        ("deep, 50 regions", BY_REGION, usual),
        ("deep, 2 modes", BY_MODE, usual),
        ("grid", 'MaxSimultaneous("region", 3, MaxSimultaneous("tenant", 3, Fair))', grid),
        ("grid", 'PreferDistinct("region", 2, MaxSimultaneous("tenant", 5, Fair))', grid),
    )
    for at_random in (False, True)
] + [Case("flapping value", 'MaxSimultaneous("region", 1, Fair)', own_tenant)]


class Engines:
    """An engine filled once for each shape and size."""

    def __init__(self, make: Make, n: int) -> None:
        store = MemoryStore.open("bench")
        self.engine = Engine.load(store, store.take_over(), Start("bench", 1, 1, NOW))
        self.now = NOW
        rng = random.Random(n)
        for first in range(0, n, 10_000):
            self.call(Submit([Offer(make(rng, i, n)) for i in range(first, min(n, first + 10_000))]))
        gc.collect()
        gc.freeze()

    def call(self, command: Submit | Reserve | Complete | Explain) -> object:
        self.now += 0.001
        draft = self.engine.execute(Call(command), self.now)
        closing = self.engine.close_group(self.now)
        if closing is not None:
            self.engine.stored(closing)
        assert draft.error is None, draft.error
        return draft.reply


def plan_bytes(engine: Engine, text: str) -> int:
    """What a plan of its own over the same submissions allocates and keeps."""
    state = engine.state
    plans = Plans(deepcopy(state.tables), Dice(1), state.runs, lambda run: len(run.out))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        plans.get(text)
        plans.finish()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def build(engine: Engine, text: str) -> tuple[float, float]:
    """CPU seconds of making a plan: all of it, and the longest slice."""
    plans, slices = engine.state.plans, list[float]()
    gc.disable()  # as the runtime does
    while not slices or plans.building:
        start = time.thread_time()
        plans.build() if slices else plans.get(text)
        slices.append(time.thread_time() - start)
    gc.freeze()
    gc.enable()
    return sum(slices), max(slices)


class Leases:
    """What is out, and which of it is completed next."""

    def __init__(self, case: Case) -> None:
        self._case, self._rng = case, random.Random(case.text)
        self._whole: list[list[Part]] = []
        self._single: list[Part] = []

    def take(self, reply: Reserved) -> int:
        """A reservation came; gives how many chunks it has."""
        spans = [(id, first, count) for id, first, count, _ in reply.spans]
        if self._case.at_random:
            chunks = [(id, at, 1) for id, first, count in spans for at in range(first, first + count)]
            self._single += [Part(reply.epoch, reply.count, reply.seal, [chunk]) for chunk in chunks]
        elif spans:
            self._whole.append([Part(reply.epoch, reply.count, reply.seal, spans)])
        return sum(count for _, _, count in spans)

    def give(self, all_: bool = False) -> list[Part]:
        """What is to be completed now: nothing before enough is out."""
        if self._case.at_random:
            if not all_ and len(self._single) < HELD * self._case.batch:
                return []
            self._rng.shuffle(self._single)
            return [self._single.pop() for _ in range(min(self._case.batch, len(self._single)))]
        return self._whole.pop(0) if self._whole and (all_ or len(self._whole) >= HELD) else []


def measure(engines: Engines, n: int, case: Case, calls: int, rounds: int) -> dict[str, float]:
    """CPU milliseconds of a reserve, alone and with the complete after it, and microseconds per chunk of both."""
    plans = engines.engine.state.plans
    builds = [build(engines.engine, case.text)]
    while len(builds) < rounds:
        plans._drop(plans.get(case.text).tiers)
        builds.append(build(engines.engine, case.text))
    built, longest = map(min, zip(*builds, strict=True))
    found: list[dict[str, float]] = []
    leases = Leases(case)
    for _ in range(rounds):
        alone, both, chunks = list[float](), list[float](), 0
        while len(alone) < calls:
            start = time.thread_time()
            reply = engines.call(Reserve(case.batch, case.text, 3600.0))
            reserved = time.thread_time() - start
            assert isinstance(reply, Reserved)
            got = leases.take(reply)
            parts = leases.give(all_=got < case.batch)
            start = time.thread_time()
            if parts:
                engines.call(Complete(parts))
            alone.append(reserved)
            both.append(reserved + time.thread_time() - start)
            chunks += got
        found.append(_percentiles(alone, both, chunks))
    while parts := leases.give(all_=True):
        engines.call(Complete(parts))
    start = time.thread_time()
    engines.call(Explain(case.text, 20))
    told = time.thread_time() - start
    plans._drop(plans.get(case.text).tiers)  # the next strategy is measured alone, too
    memory = plan_bytes(engines.engine, case.text)
    best = {name: min(one[name] for one in found) for name in found[0]}
    best["worst_ms"] = max(one["worst_ms"] for one in found)
    made = {"build_s": built, "slice_ms": longest * 1e3, "plan_bytes": memory / n}
    return {**best, **made, "explain_ms": told * 1e3}


def _percentiles(alone: list[float], both: list[float], chunks: int) -> dict[str, float]:
    spent, spent_both = sum(alone), sum(both)
    alone, both = sorted(alone), sorted(both)
    return {
        "p50_ms": alone[len(alone) // 2] * 1e3,
        "p99_ms": alone[len(alone) * 99 // 100] * 1e3,
        "worst_ms": alone[-1] * 1e3,
        "both_p50_ms": both[len(both) // 2] * 1e3,
        "both_p99_ms": both[len(both) * 99 // 100] * 1e3,
        "chunk_us": spent / max(1, chunks) * 1e6,
        "both_chunk_us": spent_both / max(1, chunks) * 1e6,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--calls", type=int, default=300)
    options.add_argument("--rounds", type=int, default=3, help="of so many calls each; the best counts")
    options.add_argument("--only", default="", help="cases whose name or strategy has this text")
    options.add_argument(
        "--random-completes", action="store_true", help="complete in any order, in every case"
    )
    options.add_argument("--no-pauses", action="store_true", help="do not time `put` while plans are made")
    options.add_argument("--pauses", action="store_true", help="time `put` meanwhile, and nothing else")
    given = options.parse_args()
    if given.quick:
        given.sizes, given.calls, given.rounds = [100, 200], 10, 1
    cases = [case for case in BLOCKS + DEEP + HOSTILE + CROSSING if given.only in f"{case.label} {case.text}"]
    if given.random_completes:
        cases = list(dict.fromkeys(case._replace(at_random=True) for case in cases))
    figures = Figures("strategies", given)
    if not given.pauses:
        costs(figures, cases, given.sizes, given.calls, given.rounds)
    plans = list(dict.fromkeys(case.text for case in cases if case in BLOCKS + DEEP))
    if not given.no_pauses:
        longest(figures, given.sizes[-1], plans[:1] if given.quick else plans)
    figures.end()


def costs(figures: Figures, cases: list[Case], sizes: list[int], calls: int, rounds: int) -> None:
    """What each case costs at every size."""
    found: dict[Case, list[dict[str, float]]] = {case: [] for case in cases}
    walks: list[tuple[float, float]] = []
    for n in sizes:
        for make in dict.fromkeys(case.make for case in cases):
            engines = Engines(make, n)
            for case in cases:
                if case.make is make:
                    found[case].append(measure(engines, n, case, calls, rounds))
            if make is cases[0].make:
                walks.append(walk(engines.engine.state.runs, BATCH, calls, rounds))
            gc.unfreeze()
    columns = ("strategy", "case", *(f"{n:,}" for n in sizes), "growth of p99")
    alone = figures.table(
        f"reserve({BATCH}) in the engine, CPU milliseconds p50 / p99 by submissions; the rest at the largest size",
        *(*columns, "worst of all", "us/chunk"),
    )
    for case, rows in found.items():
        alone.add(*_row(case, rows, ""), rows[-1]["worst_ms"], rows[-1]["chunk_us"])
    both = figures.table(
        f"reserve({BATCH}) and complete({BATCH}), CPU milliseconds p50 / p99 by submissions",
        *(*columns, "us/chunk at the largest"),
    )
    for case, rows in found.items():
        both.add(*_row(case, rows, "both_"), rows[-1]["both_chunk_us"])
    walked = figures.table(
        f"A walk over {BATCH} runs and their tenants in any order, CPU milliseconds p50 / p99 by submissions",
        *(*(f"{n:,}" for n in sizes), "growth of p50", "growth of p99"),
    )
    walked.add(
        *(f"{p50:.3f} / {p99:.3f}" for p50, p99 in walks),
        *(f"{last / first:.1f} x" for first, last in zip(walks[0], walks[-1], strict=True)),
    )
    made = figures.table(
        f"Making the plan at {sizes[-1]:,} submissions, CPU time",
        *("strategy", "case", "made in s", "longest slice ms", "bytes a submission", "explain ms"),
    )
    for case, rows in found.items():
        four = (rows[-1][name] for name in ("build_s", "slice_ms", "plan_bytes", "explain_ms"))
        if not case.at_random or case._replace(at_random=False) not in found:
            made.add(f"`{case.text}`", case.label, *four)


def _row(case: Case, rows: list[dict[str, float]], which: str) -> list[str]:
    pairs = [f"{row[which + 'p50_ms']:.2f} / {row[which + 'p99_ms']:.2f}" for row in rows]
    growth = rows[-1][which + "p99_ms"] / rows[0][which + "p99_ms"]
    return [f"`{case.text}`", case.label, *pairs, f"{growth:.1f} x"]


def longest(figures: Figures, n: int, plans: list[str]) -> None:
    """How long `put` waits while plans are made."""
    table = figures.table(
        f"The longest `put` while a plan is made at {n:,} submissions, milliseconds by the clock",
        *("strategy", "made in s", "longest", "puts meanwhile", "longest while none is made", "puts then"),
    )
    rng = random.Random(n)
    offers = [{name: getattr(one, name) for name in TOLD} for one in (usual(rng, i, n) for i in range(n))]
    for text, one in pauses([{"chunks": CHUNKS, **offer} for offer in offers], plans).items():
        during, alone = (int(one["puts"]), int(one["puts_alone"]))
        table.add(f"`{text}`", one["made_s"], one["longest_ms"], during, one["longest_alone_ms"], alone)


if __name__ == "__main__":
    main()
