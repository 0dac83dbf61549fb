"""Nodes of one server on one cluster, in threads of the test or as processes to kill."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2

from fairway.server.desk import OwnDesk
from fairway.server.hosting import Hosting
from fairway.server.places import place_of
from fairway.server.serving import HttpProcess, listen
from fairway.server.settings import settings
from fairway.server.tokens import Tokens

ANSWERS_SECONDS = 60.0  # on two busy cores


def secret_file(folder: Path, text: str = "0123456789abcdef" * 4) -> Path:
    path = folder / f"{text[:4]}.key"
    path.write_text(text)
    return path


def answers(url: str, queue: str) -> None:
    """Wait until somebody answers for a queue at a node."""
    until = time.monotonic() + ANSWERS_SECONDS
    with httpx2.Client(base_url=url, trust_env=False, verify=False, timeout=ANSWERS_SECONDS) as http:
        while (answer := http.get(f"/v1/queues/{queue}/stats")).status_code != 200:
            assert time.monotonic() < until, answer.text
            time.sleep(0.05)


class Node:
    """A node in threads of this process."""

    def __init__(self, url: str, folder: Path, **given: Any) -> None:
        given.setdefault("secret_file", str(secret_file(folder)))
        given.setdefault("tokens", str(folder / "tokens"))
        self.settings = settings({"store": url, "port": 0, **given}, {})
        self.tokens = Tokens(self.settings.tokens_path)
        self._listener = listen("127.0.0.1", 0)
        scheme = "https" if self.settings.tls_cert else "http"
        self.port = self._listener.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.place = place_of(self.settings, self.url)
        self.hosting = Hosting(self.place)
        self.process = HttpProcess(self.settings, OwnDesk(self.hosting), host=True, place=self.place)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test node")

    def start(self) -> Node:
        self.hosting.start(self.settings.queues)
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def _run(self) -> None:
        asyncio.run(self.process.run(self._listener, self._ready.set))

    def owner(self, queue: str = "default") -> Any:
        """This node's part in a queue."""
        assert self.process.app is not None
        return self.process.app.queues._open[queue]._member

    def own(self, queue: str = "default") -> Node:
        """Until this node, while there is no other, owns a queue: then it answers for it."""
        answers(self.url, queue)
        assert self.owner(queue).here
        return self

    def stop(self) -> None:
        self.process.stop()
        if self._thread.ident is not None:
            self._thread.join()
        self.hosting.close()
        self.place.close()
        self._listener.close()


class NodeProcess:
    """A node as a process of its own."""

    def __init__(self, url: str, folder: Path, name: str, port: str = "0") -> None:
        self.log = folder / f"{name}.log"
        flags = [
            "--store",
            url,
            "--port",
            port,
            "--secret-file",
            str(secret_file(folder)),
            "--queue",
            "default",
        ]
        flags += ["--tokens", str(folder / "tokens")]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fairway.cli", "serve", *flags],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "FAIRWAY_LOG_LEVEL": "warning"},
            )

    def wait(self) -> NodeProcess:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r"http://\S+", line)
        assert found, self.log.read_text()
        self.url = found[0]
        return self

    def own(self) -> NodeProcess:
        """Until it owns the queue, while there is no other node."""
        answers(self.url, "default")
        return self

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self.process.stdout is not None
        try:
            return self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.stdout.close()
