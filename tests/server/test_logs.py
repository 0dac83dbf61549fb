"""The logs of a server tell what was asked and how it went, and no secret."""

from __future__ import annotations

import io
import json
import logging
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway.server.logs import configure
from fairway.server.routes import ROUTES
from tests.server.live import live, served
from tests.server.test_dashboard import csrf_of

Q = "/v1/queues/default"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that is logged at the most talkative level, as a server writes it."""
    text, root = io.StringIO(), logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    configure("debug")
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(text)
    yield text
    root.handlers[:] = handlers
    root.setLevel(before)


def test_no_token_receipt_cookie_or_payload_is_logged(
    tmp_path: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(ask: object) -> None:
        raise ValueError("broken on purpose")

    with live(tmp_path) as server:
        token = server.token("submit", "work", "read", "operate")
        secrets = {
            "token": token,
            "its secret part": token.rsplit("_", 1)[1],
            "payload": "cGF5bG9hZC1zZWNyZXQ",
        }
        with server.http(token) as http:
            assert http.post(f"{Q}/messages", json={"payload": "cGF5bG9hZC1zZWNyZXQ="}).status_code == 201
            lease = http.post(f"{Q}/reserve", json={}).json()["leases"][0]
            secrets["receipt"] = lease["receipt"]
            assert (
                http.post(f"{Q}/complete", json={"leases": [{"receipt": lease["receipt"]}]}).status_code
                == 200
            )
            assert (
                http.post(f"{Q}/complete", json={"leases": [{"receipt": lease["receipt"] + "x"}]}).status_code
                < 500
            )
            client = http.post(f"{Q}/clients").json()["client"]
            secrets["client"] = client
            numbered = {"Fairway-Client": client, "Fairway-Number": "1"}
            assert http.post(f"{Q}/messages", json={"payload": ""}, headers=numbered).status_code == 201
            route = next(route for route in ROUTES if route.name == "show_stats")
            with monkeypatch.context() as patch:
                patch.setitem(route.__dict__, "handler", broken)
                assert http.get(f"{Q}/stats").status_code == 500
        with server.http(token[:-1] + ("a" if token[-1] != "a" else "b")) as http:
            assert http.get(f"{Q}/stats").status_code == 401
        with server.http() as http:
            form = {"token": token, "csrf": csrf_of(http.get("/ui/login").text)}
            assert http.post("/ui/login", data=form).status_code == 303
            cookies = dict(http.cookies)
            assert cookies
            secrets |= {f"cookie {name}": value for name, value in cookies.items()}
            assert http.get("/").status_code == 200
        with fairway.open(server.url, token=token) as q:
            q.put(b"payload-secret")
            (held,) = q.reserve(1)
            q.complete(held)
            secrets["receipt of the client"] = str(held.receipt)
    text = logged.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    routes = {line["route"] for line in lines if line["message"] == "request"}
    assert {"put", "reserve", "complete", "show_stats", "call"} <= routes, "there is something to look at"
    assert any("broken on purpose" in line.get("trace", "") for line in lines)
    for name, secret in secrets.items():
        assert secret and secret not in text, name
    assert "payload-secret" not in text


@pytest.mark.real
def test_a_server_may_have_as_many_connections_as_the_machine_lets_it(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (200, {hard}));"
    probe = few + "from fairway.server.protocol import raise_file_limit as r; r();"
    probe += "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    said = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(hard), str(hard)]
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    try:
        with served(tmp_path, "--workers", "1", "--queue", "default") as server:
            server.ready()
            for pid in (server.process.pid, *server.children("http")):
                rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
                (row,) = [line.split() for line in rows if line.startswith("Max open files")]
                assert row[3:5] == [str(hard), str(hard)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
