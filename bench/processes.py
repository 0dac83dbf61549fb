"""CPU time of a call through another process, beside the same call in the process that hosts the queue, in one run.

    python bench/processes.py [--seconds 1] [--rounds 5] [--batch 100] [--workers 2] [--quick] [--json FILE]

CPU microseconds per call of reserve + complete and of put, of one and of a batch, by one caller: the time of both
processes with all their threads, and by the clock. Rounds of the two ways alternate, and the medians are compared,
because these machines are noisy. Attached over the socket and over the ring, to a host each; whoever is not measured
only waits. Which of the two should be the default is told by a table of its own, with the spread over the rounds, and
by the same for a server of several processes (`--workers`, 0: none).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from figures import Figures, parser, times
from server import Line, Server, fairway_put, fairway_work

import fairway
from fairway.ring.native import BUILT

PAYLOAD = b"x" * 200
TRANSPORTS: tuple[Literal["socket", "ring"], ...] = ("socket", "ring") if BUILT else ("socket",)
CONSUMERS = 8  # connections to a server
Step = Callable[[], int]  # does its calls once; gives how many they were
Found = dict[str, dict[str, list[float]]]  # of every call, by every way, round by round


class Host:
    """The other process: it hosts a queue, and tells how much CPU time it has used."""

    def __init__(self, path: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--host", str(path)], stdin=pipe, stdout=pipe, text=True
        )
        self.cpu_seconds()  # it has opened the queue when it answers

    def cpu_seconds(self) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def host(path: str) -> None:
    """What the other process does."""
    with fairway.open(path):
        while sys.stdin.readline():
            print(time.process_time(), flush=True)


def steps(q: fairway.Queue, batch: int) -> dict[str, Step]:
    """What is measured, each with its number of calls."""
    for tenant in range(20):
        q.submit(chunks=100_000_000, objects=f"file:///nowhere/{tenant}", tenant=f"t{tenant}")
    messages = [{"payload": PAYLOAD, "tenant": f"m{i % 20}"} for i in range(batch)]

    def work(most: int) -> Step:
        def step() -> int:
            q.complete(q.reserve(max=most))
            return 2

        return step

    def put() -> int:
        q.put(PAYLOAD, tenant="m")
        return 1

    def put_many() -> int:
        q.put_many(messages)
        return 1

    def put_at_once() -> int:
        def some() -> None:
            for _ in range(20):
                put()

        threads = [threading.Thread(target=some) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 320

    return {
        "reserve + complete of 1": work(1),
        f"reserve + complete of {batch}": work(batch),
        "put of 1": put,
        f"put_many of {batch}": put_many,
        "put of 1, 16 threads": put_at_once,
    }


def measured(step: Step, seconds: float, cpu_seconds: Callable[[], float]) -> tuple[float, float]:
    """Microseconds per call of doing a step for a while: of CPU time, and by the clock."""
    calls = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        calls += step()
    return 1e6 * (cpu_seconds() - cpu) / calls, 1e6 * spent / calls


def measure(folder: Path, batch: int, seconds: float, rounds: int) -> Found:
    """CPU and clock of every step, each way, round by round."""
    found: Found = {}
    with ExitStack() as stack:
        others: dict[str, Host] = {}
        ways = {"in-process": steps(stack.enter_context(fairway.open(folder / "here.db")), batch)}
        for transport in TRANSPORTS:
            other = others[transport] = Host(folder / f"{transport}.db")
            stack.callback(other.end)
            there = fairway.open(folder / f"{transport}.db", host=False, transport=transport)
            ways[transport] = steps(stack.enter_context(there), batch)
        for _ in range(rounds):
            for key in ways["socket"]:
                for way, todo in ways.items():
                    other = others.get(way, others["socket"])
                    cpu, clock = measured(
                        todo[key], seconds, lambda other=other: time.process_time() + other.cpu_seconds()
                    )
                    figures = found.setdefault(key, {})
                    figures.setdefault(way, []).append(cpu)
                    figures.setdefault(f"{way} clock", []).append(clock)
    return found


async def connected(port: int) -> list[Line]:
    """Connections to a server, as soon as it answers."""
    for _ in range(600):
        try:
            return [await Line(port).open() for _ in range(CONSUMERS)]
        except (OSError, AssertionError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)
    raise SystemExit("the server does not answer")


async def measure_workers(folder: Path, workers: int, seconds: float, rounds: int) -> Found:
    """CPU of a server's processes for every chunk or message, each way, round by round."""
    found: Found = {}
    steps = {
        f"{name}, {batch} at a time": (step, batch)
        for batch in (1, 64)
        for name, step in (("reserve + complete", fairway_work), ("put of 200 bytes", fairway_put))
    }
    with ExitStack() as stack:
        servers: dict[str, tuple[Server, list[Line]]] = {}
        for way in TRANSPORTS:
            command = [sys.executable, "-m", "fairway.cli", "serve", "--port", "0", "--queue", "default"]
            command += ["--store", str(folder / f"served-{way}.db"), "--workers", str(workers)]
            server = Server([*command, "--transport", way])
            stack.callback(server.end)
            assert server.process.stdout is not None
            server.port = int(server.process.stdout.readline().rsplit(b":", 1)[1])
            servers[way] = server, await connected(server.port)
            await fairway_work(*servers[way], 1, seconds)  # what is loaded at the first call is not measured
        for _ in range(rounds):
            for key, (step, batch) in steps.items():
                for way, (server, lines) in servers.items():
                    _, cpu = await step(server, lines, batch, seconds)
                    found.setdefault(key, {}).setdefault(way, []).append(cpu)
    return found


def tell_spread(figures: Figures, title: str, found: Found) -> None:
    """The ring beside the socket: the spread over the rounds, and how often it took at least a tenth less."""
    if len(TRANSPORTS) < 2:
        figures.leave_out(title.split(":")[0], "the ring is not built here")
        return
    table = figures.table(
        title,
        "call",
        *(f"{way}, {what}" for way in TRANSPORTS for what in ("least", "median", "most")),
        *("ring beside socket, least", "median", "most", "rounds a tenth below"),
    )
    for key, figure in found.items():
        spread = [each(figure[way]) for way in TRANSPORTS for each in (min, statistics.median, max)]
        ratios = [
            ring / socket for socket, ring in zip(figure["socket"], figure["ring"], strict=True) if socket
        ]
        beside = [times(each(ratios), 1.0) for each in (min, statistics.median, max)] if ratios else [""] * 3
        below = sum(ratio <= 0.9 for ratio in ratios)
        table.add(key, *spread, *beside, f"{below} of {len(ratios)}")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=100)
    options.add_argument("--seconds", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument(
        "--workers", type=int, help="HTTP processes of the servers; 2, and none if it is quick"
    )
    options.add_argument("--host", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.host:
        host(given.host)
        return
    if given.quick:
        given.seconds, given.rounds = 0.02, 1
    if given.workers is None:
        given.workers = 0 if given.quick else 2
    figures = Figures("processes", given)
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name), given.batch, given.seconds, given.rounds)
    ways = ("in-process", *TRANSPORTS)
    table = figures.table(
        f"CPU microseconds a call, both processes added up; medians of {given.rounds} rounds of {given.seconds:g} s",
        "call",
        "in the host",
        *(part for way in TRANSPORTS for part in (f"over the {way}", "beside the host")),
        *(f"{way}, by the clock" for way in ways),
    )
    for key, figure in found.items():
        median = {way: statistics.median(values) for way, values in figure.items()}
        here = median["in-process"]
        cells = [part for way in TRANSPORTS for part in (median[way], times(median[way], here))]
        table.add(key, here, *cells, *(median[f"{way} clock"] for way in ways))
    rounds = f"CPU microseconds, {given.rounds} rounds of {given.seconds:g} s in turn"
    tell_spread(figures, f"Socket or ring for an attached process: of a call, {rounds}", found)
    if given.workers and len(TRANSPORTS) > 1:
        with tempfile.TemporaryDirectory() as name:
            served = asyncio.run(measure_workers(Path(name), given.workers, given.seconds, given.rounds))
        what = f"a chunk or message, {given.workers} HTTP processes and the engine's, {CONSUMERS} connections"
        tell_spread(figures, f"Socket or ring for a server's processes: of {what}, {rounds}", served)
    figures.end()


if __name__ == "__main__":
    main()
