"""A proxy in front of a node, which can be cut: connections stay open and nothing comes through."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards to one address while it is whole. `with` it."""

    def __init__(self, host: str, port: int, at: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self._target = (host, port)
        self._whole = threading.Event()
        self._whole.set()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._server = socket.create_server(at)
        self.port = self._server.getsockname()[1]

    def cut(self) -> None:
        self._whole.clear()

    def heal(self) -> None:
        self._whole.set()

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._whole.set()
        for one in (self._server, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _start(self, run: object, *values: object) -> None:
        thread = threading.Thread(target=run, args=values, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                self._whole.wait()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._open += [near, far]
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
