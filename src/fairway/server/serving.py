"""Serving: one HTTP process, from its sockets to its end.

Guards: it ends gracefully: no new connections, waits end at once, calls under way are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn

from fairway import limits
from fairway.server import secret
from fairway.server.app import App
from fairway.server.desk import Desk
from fairway.server.passes import derived, shared_secret
from fairway.server.places import Place, file_place
from fairway.server.protocol import PatientProtocol
from fairway.server.queues import OpenQueues
from fairway.server.settings import Settings

_BACKLOG = (
    4096  # connections that wait to be accepted; ten thousand consumers come back at once after a restart
)


class _Server(uvicorn.Server):
    """uvicorn's server, with the application told first that it ends, and signals left to us."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its protocol asyncio knows a connection that must not wait for acknowledgements before it sends (TCP_NODELAY):
    # without, the second packet of an answer comes 40 ms after the first.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except BaseException:
        listener.close()
        raise
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


class HttpProcess:
    """The HTTP side of one process. `stop` may be called from any thread or signal handler."""

    def __init__(self, settings: Settings, desk: Desk, host: bool, place: Place | None = None) -> None:
        self._settings = settings
        self._place = place or file_place(settings)
        self._desk = desk
        self._host = host
        self._server: _Server | None = None
        self._ending = False
        self.app: App | None = None

    async def run(self, listener: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`."""
        s = self._settings
        queues = OpenQueues(self._place, self._desk, self._host)
        shared = shared_secret(s.secret_file) if s.cluster else b""
        self.app = App(s, queues, derived(shared, "clients") if shared else secret.load(s.secret_path))
        if shared:
            self.app.join_nodes(derived(shared, "nodes"))
        config = uvicorn.Config(
            self.app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=int(limits.KEEP_ALIVE_SECONDS),
            timeout_graceful_shutdown=int(limits.GRACE_SECONDS),
            ssl_certfile=s.tls_cert or None,
            ssl_keyfile=s.tls_key or None,
        )
        self._server = _Server(config, self.app.stop)
        self._server.should_exit = self._ending
        try:
            asyncio.get_running_loop().call_soon(ready)
            await self._server.serve([listener])
        finally:
            await self.app.close()

    def stop(self, *_: Any) -> None:
        self._ending = True
        if self._server is not None:
            self._server.should_exit = True

    def main(self, listener: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
        """Run in this process's main thread: SIGTERM and SIGINT end it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self.run(listener, ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
