"""A blocking client uses a connection again, and never one that is over."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from fairway import limits
from fairway.client.address import Address
from fairway.client.connections import LOST, Connections, NotConnected

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Answers what comes as it is told to, and counts connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.answer: Callable[[socket.socket], object] = lambda end: end.sendall(GOOD)
        self.ends: list[socket.socket] = []
        self.ended = threading.Semaphore(0)  # of connections that the client closed
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return
            self.ends.append(end)
            threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        try:
            while b"\r\n\r\n" in end.recv(65536):
                self.answer(end)
        except OSError:
            return
        self.ended.release()

    def close(self) -> None:
        self._listener.close()
        for end in self.ends:
            end.close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


@pytest.fixture
def calls(server: Server) -> Iterator[Connections]:
    found = Connections(Address((f"http://127.0.0.1:{server.port}",), "default"))
    yield found
    found.close()


def call(calls: Connections, seconds: float = 30.0) -> bytes:
    return calls.call(0, "POST", "/v1/queues/default/call", b"body", seconds).body


def test_a_connection_is_used_again(server: Server, calls: Connections) -> None:
    assert [call(calls) for _ in range(3)] == [b"ok"] * 3
    assert len(server.ends) == 1


def test_one_that_the_server_closed_is_not(server: Server, calls: Connections) -> None:
    call(calls)
    ((end, _),) = calls._free[0]
    server.ends[0].shutdown(socket.SHUT_RDWR)
    assert select.select([end], [], [], 30)[0]  # the client's end has heard of it
    assert call(calls) == b"ok"
    assert len(server.ends) == 2


def test_one_that_was_kept_for_too_long_is_not(
    server: Server, calls: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLIENT_KEEP_SECONDS", 0.0)
    call(calls)
    call(calls)
    assert len(server.ends) == 2
    assert server.ended.acquire(timeout=30)


def test_one_that_the_server_says_it_closes_is_not(server: Server, calls: Connections) -> None:
    server.answer = lambda end: end.sendall(GOOD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    call(calls)
    assert server.ended.acquire(timeout=30)
    call(calls)
    assert len(server.ends) == 2


@pytest.mark.parametrize("answer", [b"", GOOD[:-1], b"nonsense\r\n\r\n"])
def test_one_whose_answer_was_not_whole_is_closed(server: Server, calls: Connections, answer: bytes) -> None:
    server.answer = lambda end: end.sendall(answer)
    with pytest.raises(LOST) as lost:
        call(calls, 0.3)
    assert type(lost.value) is not NotConnected
    assert server.ended.acquire(timeout=30)
    server.answer = lambda end: end.sendall(GOOD)
    assert call(calls) == b"ok"
    assert len(server.ends) == 2


def test_nobody_there_is_told_apart() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(NotConnected):
            call(Connections(Address((f"http://127.0.0.1:{bound.getsockname()[1]}",), "default")))
