"""Implicit chunks at scale: 10^5 submissions of 10^4 chunks are 10^9 chunks and 10^5 rows.

    python bench/scale.py [--submissions 100000] [--chunks 10000] [--json FILE]

Prints how long submit_many takes, what the file and the memory grow by, how long a reserve of 100 takes under each
strategy (p50, p99), how long opening takes after a restart; and what one submission of 10^9 chunks costs beside
one of 10. The peer is arithmetic: a row per chunk at the file's own bytes per submission.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

import fairway
from fairway import Queue

STRATEGIES = ("Fair", "OldestFirst", "NewestFirst", "Random")


def memory_mib() -> float:
    """Resident memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def one_submission(folder: Path) -> dict[str, float]:
    """What a single submission costs, whatever its size: microseconds, as the median of many."""
    costs: dict[str, float] = {}
    with fairway.open(folder / "one.db") as q:
        for chunks in (10, 1_000_000_000, 10, 1_000_000_000):
            times: list[float] = []
            for i in range(200):
                start = time.perf_counter()
                q.submit(chunks=chunks, objects="file:///nowhere", tenant=f"t{i % 10}")
                times.append((time.perf_counter() - start) * 1e6)
            costs[f"{chunks:,} chunks"] = statistics.median(times)
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=100_000)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    report: dict[str, float] = {}

    def tell(name: str, value: float, unit: str) -> None:
        report[f"{name}, {unit}"] = round(value, 3)
        print(f"{name:45} {value:12,.2f} {unit}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "scale.db"
        before = memory_mib()
        offers = [
            {"chunks": given.chunks, "objects": f"file:///data/{i}", "tenant": f"t{i % given.tenants}"}
            for i in range(given.submissions)
        ]
        offered = memory_mib()
        with fairway.open(path) as q:
            start = time.perf_counter()
            q.submit_many(offers)
            tell(f"submit_many of {given.submissions:,}", time.perf_counter() - start, "s")
            tell("file", file_mib(path), "MiB")
            tell("memory of the queue", memory_mib() - offered, "MiB")
            for strategy in STRATEGIES:
                p50, p99 = reserve_times(q, strategy, given.calls)
                tell(f"reserve of 100, {strategy}, p50", p50, "ms")
                tell(f"reserve of 100, {strategy}, p99", p99, "ms")
            tell("memory of the queue, four plans", memory_mib() - offered, "MiB")
        del offers
        start = time.perf_counter()
        with fairway.open(path) as q:
            tell("open after a restart", time.perf_counter() - start, "s")
            stats = q.stats()
            left = given.submissions * given.chunks - 4 * given.calls * 100
            assert stats.chunks_waiting == left, (stats, left)
        tell("chunks", given.submissions * given.chunks, "")
        tell("memory at the start", before, "MiB")
        for size, cost in one_submission(Path(name)).items():
            tell(f"one submission of {size}", cost, "us")
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
