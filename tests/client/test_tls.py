"""A queue behind a server that speaks TLS: the same queue, and no word to one that nobody vouches for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway import limits
from fairway.cli.app import run
from fairway.client.address import Address
from fairway.client.connections import Connections, NotConnected
from tests.certificates import certificate
from tests.server.live import Live, live


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """Its certificate is the one that clients here trust."""
    cert, key = certificate(tmp_path, "server")
    monkeypatch.setenv("SSL_CERT_FILE", cert)
    with live(tmp_path, tls_cert=cert, tls_key=key) as found:
        found.url = found.url.replace("http:", "https:")
        yield found


def test_a_blocking_and_an_awaiting_client_work_over_tls(server: Live) -> None:
    async def finish() -> str:
        async with fairway.aio.open(server.url) as q:
            (lease,) = await q.reserve(wait_seconds=30)
            assert lease.payload == b"sealed"
            return str(await q.complete(lease))

    with fairway.open(server.url) as q:
        sub = q.put(b"sealed")
        assert asyncio.run(finish()) == "done"
        assert q.wait(sub.id, 30).state == "completed"


def test_a_connection_over_tls_is_used_again(server: Live) -> None:
    calls = Connections(Address.of(server.url, "default", None))
    try:
        used = set[int]()
        for _ in range(5):
            assert calls.call(0, "GET", "/healthz", None, 30.0).status == 200
            used |= {id(end) for end, _ in calls._free[0]}
        assert len(used) == 1
    finally:
        calls.close()


@pytest.mark.parametrize("of", ["IP:127.0.0.1", "DNS:elsewhere.example"])
def test_nothing_is_sent_to_one_whom_nobody_vouches_for(
    of: str, server: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to one with a certificate that is not trusted, nor to one with a trusted one of another name."""
    foreign, key = certificate(tmp_path, "foreign", of)
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.0)
    if of.startswith("DNS"):
        monkeypatch.setenv("SSL_CERT_FILE", foreign)
    (tmp_path / "other").mkdir()
    with live(tmp_path / "other", tls_cert=foreign, tls_key=key) as other:
        url = f"https://127.0.0.1:{other.port}"
        calls = Connections(Address.of(url, "default", "fw_secret_token"))
        with pytest.raises(NotConnected, match="certificate"):
            calls.call(0, "GET", "/healthz", None, 30.0)
        with pytest.raises(fairway.Unreachable, match="certificate"):
            fairway.open(url)


def test_a_command_says_that_a_server_speaks_no_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "KNOCK_SECONDS", 0.2)
    with live(tmp_path) as server:
        assert run(["queue", "list", f"https://127.0.0.1:{server.port}"]) == 1
    told = capsys.readouterr().err
    assert "speaks no TLS" in told and "http://" in told and "fairway serve" not in told


def test_a_command_says_that_a_server_speaks_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command would take the closed connection for a server that is just starting, and ask it for a minute."""
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 0.0)
    cert, key = certificate(tmp_path, "own")
    with live(tmp_path, tls_cert=cert, tls_key=key) as server:
        assert run(["queue", "list", f"http://127.0.0.1:{server.port}"]) == 1
    assert "speaks TLS; say https://" in capsys.readouterr().err


def test_a_command_says_how_to_trust_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "KNOCK_SECONDS", 0.2)
    cert, key = certificate(tmp_path, "own")
    with live(tmp_path, tls_cert=cert, tls_key=key) as server:
        url = f"https://127.0.0.1:{server.port}"
        assert run(["queue", "list", url]) == 1
        told = capsys.readouterr().err
        assert "is not trusted here" in told and "SSL_CERT_FILE" in told and "fairway serve" not in told
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        assert run(["queue", "list", url]) == 0
