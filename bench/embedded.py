"""Throughput of the embedded queue, in batches, beside the plainest queue on SQLite, in one run.

    python bench/embedded.py [--batch 100] [--seconds 5] [--threads 2] [--json FILE]

Chunks per second of reserve + complete (submissions of many chunks, and messages) and of put_many, everything on:
fairness, receipts, request numbers, events, fsync. Rounds of the two alternate, and the medians are compared,
because these machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from peers.plain_queue import PlainQueue

import fairway

PAYLOAD = b"x" * 200
Rate = Callable[[], float]


def timed(work: Callable[[], int], seconds: float) -> float:
    """Chunks per second of calling `work` for a while."""
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        done += work()
    return done / spent


def in_threads(make: Callable[[], Callable[[], int]], threads: int, seconds: float) -> float:
    """The same work in several threads at once, which share commits."""
    rates: list[float] = []

    def run() -> None:
        rates.append(timed(make(), seconds))

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def fairway_rates(folder: Path, batch: int, seconds: float, threads: int) -> dict[str, Rate]:
    """What Fairway is asked to do, each as a function that gives chunks per second."""
    q = fairway.open(folder / "fairway.db")
    for tenant in range(100):
        q.submit(chunks=100_000_000, objects=f"file:///nowhere/{tenant}", tenant=f"t{tenant}")
    messages = [{"payload": PAYLOAD, "tenant": f"m{i % 20}"} for i in range(batch)]
    few = fairway.open(folder / "messages.db")

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

    def message_work() -> float:
        few.put_many([{"payload": PAYLOAD, "tenant": f"m{i % 20}"} for i in range(int(80_000 * seconds))])
        return timed(message_step, seconds)

    return {
        "reserve+complete, Fair, 100 tenants": lambda: timed(work("Fair"), seconds),
        f"the same in {threads} threads": lambda: in_threads(lambda: work("Fair"), threads, seconds),
        "reserve+complete, OldestFirst": lambda: timed(work("OldestFirst"), seconds),
        "put_many of 200 bytes": lambda: timed(put, seconds),
        "reserve+complete of messages": message_work,
    }


def peer_rates(folder: Path, batch: int, seconds: float) -> dict[str, Rate]:
    """What the peer can do of it."""
    queue = PlainQueue(folder / "plain.db")
    items = [(f"m{i % 20}", PAYLOAD) for i in range(batch)]

    def put() -> int:
        queue.put_many(items)
        return batch

    def step() -> int:
        found = queue.reserve(batch)
        queue.complete([id for id, _ in found])
        return len(found)

    def work() -> float:
        for _ in range(int(1_000 * seconds)):
            queue.put_many(items)
        return timed(step, seconds)

    return {"put_many of 200 bytes": lambda: timed(put, seconds), "reserve+complete of messages": work}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ours = fairway_rates(Path(name), given.batch, given.seconds, given.threads)
        peer = peer_rates(Path(name), given.batch, given.seconds)
        rates: dict[str, list[float]] = {key: [] for key in ours}
        plain: dict[str, list[float]] = {key: [] for key in peer}
        for _ in range(given.rounds):
            for key, rate in ours.items():
                rates[key].append(rate())
                if key in peer:
                    plain[key].append(peer[key]())
    report = {"python": platform.python_version(), "batch": given.batch, "rates": {}}
    print(f"batches of {given.batch}, median of {given.rounds} rounds of {given.seconds:g} s")
    for key, values in rates.items():
        mine = statistics.median(values)
        line = f"{key:40} {mine:10,.0f} chunks/s"
        if key in plain:
            line += f"   {mine / statistics.median(plain[key]):5.2f} x a bare SQLite table"
        print(line)
        report["rates"][key] = round(mine)
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
