"""How each cost grows as the work grows by 10: put, reserve + complete, open, memory and file, at growing backlogs.

    python bench/growth.py [--sizes 10000 100000 1000000] [--full] [--quick] [--json FILE]

A backlog of messages of 200 bytes of 1,000 tenants, put in batches of 1,000; then 20,000 of them are reserved and
completed in batches of 100 while the rest waits, after a restart. Below it the same for one submission of so many
chunks, which is one row whatever its size. Each size has a process of its own. CPU time of the whole process, because
cores are shared; `grows by` compares the last size with the first. `--full` goes on to 10^7 messages and 8 GB of disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from figures import Figures, memory_mib, parser

import fairway

PAYLOAD = b"x" * 200
TENANTS = 1_000
TAKEN = 20_000

Costs = dict[str, float]


def cpu_us(work: Callable[[], int]) -> float:
    """CPU microseconds for each of what some work did."""
    start = time.process_time()
    done = work()
    return (time.process_time() - start) / max(1, done) * 1e6


def file_mib(path: Path) -> float:
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*")) / 2**20


def taking(q: fairway.Queue, many: int, batch: int = 100) -> Callable[[], int]:
    def take() -> int:
        done = 0
        while done < many and (leases := q.reserve(max=batch)):
            q.complete(leases)
            done += len(leases)
        return done

    return take


def messages(folder: Path, size: int) -> Costs:
    """A backlog of so many messages."""
    path, found = folder / f"m{size}.db", Costs()
    batch = [{"payload": PAYLOAD, "tenant": ""} for _ in range(1_000)]

    def put() -> int:
        for first in range(0, size, len(batch)):
            for place, one in enumerate(batch):
                one["tenant"] = f"t{(first + place) % TENANTS}"
            q.put_many(batch[: size - first])
        return size

    empty = memory_mib()
    with fairway.open(path) as q:
        found["put, CPU us a message"] = cpu_us(put)
        found["memory, MiB"] = memory_mib() - empty
    found["file, MiB"] = file_mib(path)
    start, cpu = time.perf_counter(), time.process_time()
    with fairway.open(path) as q:
        found["open, s"] = time.perf_counter() - start
        found["open, s of CPU"] = time.process_time() - cpu
        found["reserve + complete, CPU us a message"] = cpu_us(taking(q, min(TAKEN, size)))
    return found


def chunks(folder: Path, size: int) -> Costs:
    """One submission of so many chunks."""
    path, found = folder / f"c{size}.db", Costs()
    with fairway.open(path) as q:
        q.submit(chunks=10, objects="file:///nowhere/first", tenant="first")

        def submit() -> int:
            q.submit(chunks=size, objects="file:///nowhere/x", tenant="t")
            return 1

        found["submit, CPU us"] = cpu_us(submit)
    found["file, MiB"] = file_mib(path)
    start = time.perf_counter()
    with fairway.open(path) as q:
        found["open, s"] = time.perf_counter() - start
        found["reserve + complete, CPU us a chunk"] = cpu_us(taking(q, min(TAKEN, size)))
    return found


def table(figures: Figures, title: str, costs: Callable[[Path, int], Costs], sizes: list[int]) -> None:
    found: list[Costs] = []
    for size in sizes:
        alone = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        with tempfile.TemporaryDirectory() as name, alone as pool:
            found.append(pool.submit(costs, Path(name), size).result())
    told = figures.table(title, "what", *(f"{size:,}" for size in sizes), "work grows by", "it grows by")
    for what in found[0]:
        values = [one[what] for one in found]
        told.add(what, *values, f"{sizes[-1] // sizes[0]:,} x", f"{values[-1] / max(values[0], 1e-9):,.2f} x")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--full", action="store_true", help="10^7 messages too")
    given = options.parse_args()
    sizes = [*given.sizes, 10_000_000] if given.full else given.sizes
    wide = [10_000, 1_000_000, 1_000_000_000]
    if given.quick:
        sizes, wide = [1_000], [1_000_000_000]
    figures = Figures("growth", given)
    table(figures, "A backlog of so many messages", messages, sizes)
    table(figures, "One submission of so many chunks", chunks, wide)
    figures.end()


if __name__ == "__main__":
    main()
