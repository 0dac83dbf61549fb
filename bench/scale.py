"""Implicit chunks at scale: 10^5 submissions of 10^4 chunks are 10^9 chunks and 10^5 rows.

    python bench/scale.py [--submissions 100000] [--chunks 10000] [--quick] [--json FILE]

Tells how long submit_many takes, what the file and the memory grow by, how long a reserve of 100 takes under each
strategy (p50, p99), how long opening takes after a restart; and what one submission of 10^9 chunks costs beside
one of 10. The peer is arithmetic: a row per chunk at the file's own bytes per submission.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from figures import Figures, memory_mib, parser

import fairway
from fairway import Queue

STRATEGIES = ("Fair", "OldestFirst", "NewestFirst", "Random")


def file_mib(path: Path) -> float:
    """The file with its log."""
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*")) / 2**20


def reserve_times(q: Queue, strategy: str, calls: int) -> tuple[float, float]:
    """Milliseconds of a reserve of 100, p50 and p99."""
    q.release(q.reserve(max=100, strategy=strategy))  # makes the plan
    times: list[float] = []
    for _ in range(calls):
        start = time.perf_counter()
        leases = q.reserve(max=100, strategy=strategy)
        times.append((time.perf_counter() - start) * 1000)
        q.complete(leases)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def one_submission(folder: Path, calls: int) -> dict[str, float]:
    """What a single submission costs, whatever its size: microseconds, as the median of many."""
    costs: dict[str, float] = {}
    with fairway.open(folder / "one.db") as q:
        for chunks in (10, 1_000_000_000, 10, 1_000_000_000):
            times: list[float] = []
            for i in range(calls):
                start = time.perf_counter()
                q.submit(chunks=chunks, objects="file:///nowhere", tenant=f"t{i % 10}")
                times.append((time.perf_counter() - start) * 1e6)
            costs[f"{chunks:,} chunks"] = statistics.median(times)
    return costs


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--submissions", type=int, default=100_000)
    options.add_argument("--chunks", type=int, default=10_000)
    options.add_argument("--tenants", type=int, default=1_000)
    options.add_argument("--calls", type=int, default=200)
    given = options.parse_args()
    if given.quick:
        given.submissions, given.calls = 1_000, 5
    figures = Figures("scale", given)
    table = figures.table(
        f"{given.submissions:,} submissions of {given.chunks:,} chunks, {given.tenants:,} tenants",
        *("what", "figure", "unit"),
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "scale.db"
        offers = [
            {"chunks": given.chunks, "objects": f"file:///data/{i}", "tenant": f"t{i % given.tenants}"}
            for i in range(given.submissions)
        ]
        offered = memory_mib()
        with fairway.open(path) as q:
            start = time.perf_counter()
            q.submit_many(offers)
            table.add(f"submit_many of {given.submissions:,}", time.perf_counter() - start, "s")
            size = file_mib(path)
            table.add("file", size, "MiB")
            table.add("the same with a row for each chunk, by arithmetic", size * given.chunks / 1024, "GiB")
            table.add("memory of the queue", memory_mib() - offered, "MiB")
            for strategy in STRATEGIES:
                p50, p99 = reserve_times(q, strategy, given.calls)
                table.add(f"reserve of 100, {strategy}, p50", p50, "ms")
                table.add(f"reserve of 100, {strategy}, p99", p99, "ms")
            table.add("memory of the queue, four strategies in use", memory_mib() - offered, "MiB")
        del offers
        start = time.perf_counter()
        with fairway.open(path) as q:
            table.add("open after a restart", time.perf_counter() - start, "s")
            left = given.submissions * given.chunks - 4 * given.calls * 100
            assert q.stats().chunks_waiting == left, (q.stats(), left)
        for size, cost in one_submission(Path(name), given.calls).items():
            table.add(f"one submission of {size}, p50", cost / 1000, "ms")
    figures.end()


if __name__ == "__main__":
    main()
