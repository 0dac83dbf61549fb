"""A crowd that waits: one process with many connections, each of which asks again until it is woken.

    python bench/served/crowd.py PORT SOURCE consumers COUNT
    python bench/served/crowd.py PORT SOURCE producers COUNT    # each waits for one of the submissions told by stdin

It prints `waiting N REFUSED ASKED` every half second (how many have an unanswered call, how often one was refused and
repeated, how many calls were sent) and `woke N...` for those that were woken. A connection that is refused or lost is
made again, as clients do, and counted; nothing else may go wrong. The sockets are polled without an event loop, for the
crowd has the same cores as the server, and is not what is measured.
"""

from __future__ import annotations

import re
import select
import socket
import sys
import time
from collections import deque
from typing import Any

import msgspec

from fairway import limits
from fairway.client import wire
from fairway.engine.commands import Reserve, Wait
from fairway.server.protocol import raise_file_limit

if __name__ == "__main__":
    from server import request
else:
    from served.server import request

# At a time, in one process: the system drops what a server does not accept in time, and comes again much later. So
# each asks first without waiting, as clients do that say hello, and counts as connecting until that is answered.
CONNECTING = 100
AGAIN_SECONDS = 0.5  # after which a connection is made again
TELL_SECONDS = 0.5
POLL_SECONDS = limits.HTTP_WAIT_SECONDS_MAX
ANSWER_BYTES_MAX = 64 * 1024
IN, OUT = select.EPOLLIN, select.EPOLLOUT


class Waiter:
    """One connection."""

    __slots__ = ("asking", "command", "connecting", "got", "number", "socket")

    def __init__(self, number: int, command: Any) -> None:
        self.number = number
        self.command = command
        self.socket: socket.socket | None = None
        self.connecting = False
        self.asking = False  # it has an unanswered call that waits
        self.got = b""


class Crowd:
    """All connections of this process."""

    def __init__(self, port: int, source: str, commands: list[Any]) -> None:
        self._there = ("127.0.0.1", port)
        self._source = source
        self._todo = deque((0.0, Waiter(number, command)) for number, command in enumerate(commands))
        self._poll = select.epoll()
        self._by_fd: dict[int, Waiter] = {}
        self._connecting = 0
        self._requests: dict[float, bytes] = {}
        self._woken: list[int] = []
        self._waiting = self._asked = self._refused = 0

    def run(self) -> None:
        told = 0.0
        while True:
            self._connect()
            for fd, events in self._poll.poll(0.05):
                self._serve(self._by_fd[fd], events)
            if self._woken:
                print("woke", *self._woken, flush=True)
                self._woken.clear()
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                print("waiting", self._waiting, self._refused, self._asked, flush=True)

    def _connect(self) -> None:
        now = time.monotonic()
        while self._todo and self._connecting < CONNECTING and self._todo[0][0] <= now:
            waiter = self._todo.popleft()[1]
            waiter.socket = one = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Without, the system chooses a port for a bound address as if it had but one place to go to.
            one.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
            one.bind((self._source, 0))
            one.connect_ex(self._there)
            self._by_fd[one.fileno()] = waiter
            self._connecting += 1
            waiter.connecting = True
            self._poll.register(one.fileno(), OUT)

    def _serve(self, waiter: Waiter, events: int) -> None:
        assert waiter.socket is not None
        try:
            if events & OUT:
                self._poll.modify(waiter.socket.fileno(), IN)
                waiter.socket.send(self._request(waiter.command, 0.0))
                return
            data = waiter.socket.recv(ANSWER_BYTES_MAX)
        except OSError:
            data = b""
        if data:
            self._heard(waiter, data)
        else:
            self._lost(waiter)

    def _ask(self, waiter: Waiter) -> None:
        assert waiter.socket is not None
        waiter.socket.send(self._request(waiter.command, POLL_SECONDS))
        self._asked += 1
        self._waiting += 1
        waiter.asking = True

    def _request(self, command: Any, seconds: float) -> bytes:
        if isinstance(command, Wait):
            return request(wire.Asked(Wait(command.id, seconds)))
        if seconds not in self._requests:
            asked = wire.Asked(msgspec.structs.replace(command, wait_seconds=seconds))
            self._requests[seconds] = request(asked)
        return self._requests[seconds]

    def _heard(self, waiter: Waiter, data: bytes) -> None:
        waiter.got += data
        head, found, body = waiter.got.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if not found or length is None or len(body) < int(length[1]):
            return
        self._end_asking(waiter)
        if not head.startswith(b"HTTP/1.1 200"):
            if not head.startswith((b"HTTP/1.1 503", b"HTTP/1.1 429", b"HTTP/1.1 408")):
                raise SystemExit(f"refused: {head!r} {body[:300]!r}")
            self._lost(waiter)
            return
        answer = wire.answer(waiter.command, body)[0]
        if answer.spans if isinstance(waiter.command, Reserve) else answer.state != "active":
            self._woken.append(waiter.number)
            assert waiter.socket is not None
            self._poll.unregister(waiter.socket)  # its connection is kept, and it asks nothing more
        else:
            self._ask(waiter)

    def _lost(self, waiter: Waiter) -> None:
        assert waiter.socket is not None
        del self._by_fd[waiter.socket.fileno()]
        waiter.socket.close()
        self._end_asking(waiter)
        self._refused += 1
        self._todo.append((time.monotonic() + AGAIN_SECONDS, waiter))

    def _end_asking(self, waiter: Waiter) -> None:
        self._connecting -= waiter.connecting
        self._waiting -= waiter.asking
        waiter.connecting, waiter.asking, waiter.got = False, False, b""


def main() -> None:
    port, source, kind, *rest = sys.argv[1:]
    raise_file_limit()
    if kind == "consumers":
        commands: list[Any] = [Reserve()] * int(rest[0])
    else:
        commands = [Wait(int(id), 0.0) for id in sys.stdin.read().split()]
    Crowd(int(port), source, commands).run()


if __name__ == "__main__":
    main()
