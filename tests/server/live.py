"""A server in a thread of the test, or as processes of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from fairway.server.desk import OwnDesk
from fairway.server.hosting import Hosting
from fairway.server.serving import HttpProcess, listen
from fairway.server.settings import Settings, settings
from fairway.server.tokens import Tokens


class Live:
    """A server that runs in this process, on a port of its own."""

    def __init__(self, folder: Path, **given: Any) -> None:
        given.setdefault("queues", ["default"])
        self.settings: Settings = settings({"store": str(folder / "work.db"), "port": 0, **given}, {})
        self.tokens = Tokens(self.settings.tokens_path)
        self._listener = listen("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.hosting = Hosting(self.settings.store)
        self.process = HttpProcess(self.settings, OwnDesk(self.hosting), host=True)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test server")

    def start(self) -> Live:
        self.hosting.start(self.settings.queues)
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.process.run(self._listener, self._ready.set)

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """While inside, the server does nothing: what is sent to it lies in the system."""
        held, go_on = threading.Event(), threading.Event()
        self._loop.call_soon_threadsafe(lambda: (held.set(), go_on.wait(60)))
        assert held.wait(30)
        try:
            yield
        finally:
            go_on.set()

    def stop(self) -> None:
        self.process.stop()
        self._thread.join()
        self.hosting.close()
        self._listener.close()

    def token(self, *rights: str, queues: tuple[str, ...] = ("*",), **more: Any) -> str:
        return self.tokens.create("test", queues=queues, rights=rights, **more)[1]

    def http(self, token: str | None = None, **more: Any) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(
            base_url=self.url,
            headers={**headers, **more.pop("headers", {})},
            trust_env=False,
            timeout=30,
            **more,
        )


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something, with patience."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def live(folder: Path, **given: Any) -> Iterator[Live]:
    server = Live(folder, **given)
    try:
        yield server.start()
    finally:
        server.stop()


class Served:
    """`fairway serve` as a process, with the processes it starts."""

    def __init__(
        self, folder: Path, *flags: str, environ: dict[str, str] | None = None, port: int = 0
    ) -> None:
        self.store = folder / "work.db"
        self.log = folder / "serve.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "fairway.cli",
                    "serve",
                    "--store",
                    str(self.store),
                    "--port",
                    str(port),
                    *flags,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(environ or {})},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r"http://\S+", line)
        assert found, self.log.read_text()
        self.url = found[0]

    def children(self, part: str) -> list[int]:
        """The processes of a part: "engine" or "http"."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes().split(b"\0")
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except (OSError, IndexError, ValueError):
                    continue
                if parent == self.process.pid and len(line) > 3 and f'"part":"{part}"'.encode() in line[3]:
                    found.append(int(entry.name))
        return sorted(found)

    def wait_for(self, part: str, many: int, without: set[int] = frozenset()) -> list[int]:  # type: ignore[assignment]
        """Until so many processes of a part live that are not among `without`."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = [pid for pid in self.children(part) if pid not in without]
            if len(found) >= many:
                return found
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def ready(self) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                if httpx2.get(self.url + "/readyz", trust_env=False).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.1)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextmanager
def served(folder: Path, *flags: str, **more: Any) -> Iterator[Served]:
    server = Served(folder, *flags, **more)
    try:
        yield server
    finally:
        server.stop()
