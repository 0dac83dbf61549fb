"""Throughput of the embedded queue, in batches, beside the plainest queue on SQLite, in one run.

    python bench/embedded.py [--batch 100] [--seconds 2] [--rounds 7] [--threads 2] [--quick] [--json FILE]

Chunks per second of reserve + complete (submissions of many chunks, and messages) and of put_many, everything on:
fairness, receipts, request numbers, events, fsync. Rounds of the two alternate, and the medians are compared,
because these machines are noisy; so CPU time is told too, of the calling thread and of all others of the process.
Best and worst show rounds that differ for a reason of ours: pages that grow, a window that is full.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from figures import Figures, parser, times
from peers.plain_queue import PlainQueue

import fairway

PAYLOAD = b"x" * 200


class Round(NamedTuple):
    """What one round gave: chunks per second, and CPU microseconds per chunk of the callers and of other threads."""

    rate: float
    callers: float
    others: float


Rate = Callable[[], Round]


def timed(work: Callable[[], int], seconds: float) -> Round:
    """Calling `work` for a while."""
    return in_threads(lambda: work, 1, seconds)


def in_threads(make: Callable[[], Callable[[], int]], threads: int, seconds: float) -> Round:
    """Work in several threads at once, which share commits."""
    rates: list[float] = []
    counts: list[int] = []
    spent: list[float] = []

    def run() -> None:
        work, done, cpu, start = make(), 0, time.thread_time(), time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            done += work()
        spent.append(time.thread_time() - cpu)
        counts.append(done)
        rates.append(done / passed)

    before = time.process_time()
    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    whole, chunks = time.process_time() - before, sum(counts)
    return Round(sum(rates), sum(spent) / chunks * 1e6, max(0.0, whole - sum(spent)) / chunks * 1e6)


def fairway_rates(
    stack: ExitStack, folder: Path, batch: int, seconds: float, threads: int
) -> dict[str, Rate]:
    """What Fairway is asked to do, each as a function that gives chunks per second."""
    q = stack.enter_context(fairway.open(folder / "fairway.db"))
    for tenant in range(100):
        q.submit(chunks=100_000_000, objects=f"file:///nowhere/{tenant}", tenant=f"t{tenant}")
    messages = [{"payload": PAYLOAD, "tenant": f"m{i % 20}"} for i in range(batch)]
    few = stack.enter_context(fairway.open(folder / "messages.db"))

    def work(strategy: str) -> Callable[[], int]:
        def step() -> int:
            leases = q.reserve(max=batch, strategy=strategy)
            q.complete(leases)
            return len(leases)

        return step

    def put() -> int:
        few.put_many(messages)
        return batch

    def message_step() -> int:
        leases = few.reserve(max=batch)
        few.complete(leases)
        return len(leases)

    def message_work() -> Round:
        few.put_many([{"payload": PAYLOAD, "tenant": f"m{i % 20}"} for i in range(int(80_000 * seconds))])
        return timed(message_step, seconds)

    return {
        "reserve+complete, Fair, 100 tenants": lambda: timed(work("Fair"), seconds),
        f"the same in {threads} threads": lambda: in_threads(lambda: work("Fair"), threads, seconds),
        "reserve+complete, OldestFirst": lambda: timed(work("OldestFirst"), seconds),
        "put_many of 200 bytes": lambda: timed(put, seconds),
        "reserve+complete of messages": message_work,
    }


def peer_rates(stack: ExitStack, folder: Path, batch: int, seconds: float) -> dict[str, Rate]:
    """What the peer can do of it."""
    queue = PlainQueue(folder / "plain.db")
    stack.callback(queue.close)
    items = [(f"m{i % 20}", PAYLOAD) for i in range(batch)]

    def put() -> int:
        queue.put_many(items)
        return batch

    def step() -> int:
        found = queue.reserve(batch)
        queue.complete([id for id, _ in found])
        return len(found)

    def work() -> Round:
        for _ in range(int(1_000 * seconds)):
            queue.put_many(items)
        return timed(step, seconds)

    return {"put_many of 200 bytes": lambda: timed(put, seconds), "reserve+complete of messages": work}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=100)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--threads", type=int, default=2)
    given = options.parse_args()
    if given.quick:
        given.seconds, given.rounds = 0.05, 1
    figures = Figures("embedded", given)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        ours = fairway_rates(stack, Path(name), given.batch, given.seconds, given.threads)
        peer = peer_rates(stack, Path(name), given.batch, given.seconds)
        rates: dict[str, list[Round]] = {key: [] for key in ours}
        plain: dict[str, list[Round]] = {key: [] for key in peer}
        for _ in range(given.rounds):
            for key, rate in ours.items():
                rates[key].append(rate())
                if key in peer:
                    plain[key].append(peer[key]())
    table = figures.table(
        f"Chunks a second in batches of {given.batch}, {given.rounds} rounds of {given.seconds:g} s, and CPU"
        " microseconds a chunk",
        *(
            "what",
            "median",
            "best",
            "worst",
            "CPU of callers",
            "of others",
            "a bare SQLite table",
            "beside it",
        ),
    )
    for key, rounds in rates.items():
        mine = statistics.median(one.rate for one in rounds)
        callers, others = (statistics.median(one[i] for one in rounds) for i in (1, 2))
        theirs = statistics.median(one.rate for one in plain[key]) if key in plain else 0.0
        best, worst = (choose(one.rate for one in rounds) for choose in (max, min))
        table.add(key, mine, best, worst, callers, others, theirs or None, times(mine, theirs))
    figures.end()


if __name__ == "__main__":
    main()
