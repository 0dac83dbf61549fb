"""The processes of a server: one that starts the others and does nothing else, one with the engines, some for HTTP.

Guards: a process that dies is started again, and its death harms nobody: callers repeat what was not answered.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from fairway import limits
from fairway.errors import BadArgument
from fairway.runtime.restarting import Restarting
from fairway.server import metrics, secret
from fairway.server.child import Orders
from fairway.server.desk import OwnDesk
from fairway.server.hosting import Hosting
from fairway.server.passes import shared_secret
from fairway.server.places import place_of
from fairway.server.protocol import raise_file_limit
from fairway.server.serving import HttpProcess, listen
from fairway.server.settings import Settings
from fairway.store.sqlite.queues import check_file

_POLL_SECONDS: Final = 0.1
_log: Final = logging.getLogger("fairway.server")

Tell = Callable[[str], None]


def serve(settings: Settings, tell: Tell = lambda url: None) -> None:
    """Serve until SIGTERM or SIGINT. `tell` is told the address when it can be used."""
    raise_file_limit()
    if settings.tls_cert:
        _check_certificate(settings)
    if settings.cluster:
        shared_secret(settings.secret_file)  # before anything is begun
    else:
        _check_file(settings.store)
    with _listening(settings) as listener:
        url = _url(settings, listener.getsockname()[1])
        if not settings.cluster:
            _check_secret(settings.secret_path)
        if settings.workers:
            Family(settings, listener).run(lambda: tell(url))
        else:
            alone(settings, listener, lambda: tell(url))


def _listening(settings: Settings) -> socket.socket:
    try:
        return listen(settings.listen, settings.port)
    except OSError as error:
        told = f"port {settings.port} on {settings.listen} cannot be used: {error.strerror}"
        raise BadArgument(told, argument="port") from error


def _check_file(path: str) -> None:
    """Before anything is begun, as the certificate: what cannot be served now is not served by starting again."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    except OSError as error:
        raise BadArgument(
            f"store: the folder of {path} cannot be made: {error.strerror}", argument="store"
        ) from error
    if os.path.exists(path):
        check_file(path)


def _check_secret(path: str) -> None:
    """As the certificate: each HTTP process reads it as it begins."""
    try:
        secret.load(path)
    except OSError as error:
        told = f"store: {path}, the server's own key beside it, cannot be read or made: {error.strerror}"
        raise BadArgument(told, argument="store") from error


def _check_certificate(settings: Settings) -> None:
    """Before anything is begun: each process would fail by itself, and be started again and again."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        told = f"{settings.tls_cert} and {settings.tls_key} are no certificate and its key"
        raise BadArgument(f"tls_cert: {told}: {error}", argument="tls_cert") from error


def alone(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    """One process does all."""
    url = settings.advertise.rstrip("/") or _url(settings, listener.getsockname()[1])
    place = place_of(settings, url)
    hosting = Hosting(place)
    try:
        hosting.start(settings.queues)
        HttpProcess(settings, OwnDesk(hosting), host=True, place=place).main(listener, ready)
    finally:
        hosting.close()
        place.close()


def _url(settings: Settings, port: int) -> str:
    host = f"[{settings.listen}]" if ":" in settings.listen else settings.listen
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{port}"


class _Child:
    """One place in the family, and the process that fills it now."""

    def __init__(
        self, name: str, start: Callable[[], subprocess.Popen[bytes]], ended: Callable[[int], None]
    ) -> None:
        self.name = name
        self._start = start
        self._ended = ended
        self.process = start()
        self._again = Restarting(time.monotonic())

    def look(self) -> None:
        """Start it again if it ended, after a pause that grows while it keeps ending."""
        now = time.monotonic()
        if self.process.poll() is None:
            return
        if not self._again.awaited:
            _log.warning("the %s process ended (%s); it is started again", self.name, self.process.returncode)
            self._ended(self.process.pid)
            self._again.died(now)
        self.process = self._again.start(now, self._start) or self.process

    def end(self, seconds: float) -> None:
        """Ask it to end, and see to it that it does."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("the %s process did not end in time and is killed", self.name)
            self.process.kill()
            self.process.wait()


class Family:
    """Starts the engine's process and the HTTP processes, and keeps them alive."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._ending = False  # no Event: a signal would wait for the lock that this thread may hold
        self._folder = tempfile.mkdtemp(prefix="fairway-")
        self._figures = os.path.join(self._folder, "metrics")
        os.mkdir(self._figures)
        self._desk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._desk.bind(os.path.join(self._folder, "desk"))
        self._desk.listen(128)
        self._alive, self._held = os.pipe()  # children see the reading end end with this process
        self._needed, self._needs = os.pipe()  # the engine's own: it ends when nobody needs the engine
        self.engine: _Child | None = None
        self.http: list[_Child] = []

    def run(self, ready: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.stop)
        try:
            self.engine = _Child("engine", self._start_engine, self._bury)
            for i in range(self._settings.workers):
                self.http.append(_Child(f"http {i}", self._start_http, self._bury))
            ready()
            while not self._ending:
                for child in (self.engine, *self.http):
                    child.look()
                time.sleep(_POLL_SECONDS)
        finally:
            self._end()

    def stop(self, *_: object) -> None:
        self._ending = True

    def _end(self) -> None:
        """First those who speak to callers, then the engine they need for it.

        The engine heeds no signal: Ctrl-C and service managers send theirs to all processes at once.
        """
        for child in self.http:
            if child.process.poll() is None:
                child.process.terminate()
        for child in self.http:
            child.end(limits.GRACE_SECONDS + 5.0)
        os.close(self._needs)
        if self.engine is not None:
            self.engine.end(limits.GRACE_SECONDS)
        self._desk.close()
        for end in (self._alive, self._held, self._needed):
            os.close(end)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _bury(self, pid: int) -> None:
        metrics.buried(pid, self._figures)

    def _start_engine(self) -> subprocess.Popen[bytes]:
        return self._spawn("engine", self._desk.fileno(), self._needed)

    def _start_http(self) -> subprocess.Popen[bytes]:
        return self._spawn("http", self._listener.fileno(), self._alive)

    def _spawn(self, part: str, listener: int, parent: int) -> subprocess.Popen[bytes]:
        desk = os.path.join(self._folder, "desk")
        orders = Orders(part, self._settings, desk, listener, parent)
        environ: dict[str, Any] = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": self._figures}
        return subprocess.Popen(
            [sys.executable, "-m", "fairway.server.child", msgspec.json.encode(orders).decode()],
            pass_fds=(listener, parent),
            env=environ,
            stdin=subprocess.DEVNULL,
        )
