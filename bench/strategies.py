"""What strategies cost: reserve(100) and complete(100) in the engine, for every block, deep nestings, hostile cases.

    python bench/strategies.py [--sizes 1000 10000 100000] [--calls 300] [--only TEXT] [--json FILE]

Submissions of 10^4 chunks, about 500 chunks in flight. Times are CPU time of the calling thread, because these machines
are noisy; the store is left out (see embedded.py for it). `growth` is p99 at the largest size over p99 at the smallest.
Memory is what a plan adds to the process when it is made, per submission.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from fairway.engine.commands import Call, Complete, Part, Reserve, Reserved, Submit
from fairway.engine.engine import Engine
from fairway.engine.state import Start
from fairway.model.submission import Described, Offer
from fairway.store.memory import MemoryStore

CHUNKS, BATCH, HELD = 10_000, 100, 5  # HELD reservations are open at a time
NOW = 1_800_000_000.0
REGIONS = 50

Make = Callable[[int, int], Described]  # (which, how many in all) -> a submission


def usual(i: int, n: int) -> Described:
    """A tenth as many tenants, 50 regions, a tenth of all in the fast lane."""
    lane = "preview" if i % 10 == 0 else "normal"
    metadata: dict[str, str | int] = {"region": f"r{i * 7 % REGIONS}", "mode": lane}
    return Described(f"t{i % max(1, n // 10)}", CHUNKS, metadata, priority=i % 3)


def whale(i: int, n: int) -> Described:
    """Nine tenths belong to one tenant, which is saturated."""
    made = usual(i, n)
    return Described("whale", CHUNKS, made.metadata) if i % 10 else made


def own_value(i: int, n: int) -> Described:
    """Every submission has its own value."""
    return Described(f"t{i % max(1, n // 10)}", CHUNKS, {"region": i, "mode": "normal"})


def own_tenant(i: int, n: int) -> Described:
    return Described(f"t{i}", CHUNKS, {"region": "only", "mode": "normal"})


def one_tenant(i: int, n: int) -> Described:
    """One tenant, each submission with a region of its own."""
    return Described("one", CHUNKS, {"region": i, "mode": "normal"})


def grid(i: int, n: int) -> Described:
    """As many tenants as regions, every pair once."""
    side = max(1, round(n**0.5))
    return Described(f"t{i % side}", CHUNKS, {"region": f"r{i // side}", "mode": "normal"})


BLOCKS: list[tuple[str, str, Make]] = [
    ("block", text, usual)
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
DEEP: list[tuple[str, str, Make]] = [
    ("deep", text, usual)
    for text in (
        'PreferDistinct("region", 2, MaxSimultaneous("tenant", 5, SelectOnly("mode", "normal", Fair)))',
        'OrElse(SelectOnly("mode", "preview", MaxSimultaneous("tenant", 1, CustomPriority)),'
        ' PreferDistinct("tenant", 2, Random))',
        'MaxSimultaneous("tenant", 5, PreferDistinct("mode", 200,'
        ' OrElse(SelectOnly("mode", "none", Fair), OldestFirst)))',
    )
]
HOSTILE: list[tuple[str, str, Make]] = [
    ("whale 90 %", 'MaxSimultaneous("tenant", 5, Fair)', whale),
    ("whale 90 %", 'PreferDistinct("tenant", 1, OldestFirst)', whale),
    ("own values", 'MaxSimultaneous("region", 3, Fair)', own_value),
    ("own values", 'PreferDistinct("region", 1, Random)', own_value),
    ("a tenant each", 'MaxSimultaneous("tenant", 5, Fair)', own_tenant),
    ("one tenant, own regions", 'MaxSimultaneous("region", 3, Fair)', one_tenant),
]
CROSSING: list[tuple[str, str, Make]] = [
    ("50 regions", 'MaxSimultaneous("region", 3, Fair)', usual),
    ("grid", 'MaxSimultaneous("region", 3, MaxSimultaneous("tenant", 3, Fair))', grid),
    ("grid", 'PreferDistinct("region", 2, MaxSimultaneous("tenant", 5, Fair))', grid),
    ("flapping value", 'MaxSimultaneous("region", 1, Fair)', own_tenant),
]


class Engines:
    """An engine filled once for each shape and size."""

    def __init__(self, make: Make, n: int) -> None:
        store = MemoryStore.open("bench")
        self.engine = Engine.load(store, store.take_over(), Start("bench", 1, 1, NOW))
        self.now = NOW
        for first in range(0, n, 10_000):
            self.call(Submit([Offer(make(i, n)) for i in range(first, min(n, first + 10_000))]))
        gc.collect()
        gc.freeze()

    def call(self, command: Submit | Reserve | Complete) -> object:
        self.now += 0.001
        draft = self.engine.execute(Call(command), self.now)
        closing = self.engine.close_group(self.now)
        if closing is not None:
            self.engine.stored(closing)
        assert draft.error is None, draft.error
        return draft.reply


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(engines: Engines, n: int, text: str, calls: int) -> dict[str, float]:
    """CPU milliseconds of a reserve, and microseconds per chunk of reserve and complete together."""
    before, start = resident_bytes(), time.thread_time()
    engines.engine.state.plans.get(text)
    built, memory = time.thread_time() - start, resident_bytes() - before
    open_: deque[Reserved] = deque()
    taken: list[float] = []
    spent = chunks = 0.0
    while len(taken) < calls:
        start = time.thread_time()
        reply = engines.call(Reserve(BATCH, text, 3600.0))
        assert isinstance(reply, Reserved)
        taken.append(time.thread_time() - start)
        if reply.spans:
            open_.append(reply)
        chunks += sum(span[2] for span in reply.spans)
        if len(open_) >= HELD or not reply.spans:
            done = open_.popleft()
            spans = [(id, first, count) for id, first, count, _ in done.spans]
            engines.call(Complete([Part(done.epoch, done.count, done.seal, spans)]))
        spent += time.thread_time() - start
    while open_:
        done = open_.popleft()
        spans = [(id, first, count) for id, first, count, _ in done.spans]
        engines.call(Complete([Part(done.epoch, done.count, done.seal, spans)]))
    taken.sort()
    return {
        "p50_ms": taken[len(taken) // 2] * 1e3,
        "p99_ms": taken[len(taken) * 99 // 100] * 1e3,
        "chunk_us": spent / max(1, chunks) * 1e6,
        "build_s": built,
        "plan_bytes": memory / n,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--only", default="", help="cases whose name or strategy has this text")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cases = [case for case in BLOCKS + DEEP + HOSTILE + CROSSING if given.only in f"{case[0]} {case[1]}"]
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for n in given.sizes:
        for make in dict.fromkeys(case[2] for case in cases):
            engines = Engines(make, n)
            for name, text, shape in cases:
                if shape is make:
                    found.setdefault((name, text), []).append(measure(engines, n, text, given.calls))
            gc.unfreeze()
    print(f"reserve({BATCH}), CPU ms p50 / p99 at {' / '.join(f'{n:,}' for n in given.sizes)} submissions")
    for (name, text), rows in found.items():
        times = "   ".join(f"{row['p50_ms']:6.2f} /{row['p99_ms']:7.2f}" for row in rows)
        growth = rows[-1]["p99_ms"] / rows[0]["p99_ms"]
        last = rows[-1]
        print(f"{name}: {text}")
        print(
            f"    {times}   growth {growth:5.1f} x   {last['chunk_us']:7.1f} us/chunk"
            f"   made in {last['build_s']:.2f} s, {last['plan_bytes']:.0f} B/submission"
        )
    if given.json:
        report = {
            "python": platform.python_version(),
            "sizes": given.sizes,
            "cases": [{"case": name, "strategy": text, "at": rows} for (name, text), rows in found.items()],
        }
        given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
