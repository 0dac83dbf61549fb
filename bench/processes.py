"""CPU time of a call through another process, beside the same call in the process that hosts the queue, in one run.

    python bench/processes.py [--seconds 1] [--rounds 5] [--batch 100] [--json FILE]

CPU microseconds per call of reserve + complete and of put, of one and of a batch, by one caller: the time of both
processes with all their threads, and by the clock. Rounds of the two ways alternate, and the medians are compared,
because these machines are noisy. While the queue here is measured the other process only waits.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fairway

PAYLOAD = b"x" * 200
Step = Callable[[], int]  # does its calls once; gives how many they were


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

    return {
        "reserve + complete of 1": work(1),
        f"reserve + complete of {batch}": work(batch),
        "put of 1": put,
        f"put_many of {batch}": put_many,
    }


def measured(step: Step, seconds: float, cpu_seconds: Callable[[], float]) -> tuple[float, float]:
    """Microseconds per call of doing a step for a while: of CPU time, and by the clock."""
    calls = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        calls += step()
    return 1e6 * (cpu_seconds() - cpu) / calls, 1e6 * spent / calls


def measure(folder: Path, batch: int, seconds: float, rounds: int) -> dict[str, dict[str, list[float]]]:
    """CPU and clock of every step, both ways, round by round."""
    other = Host(folder / "attached.db")
    try:
        with (
            fairway.open(folder / "here.db") as here,
            fairway.open(folder / "attached.db", host=False) as there,
        ):
            ways = {"in-process": steps(here, batch), "attached": steps(there, batch)}
            found: dict[str, dict[str, list[float]]] = {}
            for _ in range(rounds):
                for key in ways["attached"]:
                    for way, todo in ways.items():
                        cpu, clock = measured(
                            todo[key], seconds, lambda: time.process_time() + other.cpu_seconds()
                        )
                        figures = found.setdefault(key, {})
                        figures.setdefault(way, []).append(cpu)
                        figures.setdefault(f"{way} clock", []).append(clock)
    finally:
        other.end()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--host", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.host:
        host(given.host)
        return
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name), given.batch, given.seconds, given.rounds)
    report = {"python": platform.python_version(), "cores": os.cpu_count(), "microseconds": {}}
    print(
        f"CPU microseconds per call, median of {given.rounds} rounds of {given.seconds:g} s; by the clock in brackets"
    )
    for key, ways in found.items():
        median = {way: statistics.median(values) for way, values in ways.items()}
        line = "   ".join(
            f"{way} {median[way]:7,.0f} ({median[f'{way} clock']:7,.0f})"
            for way in ("in-process", "attached")
        )
        print(f"{key:26} {line}   {median['attached'] / median['in-process']:5.2f} x")
        report["microseconds"][key] = {way: round(value, 1) for way, value in median.items()}
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
