"""A server's processes, to be measured and ended, and one connection to them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from fairway.client import wire
from fairway.engine.commands import READS, Register

TICKS = os.sysconf("SC_CLK_TCK")
TRIES = 60  # of a call to a server that has too much to do
R = TypeVar("R")
START_SECONDS = 600.0  # of a machine that has other things to do


class Server:
    """A server's processes."""

    def __init__(self, command: list[str], port: int = 0) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.port = port

    def family(self) -> list[int]:
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            children = Path(f"/proc/{pid}/task/{pid}/children")
            todo += [int(child) for child in children.read_text().split()] if children.exists() else []
        return found

    def cpu_seconds(self) -> float:
        total = 0
        for pid in self.family():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def mebibytes(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.family())
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def connections(self) -> list[int]:
        """How many sockets each process has."""
        found = []
        for pid in self.family():
            names = (os.readlink(entry) for entry in _links(Path(f"/proc/{pid}/fd")))
            found.append(sum(name.startswith("socket:") for name in names))
        return found

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def _links(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.is_symlink()]


async def started(store: Path, workers: int) -> Server:
    """A Fairway server that answers."""
    flags = ["--store", str(store), "--port", "0", "--workers", str(workers), "--queue", "default"]
    server = Server([sys.executable, "-m", "fairway.cli", "serve", *flags])
    assert server.process.stdout is not None
    server.port = int(server.process.stdout.readline().rsplit(b":", 1)[1])
    try:
        async with asyncio.timeout(START_SECONDS):
            while True:
                try:
                    (await Line(server.port).open()).close()
                    return server
                except (OSError, AssertionError):
                    await asyncio.sleep(0.1)
    except BaseException:
        server.end()
        raise


class Line(asyncio.Protocol):
    """One connection to a Fairway server that sends calls as its clients do, under numbers of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._number = 0
        self._client = ""
        self._got = b""
        self._answer: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._transport: Any = None

    async def open(self) -> Line:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._port)
        self._client = await self.ask(Register())
        return self

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if found and self._answer is not None:
            length = re.search(rb"content-length: (\d+)", head)
            assert length, head
            if len(body) == int(length[1]):
                self._got = b""
                self._answer.set_result((head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the server ended the connection: {exc}"))

    async def ask(self, command: Any) -> Any:
        numbered = bool(self._client) and type(command) not in READS
        self._number += numbered
        asked = (
            wire.Asked(command, self._client, self._number, self._number - 1)
            if numbered
            else wire.Asked(command)
        )
        head = body = b""
        for _ in range(TRIES):
            self._answer = asyncio.get_running_loop().create_future()
            self._transport.write(request(asked))
            head, body = await self._answer
            if not head.startswith(b"HTTP/1.1 503"):
                break
            await asyncio.sleep(1.0)  # as it asks for
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
        return wire.answer(command, body)[0]

    def close(self) -> None:
        self._transport.close()


def run(main: Coroutine[Any, Any, R]) -> R:
    """As asyncio.run, by an event loop that costs less where there is one: the clients have the server's cores."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def request(asked: wire.Asked) -> bytes:
    """A call as it is sent."""
    body = wire.asking(asked)
    return (
        b"POST /v1/queues/default/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/msgpack\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
