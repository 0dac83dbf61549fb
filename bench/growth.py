"""How each cost grows as the work grows by 10: put, reserve + complete, open, memory and file, at growing backlogs.

    python bench/growth.py [--sizes 10000 100000 1000000] [--wide 10000 ... 1000000000] [--tenants 10 100 1000]
                           [--full] [--quick] [--json FILE]

A backlog of messages of 200 bytes of 1,000 tenants, put in batches of 1,000; then 20,000 of them are reserved and
completed in batches of 100 while the rest waits, after a restart. Below it the same for one submission of so many
chunks, which is one row whatever its size; and for so many tenants that take turns, each with a submission of 1,000
chunks of 200 bytes, which get a result each. Each is done in the process that hosts the queue, in one that is attached
to a host, and through a server; there CPU is that of both sides, and `open` begins with the start of the other process.
Each size has a process of its own. CPU time, because cores are shared; `grows by` compares the last size with the
first, and `for each 10 times` each size with the one before it. `--full` goes on to 10^7 messages and 8 GB of disk.
"""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from figures import Figures, memory_mib, parser
from processes import Host
from served.server import started

import fairway

PAYLOAD = b"x" * 200
TENANTS = 1_000
TAKEN = 20_000
EACH = 1_000  # chunks of a tenant's submission
SUBMITS = 100  # one alone is over before a server's CPU time has moved
OBJECTS = "file:///nowhere"

Costs = dict[str, float]
Measure = Callable[[Path, int, str], Costs]
Cpu = Callable[[], float]  # the CPU seconds of all processes of a way


@contextmanager
def embedded(path: Path) -> Iterator[tuple[fairway.Queue, Cpu]]:
    with fairway.open(path) as q:
        yield q, time.process_time


@contextmanager
def attached(path: Path) -> Iterator[tuple[fairway.Queue, Cpu]]:
    host = Host(path)
    try:
        with fairway.open(path, host=False) as q:
            yield q, lambda: time.process_time() + host.cpu_seconds()
    finally:
        host.end()


@contextmanager
def served(path: Path) -> Iterator[tuple[fairway.Queue, Cpu]]:
    os.environ["FAIRWAY_OBJECTS"] = OBJECTS
    server = asyncio.run(started(path, 0))
    try:
        with fairway.open(f"http://127.0.0.1:{server.port}") as q:
            assert isinstance(q, fairway.Queue)
            yield q, lambda: time.process_time() + server.cpu_seconds()
    finally:
        server.end()


WAYS = {"embedded": embedded, "attached to a host": attached, "through a server": served}


def cpu_us(work: Callable[[], int], cpu_seconds: Cpu) -> float:
    """CPU microseconds for each of what some work did."""
    start = cpu_seconds()
    done = work()
    return (cpu_seconds() - start) / max(1, done) * 1e6


def file_mib(path: Path) -> float:
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*")) / 2**20


def taking(q: fairway.Queue, many: int, batch: int = 100, result: bytes | None = None) -> Callable[[], int]:
    def take() -> int:
        done = 0
        while done < many and (leases := q.reserve(max=batch)):
            q.complete(leases, results=[result] * len(leases) if result else None)
            done += len(leases)
        return done

    return take


def messages(folder: Path, size: int, way: str) -> Costs:
    """A backlog of so many messages."""
    path, found = folder / "m.db", Costs()
    batch = [{"payload": PAYLOAD, "tenant": ""} for _ in range(1_000)]

    empty = memory_mib()
    with WAYS[way](path) as (q, cpu_seconds):

        def put() -> int:
            for first in range(0, size, len(batch)):
                for place, one in enumerate(batch):
                    one["tenant"] = f"t{(first + place) % TENANTS}"
                q.put_many(batch[: size - first])
            return size

        found["put, CPU us a message"] = cpu_us(put, cpu_seconds)
        if way == "embedded":
            found["memory, MiB"] = memory_mib() - empty
    if way == "embedded":
        found["file, MiB"] = file_mib(path)
    start, cpu = time.perf_counter(), time.process_time()
    with WAYS[way](path) as (q, cpu_seconds):
        found["open, s"] = time.perf_counter() - start
        if way == "embedded":
            found["open, s of CPU"] = time.process_time() - cpu
        begin = time.perf_counter()
        taking(q, 1, 1)()
        found["the first reserve + complete after it, s"] = time.perf_counter() - begin
        found["reserve + complete, CPU us a message"] = cpu_us(taking(q, min(TAKEN, size - 1)), cpu_seconds)
    return found


def chunks(folder: Path, size: int, way: str) -> Costs:
    """One submission of so many chunks."""
    path, found = folder / "c.db", Costs()
    with WAYS[way](path) as (q, cpu_seconds):
        q.submit(chunks=10, objects=f"{OBJECTS}/first", tenant="first")

        def submit() -> int:
            for n in range(SUBMITS):
                q.submit(chunks=size, objects=f"{OBJECTS}/{n}", tenant="t")
            return SUBMITS

        found["submit, CPU us"] = cpu_us(submit, cpu_seconds)
    if way == "embedded":
        found["file, MiB"] = file_mib(path)
    start = time.perf_counter()
    with WAYS[way](path) as (q, cpu_seconds):
        found["open, s"] = time.perf_counter() - start
        found["reserve + complete, CPU us a chunk"] = cpu_us(taking(q, min(TAKEN, size)), cpu_seconds)
    return found


def tenants(folder: Path, size: int, way: str) -> Costs:
    """So many tenants that take turns, payloads and results inline."""
    found, payloads = Costs(), [PAYLOAD] * EACH
    with WAYS[way](folder / "t.db") as (q, cpu_seconds):

        def submit() -> int:
            for tenant in range(size):
                q.submit(payloads, tenant=f"t{tenant}")
            return size * EACH

        found["submit, CPU us a chunk"] = cpu_us(submit, cpu_seconds)
        taking(q, size)()  # what is made or read at a tenant's first chunk
        work = taking(q, min(TAKEN, size * EACH // 2), result=b"done")
        found["reserve + complete, CPU us a chunk"] = cpu_us(work, cpu_seconds)
    return found


def tenfold(sizes: list[int], values: list[float]) -> str:
    """By how much it grows for each ten times the work, step by step; of a wider step the root."""
    if not all(values):
        return ""
    steps = zip(sizes, sizes[1:], values, values[1:], strict=False)
    return ", ".join(
        f"{(later / before) ** (1 / math.log10(more / less)):,.2f} x" for less, more, before, later in steps
    )


def alone(costs: Measure, size: int, way: str) -> Costs:
    """What one size costs, in a process that has done nothing else."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as name, pool:
        return pool.submit(costs, Path(name), size, way).result()


def table(figures: Figures, costs: Measure, way: str, sizes: list[int]) -> None:
    found = [alone(costs, size, way) for size in sizes]
    title = f"{(costs.__doc__ or '').rstrip('.')}, {way}"
    columns = (f"{size:,}" for size in sizes)
    told = figures.table(title, "what", *columns, "work grows by", "it grows by", "for each 10 times")
    for what in found[0]:
        values = [one[what] for one in found]
        grows = f"{values[-1] / max(values[0], 1e-9):,.2f} x"
        told.add(what, *values, f"{sizes[-1] // sizes[0]:,} x", grows, tenfold(sizes, values))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", help="of the backlog")
    options.add_argument("--wide", type=int, nargs="+", help="chunks of one submission")
    options.add_argument("--tenants", type=int, nargs="+", help="that take turns")
    options.add_argument("--full", action="store_true", help="10^7 messages too")
    given = options.parse_args()
    sizes = given.sizes or ([100] if given.quick else [10_000, 100_000, 1_000_000])
    sizes = [*sizes, 10_000_000] if given.full else sizes
    wide = given.wide or ([10**9] if given.quick else [10**power for power in range(4, 10)])
    many = given.tenants or ([10] if given.quick else [10, 100, 1_000])
    figures = Figures("growth", given)
    for costs, several in ((messages, sizes), (chunks, wide), (tenants, many)):
        for way in WAYS if costs is messages or not given.quick else ["embedded"]:
            table(figures, costs, way, several)
    figures.end()


if __name__ == "__main__":
    main()
