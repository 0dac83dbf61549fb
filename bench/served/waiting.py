"""Waiting consumers and producers: that all of them wait, what each costs, and that each is woken by what it waits for.

Each kind has a server of its own that was fresh, since memory that others let go of would be used first. The crowds are
processes with source addresses of their own, for one address has 28,000 ports, and a process some thousand files.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from fairway.engine.commands import Cancel, Complete, Part, Pause, Reserve, Reserved, Stats, Submit
from fairway.face.offers import offer
from fairway.server.protocol import connections_max, raise_file_limit
from served.server import Line, Server, started

CROWD = Path(__file__).with_name("crowd.py")
EACH_MAX = 18_000  # connections of one crowd
LINE_BYTES_MAX = 2**20  # of what a crowd tells at once
OFFERS = 1000  # submissions made by one call
POLLS_SECONDS = (
    30.0  # in which it is seen what polls cost that end empty, and that nobody is woken for nothing
)
TELL_SECONDS = 10.0
ROOM = 0.75  # of the connections that an HTTP process may have: they are not shared out evenly


class Crowd:
    """A process that waits, as it tells of itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.waiting = self.refused = self.asked = 0
        self.woken: asyncio.Queue[int] = asyncio.Queue()  # since somebody last looked
        self.ever = 0  # how often one was woken
        self.which: set[int] = set()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            word, *numbers = line.split()
            if word == b"woke":
                for number in map(int, numbers):
                    self.woken.put_nowait(number)
                    self.which.add(number)
                self.ever += len(numbers)
            else:
                self.waiting, self.refused, self.asked = map(int, numbers)
        raise SystemExit(f"a crowd ended with {await self._process.wait()}")

    def check(self) -> None:
        if self._reading.done():
            self._reading.result()

    async def end(self) -> None:
        self._reading.cancel()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def crowds(port: int, kind: str, many: int, ids: list[int]) -> list[Crowd]:
    """As many processes as are needed, each with its own address."""
    found = []
    processes = math.ceil(many / EACH_MAX)
    shares = [many // processes + (n < many % processes) for n in range(processes)]
    for n, share in enumerate(shares):
        command = [sys.executable, str(CROWD), str(port), f"127.0.0.{n + 2}", kind, str(share)]
        piped = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=piped, stdout=piped, limit=LINE_BYTES_MAX
        )
        assert process.stdin is not None
        mine, ids = ids[:share], ids[share:]
        process.stdin.write(" ".join(map(str, mine)).encode())
        process.stdin.close()
        found.append(Crowd(process))
    return found


async def all_wait(line: Line, found: list[Crowd], many: int, seconds: float) -> int:
    """Until every one of them has an unanswered call; the most that the engine counted at one moment."""
    until, most, told = time.monotonic() + seconds, 0, time.monotonic()
    while True:
        for crowd in found:
            crowd.check()
        waiting = sum(crowd.waiting for crowd in found)
        most = max(most, (await line.ask(Stats())).waiters)
        # Who is between two polls is counted by nobody for a moment.
        if waiting == many and most >= many * 0.99:
            return most
        so_far = f"{waiting:,} of {many:,} wait, {most:,} are known to the engine"
        assert time.monotonic() < until, so_far
        if time.monotonic() > told + TELL_SECONDS:
            told = time.monotonic()
            print(f"    {so_far}", file=sys.stderr, flush=True)
        await asyncio.sleep(0.2)


async def wake_one(
    line: Line, kind: str, found: list[Crowd], ids: list[int], ended: set[tuple[int, int]]
) -> float:
    """Milliseconds from before a put or an end is sent until a waiting one has told that it was woken."""
    if kind == "consumers":
        began = time.perf_counter()
        await line.ask(Submit([offer((b"x",))]))
        woken = [asyncio.ensure_future(crowd.woken.get()) for crowd in found]
        done, _ = await asyncio.wait(woken, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        took = (time.perf_counter() - began) * 1000
        for task in woken:
            task.cancel()
        assert len(done) == 1, f"a put woke {len(done)}"
        return took
    share = len(ids) // len(found)
    left = [(n, m) for n in range(len(found)) for m in range(share) if (n, m) not in ended]
    which, number = random.choice(left)
    ended.add((which, number))
    first = sum(len(ids) // len(found) + (n < len(ids) % len(found)) for n in range(which))
    began = time.perf_counter()
    await line.ask(Cancel(ids[first + number]))
    assert await asyncio.wait_for(found[which].woken.get(), 60) == number
    return (time.perf_counter() - began) * 1000


async def wake_all(line: Line, kind: str, found: list[Crowd], many: int, seconds: float) -> float:
    """Seconds until every one that still waits is woken: by a submission with a chunk for each, or by its own's end."""
    began = time.monotonic()
    if kind == "consumers":
        await line.ask(Submit([offer(chunks=many - sum(crowd.ever for crowd in found))]))
    else:
        await line.ask(Pause(False))
        while (reserved := await line.ask(Reserve(OFFERS))).spans:
            await line.ask(Complete([_part(reserved)]))
    while sum(crowd.ever for crowd in found) < many:
        for crowd in found:
            crowd.check()
        left = many - sum(crowd.ever for crowd in found)
        assert time.monotonic() < began + seconds, f"{left:,} of {many:,} were never woken"
        await asyncio.sleep(0.05)
    took = time.monotonic() - began
    assert (await line.ask(Stats())).waiters == 0
    return took


def _part(reserved: Reserved) -> Part:
    spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
    return Part(reserved.epoch, reserved.count, reserved.seal, spans)


async def submitted(line: Line, many: int) -> list[int]:
    """Submissions that nobody works on before the queue goes on."""
    await line.ask(Pause(True))
    ids: list[int] = []
    while len(ids) < many:
        ids += (await line.ask(Submit([offer(chunks=1)] * min(OFFERS, many - len(ids))))).ids
    return ids


async def waited(
    server: Server, kind: str, many: int, wakes: int, seconds: float, found: list[Crowd]
) -> dict[str, Any]:
    line = await Line(server.port).open()
    ids = await submitted(line, many) if kind == "producers" else []
    before, began = server.mebibytes(), time.monotonic()
    found += await crowds(server.port, kind, many, ids)
    known = await all_wait(line, found, many, seconds)
    gathered, mebibytes = time.monotonic() - began, server.mebibytes() - before
    asked, cpu = sum(crowd.asked for crowd in found), server.cpu_seconds()
    ended = set[tuple[int, int]]()
    took = [await wake_one(line, kind, found, ids, ended) for _ in range(wakes)]
    await asyncio.sleep(1.0 if wakes < 10 else POLLS_SECONDS)
    assert all(crowd.woken.empty() for crowd in found), "one was woken that nobody woke"
    spent, polls = server.cpu_seconds() - cpu, sum(crowd.asked for crowd in found) - asked
    sockets = sorted(server.connections())
    all_woken = await wake_all(line, kind, found, many, seconds)
    woken = [(len(crowd.which), crowd.ever) for crowd in found]
    assert sum(ever for _, ever in woken) == sum(which for which, _ in woken) == many, woken
    line.close()
    return {
        "many": many,
        "known": known,
        "seconds": gathered,
        "KiB": mebibytes * 1024 / many,
        "refused": sum(crowd.refused for crowd in found),
        "wake ms": statistics.median(took),
        "CPU us a poll": spent / polls * 1e6 if polls else None,
        "all seconds": all_woken,
        "sockets": sockets,
    }


async def measure_waiting(folder: Path, kind: str, many: int, quick: bool) -> dict[str, Any]:
    """What so many consumers or producers cost that wait at once."""
    raise_file_limit()
    workers = 0 if quick else math.ceil((many + 1) / (connections_max() * ROOM))
    server = await started(folder / f"{kind}.db", workers)
    found: list[Crowd] = []
    try:
        told = await waited(server, kind, many, 2 if quick else 20, 60 if quick else 1800, found)
        return {**told, "workers": workers}
    finally:
        for crowd in found:
            await crowd.end()
        server.end()
