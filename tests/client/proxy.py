"""A proxy between a client and a server that loses what a test tells it to lose."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


class Proxy:
    """Forwards requests one by one; `lose` decides, for each, what is lost: "", "request" or "answer"."""

    def __init__(self, port: int, lose: Callable[[bytes], str] = lambda request: "") -> None:
        self.port = port
        self.lose = lose
        self.lost: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._ending = False

    def __enter__(self) -> Proxy:
        self._threads.append(threading.Thread(target=self._accept))
        self._threads[0].start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ending = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._ending:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._carry, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            self._open |= {client, server}
            try:
                while request := _message(client):
                    loses = self.lose(request)
                    if loses:
                        self.lost.append(loses)
                    if loses == "request":
                        return
                    server.sendall(request)
                    answer = _message(server)
                    if loses == "answer" or not answer:
                        return
                    client.sendall(answer)
            except OSError:
                return
            finally:
                self._open -= {client, server}


def _message(end: socket.socket) -> bytes:
    """One request or answer with a Content-Length; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = end.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        part = end.recv(65536)
        if not part:
            return b""
        body += part
    return head + b"\r\n\r\n" + body
