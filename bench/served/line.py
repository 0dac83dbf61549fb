"""Consumers that wait for a bucket queue: what they cost the server while nothing comes, and how soon one is woken."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

from fairway.server.protocol import connections_max, raise_file_limit
from served.server import Server, started

QUEUE = "/v1/queues/events"
SECONDS = 10.0  # in which the cost of waiting is seen
WAIT_SECONDS = 60.0
ROOM = 0.75  # of the connections that an HTTP process may have


class Consumer:
    """A connection that waits in one reserve after the other."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> Consumer:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def ask(self, method: str, path: str, body: bytes) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        found = await self._reader.readuntil(b"\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 2"), found
        size = int(found.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return await self._reader.readexactly(size)

    async def wait(self, woken: asyncio.Queue[float]) -> None:
        while True:
            answer = await self.ask("POST", f"{QUEUE}/reserve", b'{"wait_seconds": %d}' % WAIT_SECONDS)
            if b"receipt" in answer:
                woken.put_nowait(time.perf_counter())

    def close(self) -> None:
        self._writer.close()


async def _waits(one: Consumer) -> float:
    page = await one.ask("GET", "/metrics", b"")
    (line,) = [line for line in page.splitlines() if line.startswith(b'fairway_http_calls{kind="wait"}')]
    return float(line.split()[1])


async def _measured(server: Server, many: int, seconds: float, wakes: int) -> dict[str, Any]:
    one = await Consumer(server.port).open()
    await one.ask("PUT", QUEUE, b'{"kind": "bucket"}')
    woken: asyncio.Queue[float] = asyncio.Queue()
    crowd = [await Consumer(server.port).open() for _ in range(many)]
    tasks = [asyncio.ensure_future(each.wait(woken)) for each in crowd]
    try:
        async with asyncio.timeout(600):
            while await _waits(one) < many:
                await asyncio.sleep(0.1)
        cpu, began = server.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(seconds)
        share = (server.cpu_seconds() - cpu) / (time.perf_counter() - began)
        took = []
        for _ in range(wakes):
            sent = time.perf_counter()
            await one.ask("POST", f"{QUEUE}/messages", b'{"payload": "eA=="}')
            took.append((await asyncio.wait_for(woken.get(), 60) - sent) * 1000)
        return {"many": many, "core %": share * 100, "wake ms": statistics.median(took)}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for each in (one, *crowd):
            each.close()


async def measure_line(folder: Path, many: int, quick: bool) -> dict[str, Any]:
    """What so many consumers of a bucket queue cost that wait at once in one process."""
    raise_file_limit()
    server = await started(folder / "line.db", 0)
    try:
        fit = min(many, int(connections_max() * ROOM))
        return await _measured(server, fit, 0.5 if quick else SECONDS, 2 if quick else 20)
    finally:
        server.end()
