"""Which kills of a server's processes count: those at which a call broke off that the process had."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from fairway.client.address import Address
from fairway.client.connections import LOST, Connections, NotConnected
from tests.server.broken import Broken


def test_a_call_that_was_answered_or_never_sent_is_not_broken_off() -> None:
    """One process answers, one dies with the call in its hands, then there is nobody."""
    broken = Broken(time.monotonic)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def serve() -> None:
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b""):
            caller, _ = listener.accept()
            with caller:
                caller.recv(1000)
                caller.sendall(answer)
        listener.close()

    server = threading.Thread(target=serve)
    server.start()
    with broken.watched():
        connections = Connections(Address.of(url, "default", ""))
        assert connections.call(0, "GET", "/", None, 30).status == 200
        assert broken.spans == []
        before = time.monotonic()
        with pytest.raises(LOST):
            connections.call(0, "GET", "/", None, 30)
        ((sent, learned),) = broken.spans
        server.join()
        with pytest.raises(NotConnected):
            connections.call(0, "GET", "/", None, 30)
    assert broken.spans == [(sent, learned)]
    assert broken.met_by([before, (sent + learned) / 2, learned + 1]) == 1
