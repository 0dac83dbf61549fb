"""A connection carries one request after the other, is closed when it carries none, and keeps nothing of who left."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from fairway import limits
from fairway.errors import ClientUnknown
from fairway.server.callers import Callers
from fairway.server.routes import Router
from fairway.server.secret import Seals
from fairway.server.settings import settings
from fairway.server.tokens import Tokens
from tests.server.live import Live, live, until

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def reserve(seconds: float) -> bytes:
    body = json.dumps({"wait_seconds": seconds}).encode()
    head = "POST /v1/queues/default/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def connect(server: Live) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def answers(end: socket.socket, count: int) -> list[tuple[bytes, bytes]]:
    """Heads and bodies."""
    found, got = [], b""
    while len(found) < count:
        part = end.recv(65536)
        assert part, (found, got)
        got += part
        while b"\r\n\r\n" in got:
            head, _, rest = got.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            if len(rest) < size:
                break
            found.append((head, rest[:size]))
            got = rest[size:]
    assert not got
    return found


def test_a_connection_that_carries_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEEP_ALIVE_SECONDS", 4.0)
    with live(tmp_path) as server, connect(server) as idle, connect(server) as waits:
        began = time.monotonic()
        idle.sendall(HEALTH)
        waits.sendall(HEALTH)
        answers(idle, 1)
        answers(waits, 1)
        waits.sendall(reserve(5.0))
        assert idle.recv(1) == b"" and time.monotonic() - began > 3.9
        assert b" 200 " in answers(waits, 1)[0][0], "it is not closed while it is being answered"
        assert waits.recv(1) == b"", "and afterwards it is"


def test_a_connection_that_is_used_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEEP_ALIVE_SECONDS", 8.0)
    with live(tmp_path) as server, connect(server) as end:
        began = time.monotonic()
        while time.monotonic() < began + 9.0:
            end.sendall(HEALTH)
            assert b" 200 " in answers(end, 1)[0][0]
            time.sleep(0.2)


def test_requests_that_come_together_are_answered_in_order(own: Live) -> None:
    with connect(own) as end:
        stats = b"GET /v1/queues/default/stats HTTP/1.1\r\nHost: localhost\r\n\r\n"
        end.sendall(reserve(0.5) + stats + HEALTH)
        first, second, third = (json.loads(body) for _, body in answers(end, 3))
    assert first == {"leases": []}
    assert second["waiters"] == 0
    assert third == {"status": "ok"}


def test_who_leaves_while_others_of_his_requests_stand_behind_leaves_no_wait(own: Live) -> None:
    with own.http() as http:
        with connect(own) as end:
            end.sendall(reserve(50.0) + HEALTH + HEALTH)
            until(lambda: http.get("/v1/queues/default/stats").json()["waiters"] == 1)
        until(lambda: http.get("/v1/queues/default/stats").json()["waiters"] == 0)
        assert own.process.app is not None
        admission = own.process.app.admission
        until(lambda: admission.waits == 0)


def test_a_head_is_answered_without_a_body(own: Live) -> None:
    with connect(own) as end:
        end.sendall(b"HEAD /v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = b""
        while part := end.recv(65536):
            got += part
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ") and b"connection: close" in head and not body


def test_what_is_kept_of_requests_is_bounded_and_changes_nothing(tmp_path: Path) -> None:
    router = Router()
    assert router.find("/v1/queues/" + "a" * limits.PATH_CHARS_MAX) is None
    assert router._known.cache_info().currsize == 0  # pyright: ignore[reportPrivateUsage]
    assert router.find("/v1/queues/a") is router.find("/v1/queues/a") is not None

    seals = Seals(b"s" * 32)
    name = seals.name("q", "one", 7)
    assert seals.id("q", "one", name) == seals.id("q", "one", name) == 7
    long = "0" * limits.KEPT_NAME_CHARS_MAX + name
    assert seals.id("q", "one", long) == 7, "as good as before, and not kept"
    assert seals._known.cache_info().currsize == 1  # pyright: ignore[reportPrivateUsage]
    for queue, token, other in (("q", "two", name), ("p", "one", name), ("q", "one", name[:-1])):
        for _ in range(2):
            with pytest.raises(ClientUnknown):
                seals.id(queue, token, other)

    given = settings({"store": str(tmp_path / "work.db"), "port": 0}, {})
    callers = Callers(given, Tokens(given.tokens_path))
    for _ in range(3):
        callers.check_site({b"host": b"localhost", b"origin": b"http://localhost"})
        with pytest.raises(Exception, match="other sites"):
            callers.check_site({b"host": b"localhost", b"origin": b"http://evil.example"})
    assert callers._check.cache_info().currsize == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("asks", [b"h2c", b"websocket", b"tls/1.2, h2c"])
def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(own: Live, asks: bytes) -> None:
    """Java's client does before every first request, and sends its body behind that."""
    body = b'{"chunks": 2}'
    head = (
        b"POST /v1/queues/default/submissions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: Upgrade, HTTP2-Settings, keep-alive\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABk\r\n"
        b"Content-Length: %d\r\n\r\n" % (asks, len(body))
    )
    with socket.create_connection(("127.0.0.1", own.port), timeout=30) as end:
        for sent in ([head + body], [head[:40], head[40:], body[:5], body[5:]], [(head + body) * 3]):
            for part in sent:
                end.sendall(part)
                time.sleep(0.02)
            for _ in range(max(1, sent[0].count(body))):
                answer = _answer(end)
                assert answer.startswith(b"HTTP/1.1 201 ") and b'"total":2' in answer


def test_no_one_passes_through_as_through_a_proxy(own: Live) -> None:
    with socket.create_connection(("127.0.0.1", own.port), timeout=30) as end:
        end.sendall(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n")
        assert _answer(end).startswith(b"HTTP/1.1 400 ")


def _answer(end: socket.socket) -> bytes:
    """The next answer on a connection, alone."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = end.recv(1)
        assert part, head
        head += part
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while length:
        part = end.recv(length)
        assert part
        head, length = head + part, length - len(part)
    return head
