"""Connections of blocking callers: each carries one call at a time and is kept for the next.

Guards: a connection whose call did not end in a whole answer is closed; one that the server has closed is not used.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from urllib.parse import urlsplit

from fairway import limits
from fairway.client.address import Address

# What a call ends in if there is no answer.
LOST = (OSError, HTTPException)


class NotConnected(OSError):
    """There is nobody at this address: nothing was sent."""


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: dict[str, str]  # by their names in small letters
    body: bytes


class Connections:
    """Connections to the nodes of one address, for any number of threads.

    A call is one packet, so that the server reads it at once; http.client reads the answer. By httpx2 it costs three
    times as much.
    """

    def __init__(self, address: Address) -> None:
        self._context = address.context()
        self._nodes = [urlsplit(node) for node in address.nodes]
        lines = "".join(f"{name}: {value}\r\n" for name, value in address.headers.items())
        self._heads = [f"Host: {node.netloc}\r\n{lines}" for node in self._nodes]
        self._free: list[deque[tuple[socket.socket, float]]] = [deque() for _ in self._nodes]
        self._closed = False

    def call(self, node: int, method: str, path: str, body: bytes | None, seconds: float) -> Answer:
        """The answer of a node, which may take so long. Raises NotConnected, or another of LOST."""
        size = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._heads[node]}{size}\r\n".encode("ascii")
        end = self._kept(node) or self._connect(node)
        try:
            # For the whole of it, however soon the answer is wanted.
            end.settimeout(max(seconds, limits.BODY_SECONDS_MAX))
            end.sendall(head + (body or b""))
            end.settimeout(seconds)
            with HTTPResponse(end, method=method) as heard:
                heard.begin()
                answer = Answer(heard.status, _small(heard.headers), heard.read())
        except BaseException:
            end.close()  # also of an interrupted caller: the server gives back what it was just handing out
            raise
        if heard.will_close or len(self._free[node]) >= limits.LANES_MAX:
            end.close()
        else:
            self._free[node].append((end, time.monotonic() + limits.CLIENT_KEEP_SECONDS))
            if self._closed:  # meanwhile
                self.close()
        return answer

    def _kept(self, node: int) -> socket.socket | None:
        """The one that was used last, if it is good: the others may grow old."""
        while self._free[node]:
            try:
                end, until = self._free[node].pop()
            except IndexError:  # another thread was quicker
                return None
            if time.monotonic() < until and not _readable(end):
                return end
            end.close()
        return None

    def _connect(self, node: int) -> socket.socket:
        where = self._nodes[node]
        host, secure = where.hostname or "", where.scheme == "https"
        end = None
        try:
            end = socket.create_connection(
                (host, where.port or (443 if secure else 80)), limits.CONNECT_SECONDS
            )
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure and self._context is not None:
                end = self._context.wrap_socket(end, server_hostname=host)
        except BaseException as error:
            if end is not None:
                end.close()
            if isinstance(error, OSError):
                raise NotConnected(f"{type(error).__name__}: {error}".rstrip(": ")) from error
            raise
        return end

    def close(self) -> None:
        self._closed = True
        for free in self._free:
            with suppress(IndexError):  # another thread may take the last
                while True:
                    free.pop()[0].close()


def _small(headers: HTTPMessage) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _readable(end: socket.socket) -> bool:
    """Whether something comes that nobody asked for, which is the end."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(0))
