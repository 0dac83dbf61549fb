"""One test for each class of attack."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import msgspec
import pytest

import fairway
from fairway import limits
from fairway.client import wire
from fairway.engine.commands import Reserve, Stats
from fairway.errors import TooManyCalls
from fairway.face.reads import ReadResults
from fairway.model.stored import ResultPage
from fairway.server import metrics, protocol
from fairway.server.admission import Admission
from fairway.server.counting import CountedPort
from fairway.server.held import Held
from fairway.server.roots import Roots
from fairway.server.settings import settings
from tests.server.live import Live, live, until

Q = "/v1/queues/default"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("attacks")
    with live(folder, queues=["default", "other"], objects=["s3://bucket/in", "file:///data/in"]) as found:
        yield found


# -- authentication


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Basic Zm9v",
        "Bearer fw__",
        "Bearer fw_ffffffffffff_x",
        "bearer x",
        "Bearer \xff",
    ],
)
def test_a_bad_authorization_is_refused(tmp_path: Path, header: str) -> None:
    with live(tmp_path) as server:
        good = server.token("read")
        with server.http(headers={"Authorization": header.encode("latin-1")}) as http:
            assert http.get(f"{Q}/stats").status_code == 401
        for change in (good[:-1], good + "x", good.upper(), good.replace("fw_", "fx_")):
            with server.http(change) as http:
                assert http.get(f"{Q}/stats").status_code == 401


def test_an_answer_takes_as_long_for_an_unknown_id_as_for_a_wrong_secret(server: Live, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Both are compared in constant time, as often."""
    from fairway.server import tokens

    compared: list[int] = []
    real = tokens.hmac.compare_digest
    monkeypatch.setattr(tokens.hmac, "compare_digest", lambda a, b: compared.append(1) or real(a, b))
    file = tokens.Tokens(server.settings.store + "-elsewhere")
    made, text = file.create("x")
    for wrong in (f"fw_{made.id}_wrong", "fw_unknown_wrong", "nonsense", text + "x"):
        with pytest.raises(fairway.Unauthorized):
            file.find(wrong)
    assert len(compared) == 4


def test_a_server_that_others_reach_needs_tls_and_tokens(tmp_path: Path) -> None:
    with pytest.raises(fairway.BadArgument, match="no TLS"):
        settings({"listen": "0.0.0.0"}, {})
    with pytest.raises(fairway.BadArgument, match="go together"):
        settings({"tls_cert": "x"}, {})
    assert not settings({"listen": "0.0.0.0", "plain_http": True}, {}).local
    with live(tmp_path, listen="0.0.0.0", plain_http=True) as server, server.http() as http:
        assert http.get(f"{Q}/stats").status_code == 401
        assert http.get("/metrics").status_code == 401
        assert http.get("/healthz").status_code == 200


def test_a_server_that_others_reach_through_a_proxy_of_its_machine_needs_tokens(tmp_path: Path) -> None:
    assert settings({"hosts": ["localhost", "127.0.0.1"]}, {}).private
    node = {"store": "cassandra://h/k", "secret_file": "key", "advertise": "https://node1:7420"}
    assert not settings(node, {}).private
    with (
        live(tmp_path, hosts=["Queue.example.com"]) as server,
        server.http(headers={"Host": "queue.example.com"}) as http,
    ):
        assert http.get(f"{Q}/stats").status_code == 401
        assert http.get(f"{Q}/stats", headers={"Host": f"127.0.0.1:{server.port}"}).status_code == 401
        assert http.get("/ui/queues/default", follow_redirects=True).status_code == 200, "the login page"
        shown = {"Authorization": f"Bearer {server.token('read')}"}
        assert http.get(f"{Q}/stats", headers=shown).status_code == 200


def test_a_server_whose_file_of_tokens_vanishes_stays_closed(tmp_path: Path) -> None:
    """Moved away, not mounted: nobody gets in, and who brings it back does; a restart changes nothing."""
    with live(tmp_path) as server, server.http() as http:
        with pytest.raises(fairway.NotFound):
            server.tokens.revoke("nobody")
        assert http.get(f"{Q}/stats").status_code == 200, "there is no token yet"
        text = server.token("read")
        shown = {"Authorization": f"Bearer {text}"}
        assert http.get(f"{Q}/stats").status_code == 401
        tokens = Path(server.settings.tokens_path)
        tokens.rename(tmp_path / "elsewhere")
        assert http.get(f"{Q}/stats").status_code == 401
        assert http.get(f"{Q}/stats", headers=shown).status_code == 401
        Path(f"{tokens}.lock").unlink()
        assert http.get(f"{Q}/stats").status_code == 401
        Path(tmp_path / "elsewhere").rename(tokens)
        assert http.get(f"{Q}/stats", headers=shown).status_code == 200
        server.token("read")
    tokens.unlink()
    with live(tmp_path) as server, server.http() as http:
        assert http.get(f"{Q}/stats").status_code == 401


# -- receipts


def test_a_forged_receipt_does_nothing(server: Live) -> None:
    with server.http() as http:
        http.post(f"{Q}/messages", json={"payload": "eA=="})
        receipt = http.post(f"{Q}/reserve", json={}).json()["leases"][0]["receipt"]
        parts = receipt.split(".")
        wrong = [
            ".".join([*parts[:4], f"{int(parts[4], 16) ^ 1:x}"]),
            ".".join([*parts[:3], f"{int(parts[3], 16) + 1:x}", parts[4]]),
            ".".join([*parts[:2], f"{int(parts[2], 16) + 1:x}", *parts[3:]]),
        ]
        assert (
            http.post(f"{Q}/complete", json={"leases": [{"receipt": r} for r in wrong]}).json()["outcomes"]
            == ["lost"] * 3
        )
        for nonsense in (
            "0.0.0.0.-1",
            "f" * 80,
            "1.2.3.4.5.6",
            "\u0661.0.0.0.0" * 2,
            "ffffffffffffffff1.0.0.0.0",
        ):
            answer = http.post(f"{Q}/release", json={"receipts": [nonsense]})
            assert answer.status_code == 400, nonsense
        elsewhere = http.post("/v1/queues/other/complete", json={"leases": [{"receipt": receipt}]})
        assert elsewhere.json()["outcomes"] == ["lost"]
        assert http.post(f"{Q}/complete", json={"leases": [{"receipt": receipt}]}).json()["outcomes"] == [
            "done"
        ]


# -- sizes and bombs


def test_a_body_beyond_its_limit_is_not_read(server: Live) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as end:
        head = f"POST {Q}/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        end.sendall(f"{head}Content-Length: {limits.BODY_BYTES_MAX + 1}\r\n\r\n".encode())
        assert end.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_is_cut_off_at_its_limit(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES_MAX", 100_000)
    with server.http() as http:
        endless = (b"x" * 10_000 for _ in itertools.count())
        try:
            answer = http.post(
                f"{Q}/messages", content=endless, headers={"Content-Type": "application/octet-stream"}
            )
            assert answer.status_code == 413
        except (httpx2.WriteError, httpx2.RemoteProtocolError, httpx2.ReadError):
            pass  # the connection was closed while it was still sending
        assert http.get("/healthz").status_code == 200
    until(lambda: server.process.app.admission.body_bytes == 0)  # type: ignore[union-attr]


def test_compressed_bodies_are_refused(server: Live) -> None:
    with server.http() as http:
        bomb = zlib.compress(b"[" * 10**6)
        answer = http.post(
            f"{Q}/messages",
            content=bomb,
            headers={"Content-Encoding": "deflate", "Content-Type": "application/json"},
        )
        assert answer.status_code == 415


@pytest.mark.parametrize("media", ["application/json", "application/msgpack"])
def test_deep_nesting_is_refused(server: Live, media: str) -> None:
    deep = b"[" * 200_000 if media.endswith("json") else b"\x91" * 200_000
    within = (
        b'{"metadata": ' + b'{"a":' * 100_000
        if media.endswith("json")
        else b"\x81\xa8metadata" + b"\x91" * 99_999
    )
    with server.http(headers={"Content-Type": media}) as http:
        for path in (f"{Q}/submissions", f"{Q}/reserve", f"{Q}/call" if "msgpack" in media else f"{Q}/fail"):
            for body in (deep, within):
                assert http.post(path, content=body).status_code == 400
        assert http.get("/healthz").status_code == 200


def test_long_lists_heads_and_numbers_are_refused(server: Live) -> None:
    with server.http() as http:
        assert (
            http.post(f"{Q}/submissions", json=[{"chunks": 0}] * (limits.CALL_OFFERS_MAX + 1)).status_code
            == 400
        )
        assert http.post(f"{Q}/fail", json={"receipts": ["0.0.0.0.0"] * 10_001}).status_code == 400
        assert http.post(f"{Q}/submissions", json={"chunks": 10**30}).status_code == 400
        assert http.post(f"{Q}/submissions", json={"payloads": ["A" * 1_500_000]}).status_code == 400
        assert http.get(f"{Q}/submissions?limit=100000").status_code == 400
        assert http.get(f"{Q}/submissions?" + "&".join(f"a{i}=1" for i in range(99))).status_code == 400
        assert http.get("/v1/queues/" + "x" * 2000).status_code in (400, 404)
        for long in (8000, 60_000):
            assert http.get(f"{Q}/submissions?tenant=" + "x" * long).status_code == 400
        for long in (60_000, 200_000, 2_000_000):
            with suppress(httpx2.TransportError):  # closed before all of it was sent
                status = http.get("/healthz", headers={"X-Long": "x" * long}).status_code
                assert status in ((200,) if long < 64_000 else (400, 431)), long


_PART = [0, 0, 0, [[1, 0, 6000]]]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ([13, "c", "r" * 300], "run"),
        ([13, "", ""], "consumer"),
        ([17, ""], "consumer"),
        ([17, "c", -1], "epoch"),
        ([17, "c", 0, "r" * 300], "run"),
        ([17, "c", 1, "", [[4, [[0, 0, 0, [[1, 0, 0]]]]]]], "count"),
        ([17, "c", 1, "", [[4, [_PART], None, True, 2**62]]], "writer"),
        ([17, "c", 1, "", [[4, [_PART], [bytes(2**20 + 1)]]]], "result"),
        ([17, "c", 1, "", [], [[5, [_PART], "e" * (limits.ERROR_BYTES_MAX + 1)]]], "error"),
        ([17, "c", 1, "", [[4, [_PART]]], [[5, [_PART]]]], "10000 leases, not 12000"),
        ([17, "c", 1, "", [], [], bytes(2**20 + 1)], "first"),
        ([17, "c", 1, "", [], [], None, bytes(2**20 + 1)], "others"),
        ([17, "c", 1, "", [[4, [], [bytes(2**20)] * 65]]], "inline results"),
    ],
)
def test_a_batch_is_settled_within_its_limits(server: Live, command: list[object], named: str) -> None:
    body = msgspec.msgpack.encode([command, "", 0, 0])
    with server.http(headers={"Content-Type": "application/msgpack"}) as http:
        answer = http.post(f"{Q}/call", content=body)
    assert answer.status_code in (400, 413), answer.content
    assert named in answer.json()["error"]["message"]


def test_one_caller_cannot_take_all_the_room(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    admission = server.process.app.admission  # type: ignore[union-attr]
    monkeypatch.setattr(limits, "CALLER_CALLS_MAX", 0)
    with server.http() as http:
        answer = http.get(f"{Q}/stats")
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_calls")
        assert answer.headers["retry-after"] == "1"
        asked = {"content": wire.asking(wire.Asked(Stats())), "headers": {"Content-Type": wire.MSGPACK}}
        assert http.post(f"{Q}/call", **asked).status_code == 429, "so do Python clients"
        waiting = {**asked, "content": wire.asking(wire.Asked(Reserve(1)))}
        assert http.post(f"{Q}/call", **waiting).status_code == 200, "what may wait has room of its own"
        monkeypatch.setattr(limits, "CALLS_MAX", 0)
        answer = http.get(f"{Q}/stats")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        monkeypatch.undo()
        assert http.get(f"{Q}/stats").status_code == 200
    assert (admission.calls, admission.waits) == (0, 0)


def test_one_caller_cannot_take_all_the_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALLER_STREAMS_MAX", 2)
    events = {"Accept": "text/event-stream"}
    with live(tmp_path) as server, ExitStack() as open_:
        greedy, modest = (open_.enter_context(server.http(server.token("read"))) for _ in range(2))
        for _ in range(2):
            stream = open_.enter_context(greedy.stream("GET", f"{Q}/events", headers=events))
            assert stream.status_code == 200
        refused = greedy.get(f"{Q}/events", headers=events)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_calls")
        assert refused.headers["retry-after"] == "1"
        assert greedy.get(f"{Q}/stats").status_code == 200
        with modest.stream("GET", f"{Q}/events", headers=events) as stream:
            assert stream.status_code == 200
        admission = server.process.app.admission  # type: ignore[union-attr]
        open_.close()
        until(lambda: admission.streams == 0)
        assert not admission._streams_of


def test_bodies_in_memory_are_bounded(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODIES_BYTES_MAX", 1000)
    with server.http(headers={"Content-Type": "application/octet-stream"}) as http:
        assert http.post(f"{Q}/messages", content=b"x" * 2000).status_code == 503
        assert http.post(f"{Q}/messages", content=b"x" * 500).status_code == 201
    assert server.process.app.admission.body_bytes == 0  # type: ignore[union-attr]


# -- traversal, and requests to elsewhere


@pytest.mark.parametrize(
    "prefix",
    [
        "file:///etc", "file:///data/in/../../etc", "file:///data/in/%2e%2e/x", "file:///data/inside",
        "file:///data/in/..", "file://data/in", "s3://bucket/in/../x", "s3://bucket/inside", "s3://other/in",
        "s3://bucket", "http://169.254.169.254/latest", "https://bucket/in", "s3://user@bucket/in",
        "s3://bucket/in?x=1", "s3://bucket/in#x", "s3://bucket/in//x", "s3://bucket/in/\x00", "S3://bucket/in",
        "s3://bucket/in\\..\\x", "memory://bucket/in", "s3://bucket/./in", "s3://bucket/in/./x", "s3://bucket/in ",
    ],
)  # fmt: skip
def test_objects_cannot_leave_their_roots(server: Live, prefix: str) -> None:
    with pytest.raises((fairway.Forbidden, fairway.BadArgument)):
        Roots(["s3://bucket/in", "file:///data/in"]).check([prefix])
    with server.http() as http:
        for objects in (prefix, [{"prefix": prefix, "count": 1}]):
            answer = http.post(f"{Q}/submissions", json={"chunks": 1, "objects": objects})
            assert answer.status_code in (400, 403), answer.text
    with fairway.open(server.url) as q, pytest.raises((fairway.Forbidden, fairway.BadArgument)):
        q.submit(chunks=1, objects=prefix)


def test_objects_inside_their_roots_are_taken_and_never_fetched_by_the_server(server: Live) -> None:
    with server.http() as http:
        for prefix in ("s3://bucket/in", "s3://bucket/in/deep/er", "file:///data/in/x.y"):
            made = http.post(f"{Q}/submissions", json={"chunks": 1, "objects": prefix, "tenant": "objects"})
            assert made.status_code == 201, made.text
        lease = http.post(f"{Q}/reserve", json={"strategy": 'SelectOnly("tenant", "objects", Fair)'}).json()[
            "leases"
        ][0]
        assert lease["object"].startswith("s3://bucket/in/") and lease["payload"] is None


def test_without_roots_payloads_are_inline(tmp_path: Path) -> None:
    with (
        live(tmp_path) as server,
        fairway.open(server.url) as q,
        pytest.raises(fairway.Forbidden, match="inline"),
    ):
        q.submit(chunks=1, objects=f"file://{tmp_path}/x")


@pytest.mark.parametrize(
    "name", ["..", "../x", "a/b", "%2e%2e", ".hidden", "-x", "a\x00b", "work.db", "é", " "]
)
def test_queue_names_cannot_name_files(server: Live, name: str) -> None:
    before = {path.name for path in Path(server.settings.store).parent.iterdir()}
    with server.http() as http:
        answer = http.put(
            httpx2.URL(server.url + "/v1/queues/").copy_with(raw_path=b"/v1/queues/" + _quoted(name))
        )
        if name == "work.db":
            assert answer.status_code == 201
            assert http.delete("/v1/queues/work.db").status_code == 204
            return
        assert answer.status_code in (400, 404, 405), answer.text
    assert {path.name for path in Path(server.settings.store).parent.iterdir()} == before


def _quoted(name: str) -> bytes:
    from urllib.parse import quote

    return quote(name, safe="%" if "%2e" in name else "").encode()


# -- injection


_NASTY = [
    "'; DROP TABLE runs; --",
    '" OR 1=1',
    "{{7*7}}",
    "$(id)",
    "\r\nX-Evil: 1",
    "\u0000",
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("text", _NASTY)
def test_texts_are_data_and_nothing_else(server: Live, text: str) -> None:
    with server.http() as http:
        made = http.post(
            f"{Q}/submissions", json={"chunks": 1, "tenant": text, "metadata": {"k": text}, "key": text}
        )
        assert made.status_code == 201, made.text
        id = made.json()["id"]
        shown = http.get(f"{Q}/submissions/{id}").json()
        assert (shown["tenant"], shown["metadata"], shown["key"]) == (text, {"k": text}, text)
        listed = http.get(
            f"{Q}/submissions", params={"tenant": text, "metadata": json.dumps({"k": text})}
        ).json()
        assert [one["id"] for one in listed["submissions"]] == [id]
        bad = http.post(f"{Q}/reserve", json={"strategy": text})
        assert bad.status_code == 400 and "X-Evil" not in bad.headers
        http.delete(f"{Q}/submissions/{id}")
        assert http.get(f"{Q}/stats").status_code == 200
        assert "\nX-Evil" not in http.get("/metrics").text


def test_pickles_and_unknown_media_are_refused(server: Live) -> None:
    import pickle

    with server.http() as http:
        for media in ("application/x-python-pickle", "text/plain", "application/x-www-form-urlencoded", ""):
            answer = http.post(f"{Q}/messages", content=pickle.dumps("x"), headers={"Content-Type": media})
            assert answer.status_code == 415
        answer = http.post(
            f"{Q}/call", content=pickle.dumps("x"), headers={"Content-Type": "application/msgpack"}
        )
        assert answer.status_code == 400
        forbidden = msgspec.msgpack.encode([[15, [1], [], 0.0], "", 0, 0])  # Purge is the sweeper's alone
        answer = http.post(f"{Q}/call", content=forbidden, headers={"Content-Type": "application/msgpack"})
        assert answer.status_code == 403


# -- browsers: scripts, other sites, other names


def test_pages_of_other_sites_cannot_send_anything(server: Live) -> None:
    with server.http(headers={"Origin": "https://evil.example"}) as http:
        assert http.post(f"{Q}/pause").status_code == 403
        assert http.delete(Q).status_code == 403
    with server.http(headers={"Origin": server.url}) as http:
        assert http.post(f"{Q}/resume").status_code == 200
    with server.http() as http:
        answer = http.options(f"{Q}/pause", headers={"Origin": "https://evil.example"})
        assert answer.status_code in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "null", "", "//", "http://]["])
@pytest.mark.parametrize("path", [f"{Q}/stats", "/metrics", "/"])
def test_an_origin_that_is_no_address_is_another_site(server: Live, origin: str, path: str) -> None:
    with server.http(headers={"Origin": origin}) as http:
        assert http.get(path).status_code == 403


def test_a_name_that_was_bent_to_this_machine_is_refused(server: Live) -> None:
    with server.http(headers={"Host": "evil.example:7420"}) as http:
        assert http.get(f"{Q}/stats").status_code == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:7420", "x.localhost"):
        with server.http(headers={"Host": host}) as http:
            assert http.get(f"{Q}/stats").status_code == 200


def test_every_answer_has_its_security_headers(server: Live) -> None:
    with server.http() as http:
        for path in ("/", "/healthz", "/metrics", "/openapi.json", "/nothing", "/v1/queues", "/v1/nothing"):
            headers = http.get(path).headers
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["x-frame-options"] == "DENY"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"
            assert "server" not in headers


def test_an_error_tells_nothing_of_the_machine(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(ask: object) -> None:
        raise RuntimeError("/secret/path and a password")

    from fairway.server.routes import ROUTES

    route = next(route for route in ROUTES if route.name == "show_stats")
    monkeypatch.setitem(route.__dict__, "handler", broken)
    with server.http() as http:
        answer = http.get(f"{Q}/stats")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "ours" and "secret" not in answer.text


@pytest.mark.parametrize("kind", [fairway.ReadOnly, fairway.NotFairway])
def test_a_file_that_cannot_be_used_is_not_named_to_callers(
    server: Live, monkeypatch: pytest.MonkeyPatch, kind: type[fairway.FairwayError]
) -> None:
    async def broken(ask: object) -> None:
        raise kind("/secret/work.db cannot be used", accepted=["1"])

    from fairway.server.routes import ROUTES

    route = next(route for route in ROUTES if route.name == "show_stats")
    monkeypatch.setitem(route.__dict__, "handler", broken)
    with server.http() as http:
        answer = http.get(f"{Q}/stats")
    told = answer.json()["error"]
    assert (answer.status_code, told["code"], told["details"]) == (
        kind.status,
        kind.code,
        {"accepted": ["1"]},
    )
    assert "secret" not in answer.text


# -- slow clients


def test_a_slow_head_is_cut_off(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.server.protocol.HEAD_SECONDS_MAX", 0.3)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: local"):
        with socket.socket() as end:
            end.settimeout(60)
            with server.held_up():  # it finds the beginning when it begins to wait
                end.connect(("127.0.0.1", server.port))
                end.sendall(begun)
            assert end.recv(4096).startswith(b"HTTP/1.1 408")
            assert end.recv(4096) == b""


def test_a_second_slow_head_on_a_connection_is_cut_off_too(
    server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.server.protocol.HEAD_SECONDS_MAX", 0.5)
    with socket.socket() as end:
        end.settimeout(60)
        with server.held_up():  # the first one is whole when it is waited for
            end.connect(("127.0.0.1", server.port))
            end.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        while b'"ok"' not in got:
            part = end.recv(4096)
            assert part, got
            got += part
        end.sendall(b"GET /healthz HT")
        assert end.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_slow_head_behind_a_body_is_cut_off_too(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins in the packet that ends the body of the request before it."""
    monkeypatch.setattr("fairway.server.protocol.HEAD_SECONDS_MAX", 0.5)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as end:
        head = f"POST {Q}/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        end.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode())
        time.sleep(0.1)
        end.sendall(b"x" * 100_000 + b"GET /healthz HT")
        got = b""
        while part := end.recv(4096):
            got += part
        assert got.startswith(b"HTTP/1.1 201") and b"HTTP/1.1 408" in got, got


def test_a_slow_body_is_cut_off(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS_MAX", 0.3)
    with socket.create_connection(("127.0.0.1", server.port)) as end:
        end.settimeout(60)
        head = f"POST {Q}/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        end.sendall(f"{head}Content-Length: 100\r\n\r\nx".encode())
        assert end.recv(4096).startswith(b"HTTP/1.1 408")
    assert server.process.app.admission.body_bytes == 0  # type: ignore[union-attr]


def test_nothing_that_comes_behind_a_body_is_kept(server: Live) -> None:
    """Trailers of a chunked request: they would be headers that nobody checked, and as many as the sender likes."""
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    line = b"Fairway-Node: x\r\n"
    for trailers in (line, line * 100_000, b"x" * 16_000_000, b"x: " + b"y" * 16_000_000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as end:
            end.sendall(head)
            assert end.recv(12) == b"HTTP/1.1 200", "it needs no body"
            with suppress(OSError):  # the server has closed it long before all of them are sent
                end.sendall(b"0\r\n" + trailers + b"\r\n")
                while end.recv(65536):
                    pass
            with pytest.raises(OSError):
                for _ in range(100):
                    end.sendall(HEALTH)
                    time.sleep(0.01)


def test_a_call_with_trailers_is_not_carried_out(server: Live) -> None:
    head = "PUT /v1/queues/trailers HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as end:
        end.sendall(head.encode() + b"0\r\nFairway-Client: x\r\n\r\n")
        assert end.recv(12) == b"HTTP/1.1 400"
    with server.http() as http:
        assert http.get("/v1/queues/trailers").status_code == 404


def test_a_body_in_many_small_chunks_is_taken(server: Live) -> None:
    """What frames a body is longer than a head may be, and is no trailer."""
    with server.http(headers={"Content-Type": "application/octet-stream"}) as http:
        chunks = iter([b"x"] * 20_000)
        assert http.post(f"{Q}/messages", content=chunks).status_code == 201


def test_an_answer_that_nobody_reads_is_thrown_away(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.server.protocol.READER_SECONDS_MAX", 0.3)
    with server.http() as http:
        big = [{"chunks": 1, "tenant": "big", "info": "A" * 60_000} for _ in range(400)]
        for start in range(0, 400, 100):
            assert http.post(f"{Q}/submissions", json=big[start : start + 100]).status_code == 201
        with socket.socket() as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            end.connect(("127.0.0.1", server.port))
            end.sendall(
                f"GET {Q}/submissions?tenant=big&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            over = time.monotonic() + 120  # the answer is large, and is made first
            while True:  # the server resets the connection, although it has more to send
                time.sleep(0.1)
                try:
                    end.sendall(b"\r\n")
                except OSError:
                    break
                assert time.monotonic() < over
        assert http.get("/healthz").status_code == 200


@pytest.fixture(scope="module")
def long_page(server: Live) -> str:
    """The address of an answer of some megabytes, more than systems hold for a connection."""
    with server.http() as http:
        big = [{"chunks": 1, "tenant": "long", "info": "A" * 60_000} for _ in range(100)]
        for _ in range(2):
            assert http.post(f"{Q}/submissions", json=big).status_code == 201
    return f"{Q}/submissions?tenant=long&limit=1000"


@contextmanager
def _slow(server: Live, path: str) -> Iterator[socket.socket]:
    """A client that has asked and reads nothing by itself."""
    with socket.socket() as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        end.connect(("127.0.0.1", server.port))
        end.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        yield end


def test_a_long_answer_that_is_read_slowly_comes_whole(
    server: Live, long_page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.server.protocol.READER_SECONDS_MAX", 2.0)
    monkeypatch.setattr("fairway.server.protocol.READER_BYTES_MIN", 10_000)
    with server.http() as http:
        length = len(http.get(long_page).content)
    with _slow(server, long_page) as end:
        answer, due = bytearray(), 0
        while part := end.recv(65536):
            answer += part
            if (
                len(answer) > due
            ):  # a megabyte at a time: the system, too, takes more from the server in large parts
                due += 1_000_000
                time.sleep(0.3)
    assert len(answer.partition(b"\r\n\r\n")[2]) == length


def test_answers_that_nobody_reads_are_bounded(
    server: Live, long_page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission = server.process.app.admission  # type: ignore[union-attr]
    with server.http() as http:
        for limit, status in (("CALLER_UNREAD_BYTES_MAX", 429), ("UNREAD_BYTES_MAX", 503)):
            with monkeypatch.context() as patched, _slow(server, long_page):
                patched.setattr(limits, limit, 1_000_000)
                until(lambda: admission.unread_bytes > 1_000_000)
                answer = http.get(f"{Q}/stats")
                assert (answer.status_code, answer.headers["retry-after"]) == (status, "1")
            until(lambda: admission.unread_bytes == 0)  # who goes takes his answers with him
            assert http.get(f"{Q}/stats").status_code == 200


def test_reserves_whose_answers_nobody_reads_are_bounded(own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait when nothing is unread yet, and are answered all at once."""
    monkeypatch.setattr(limits, "CALLER_UNREAD_BYTES_MAX", 2_000_000)
    asked = wire.asking(wire.Asked(Reserve(6, wait_seconds=50.0)))
    head = f"POST {Q}/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: {wire.MSGPACK}\r\n"
    payloads = [bytes([n]) * 1_000_000 for n in range(30)]
    assert own.process.app is not None
    admission = own.process.app.admission
    before = _ended("call")
    with ExitStack() as open_, fairway.open(own.settings.store) as beside:
        ends = [open_.enter_context(socket.socket()) for _ in range(5)]
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            end.settimeout(60)
            end.connect(("127.0.0.1", own.port))
            end.sendall(f"{head}Content-Length: {len(asked)}\r\n\r\n".encode() + asked)
        until(lambda: beside.stats().waiters == 5)
        id = beside.submit(payloads).id
        until(lambda: beside.stats().chunks_leased == 30)
        until(lambda: _ended("call") == before + 5)
        assert admission.unread_bytes < 4_000_000
    until(lambda: admission.unread_bytes == 0)
    with own.http() as http:  # what did not fit is there for who reads
        for index, payload in enumerate(payloads[:3]):
            assert http.get(f"{Q}/submissions/{id}/chunks/{index}").content == payload


def test_work_for_a_caller_who_reads_nothing_comes_without_its_payloads(
    own: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[httpx2.Response] = []
    with own.http() as http, fairway.open(own.settings.store) as beside:
        body = {"max": 5, "wait_seconds": 50}
        thread = threading.Thread(target=lambda: answers.append(http.post(f"{Q}/reserve", json=body)))
        thread.start()
        until(lambda: beside.stats().waiters)
        with monkeypatch.context() as patched:
            patched.setattr(limits, "CALLER_UNREAD_BYTES_MAX", 0)
            beside.submit([b"x" * 10_000] * 3)
            thread.join()
        (answer,) = answers
        assert [(one["payload"], one["late"]) for one in answer.json()["leases"]] == [(None, True)] * 3
        for one in answer.json()["leases"]:
            path = f"{Q}/submissions/{one['submission']}/chunks/{one['index']}"
            assert http.get(path).content == b"x" * 10_000
        done = [{"receipt": one["receipt"]} for one in answer.json()["leases"]]
        assert http.post(f"{Q}/complete", json={"leases": done}).json()["outcomes"] == ["done"] * 3


def test_messages_for_a_caller_who_reads_nothing_go_back(own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[httpx2.Response] = []
    path = "/v1/queues/events"
    assert own.process.app is not None
    admission = own.process.app.admission
    with own.http() as http:
        http.put(path, json={"kind": "bucket"})
        thread = threading.Thread(
            target=lambda: answers.append(http.post(f"{path}/reserve", json={"wait_seconds": 50}))
        )
        thread.start()
        until(lambda: admission.waits)
        with (
            monkeypatch.context() as patched,
            fairway.open(own.settings.store, "events", kind="bucket") as beside,
        ):
            patched.setattr(limits, "CALLER_UNREAD_BYTES_MAX", 0)
            beside.put(b"x")
            thread.join()
        assert (answers[0].status_code, answers[0].headers["retry-after"]) == (429, "1")
        (lease,) = http.post(f"{path}/reserve", json={"wait_seconds": 20}).json()["leases"]
        assert lease["attempt"] == 1
        until(lambda: admission.unread_bytes == 0)


def test_results_count_for_their_answer_while_it_is_built(own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    with own.http() as http, fairway.open(own.settings.store) as beside:
        id = beside.submit([b""] * 15).id
        for start in range(0, 15, 5):  # five results in one call are read together
            some = [bytes([start + n]) * 1_000_000 for n in range(5)]
            beside.complete(beside.reserve(5), results=some)
        monkeypatch.setattr(limits, "CALLER_UNREAD_BYTES_MAX", 6_000_000)
        path = f"{Q}/submissions/{id}/results"
        pages = [http.get(path).json()]
        while (after := pages[-1]["next"]) is not None:
            pages.append(http.get(path, params={"after": after}).json())
        assert len(pages) > 1, "a page ends where there is no room for more"
        assert [one["index"] for page in pages for one in page["results"]] == [*range(15)]
        whole = http.get(path, headers={"Accept": "application/x-ndjson"}).text
        assert [json.loads(line)["index"] for line in whole.splitlines()] == [*range(15)]
        with fairway.open(own.url) as q:
            assert [one.data for one in q.results(id)] == [bytes([n]) * 1_000_000 for n in range(15)]


def test_listings_that_are_read_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them ask when nothing is unread yet, and each finds as much as one call may leave."""
    monkeypatch.setattr(limits, "CALLER_UNREAD_BYTES_MAX", 300)
    under_way, most, admission = 0, 0, None

    class Shelf:
        do = unreceived = None

        async def ask(self, command: ReadResults) -> list[ResultPage]:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1
            return [ResultPage(command.id, 0, bytes(100))]

    async def crowd() -> list[object]:
        nonlocal admission
        admission = Admission()
        asks = (CountedPort(Shelf(), Held(admission, "one")).ask(ReadResults(1)) for _ in range(50))
        return await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 30)

    told = asyncio.run(crowd())
    assert most == limits.PAGES_READ_MAX // limits.LOOK_PAGES
    assert sum(isinstance(one, TooManyCalls) for one in told) == 47
    assert admission is not None and admission.unread_bytes == 300


def test_payloads_that_are_read_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGES_READ_MAX", 10)
    most = 0

    async def crowd() -> None:
        admission, under_way = Admission(), 0

        async def read(pages: int) -> None:
            nonlocal under_way, most
            async with admission.reading(pages):
                under_way += pages
                most = max(most, under_way)
                try:
                    await asyncio.sleep(0.001)
                finally:
                    under_way -= pages

        readers = [asyncio.ensure_future(read(pages)) for pages in (4, 4, 4, 1, 12, 3, 10) * 5]
        await asyncio.sleep(0)
        for reader in readers[::5]:
            reader.cancel()
        await asyncio.wait_for(asyncio.wait(readers), 30)
        async with admission.reading(10):
            pass

    asyncio.run(crowd())
    assert most == 12, "one that is larger than the bound is read alone"


def test_a_caller_that_goes_away_leaves_no_wait_and_no_lease(server: Live) -> None:
    with server.http() as http:
        http.put("/v1/queues/leaving")
        path = "/v1/queues/leaving"
        body = json.dumps({"wait_seconds": 50})
        head = f"POST {path}/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        before = _ended("reserve")
        ends = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        for end in ends:
            end.sendall(request)
        until(lambda: http.get(f"{path}/stats").json()["waiters"] == 5)
        for end in ends:
            end.close()
        until(lambda: http.get(f"{path}/stats").json()["waiters"] == 0)
        until(lambda: _ended("reserve") == before + 5)
        # Work is there already, and the caller is gone before it is answered.
        http.post(f"{path}/messages", json=[{"payload": ""}] * 5)
        with server.held_up():
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", server.port)) as end:
                    end.sendall(request)
        until(lambda: _ended("reserve") == before + 10)  # all of them arrived, and are over
        until(lambda: http.get(f"{path}/stats").json()["chunks_leased"] == 0)
        leases = http.post(f"{path}/reserve", json={"max": 10}).json()["leases"]
        assert [one["attempt"] for one in leases] == [1] * 5


def test_leases_behind_an_answer_that_nobody_reads_go_back(server: Live, long_page: str) -> None:
    """Two requests come together: the second is carried out, and waits for the first answer to be read."""
    path = "/v1/queues/behind"
    head = f"POST {path}/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with server.http() as http:
        http.put(path)
        http.post(f"{path}/messages", json={"payload": ""})
        with socket.socket() as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            end.connect(("127.0.0.1", server.port))
            first = f"GET {long_page} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            end.sendall(f"{first}{head}Content-Length: 2\r\n\r\n{{}}".encode())
            until(lambda: http.get(f"{path}/stats").json()["chunks_leased"] == 1)
        until(lambda: http.get(f"{path}/stats").json()["chunks_leased"] == 0)
        (lease,) = http.post(f"{path}/reserve", json={}).json()["leases"]
        assert lease["attempt"] == 1


def _ended(route: str) -> int:
    """How many requests to a route are over, answered or not."""
    found = metrics.REQUESTS.collect()
    samples = [one for family in found for one in family.samples if one.name.endswith("_total")]
    return int(sum(one.value for one in samples if one.labels["route"] == route))


def test_an_address_that_the_parser_does_not_take_gets_an_error_like_any_other(server: Live) -> None:
    for head in (b"GET /v1/queues?after=" + b"9" * 70_000 + b" HTTP/1.1", b"nonsense", b"GET / HTTP/9.9"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as end:
            end.sendall(head + b"\r\nHost: localhost\r\n\r\n")
            told = b""
            while part := end.recv(65536):
                told += part
        status, _, rest = told.partition(b"\r\n")
        fields, _, body = rest.partition(b"\r\n\r\n")
        assert status.split()[1] in (b"400", b"431"), told[:200]
        assert b"content-type: application/json" in fields and b"nosniff" in fields
        assert json.loads(body)["error"]["code"] == "bad_argument"


def test_nobody_passes_for_a_node_where_there_are_none(server: Live) -> None:
    with server.http() as http:
        for given in ("", "x", "e30.0"):
            answer = http.get("/v1/queues/default/stats", headers={"Fairway-Node": given})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


def test_a_refusal_is_read_though_the_body_comes_after_it(tmp_path: Path) -> None:
    """A connection that is closed with a body under way is reset, and the reset overtakes the answer."""
    with live(tmp_path) as server:
        for size in (1, 20_000, 60_000):
            for _ in range(10):
                with socket.create_connection(("127.0.0.1", server.port), timeout=30) as wire:
                    head = (
                        b"POST /v1/no/such/address HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                        % size
                    )
                    wire.sendall(head)
                    time.sleep(0.01)  # the server has refused by now
                    wire.sendall(b"x" * size)
                    assert wire.recv(12) == b"HTTP/1.1 404"
                    wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    rest = b""
                    while part := wire.recv(65536):
                        rest += part
                    assert b"HTTP/1.1 200" in rest  # the connection goes on


def test_connections_beyond_what_a_process_can_have_are_told_so(
    own: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def healthy(end: socket.socket) -> bool:
        with suppress(OSError):  # one that is refused may be reset as it asks
            end.sendall(ask)
            told = b""
            while not told.endswith(b"}") and (part := end.recv(65536)):
                told += part
            return told.startswith(b"HTTP/1.1 200")
        return False

    monkeypatch.setattr(protocol, "connections_max", lambda: 3)
    ends = [socket.create_connection(("127.0.0.1", own.port), timeout=30) for _ in range(3)]
    try:
        for end in ends:
            assert healthy(end)
        with socket.create_connection(("127.0.0.1", own.port), timeout=30) as more:
            told = b""
            while part := more.recv(65536):
                told += part
            assert told.startswith(b"HTTP/1.1 503") and b"retry-after: 1\r\n" in told
            assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "busy"
        assert healthy(ends[0]), "those that are there go on"
        ends.pop().close()

        def taken() -> bool:
            with socket.create_connection(("127.0.0.1", own.port), timeout=30) as one:
                return healthy(one)

        until(taken)
    finally:
        for end in ends:
            end.close()


def test_an_answer_does_not_wait_for_acknowledgements(server: Live) -> None:
    """With Nagle's algorithm its second packet would come when the first is acknowledged, 40 ms later."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as end:
        end.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert end.recv(4096).startswith(b"HTTP/1.1 200")
        assert server.process._server is not None
        known = [one.transport for one in set(server.process._server.server_state.connections)]
        (mine,) = [one for one in known if one.get_extra_info("peername") == end.getsockname()]
        wire = mine.get_extra_info("socket")
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
