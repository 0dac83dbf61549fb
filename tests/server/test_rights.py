"""Rights: every route under every right, made from the OpenAPI document; and what a token never gets to see."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import httpx2
import msgspec
import pytest

import fairway
from fairway.client import wire
from fairway.engine import commands as c
from fairway.engine.commands import Finish, Purge, Reserve
from fairway.face import reads as r
from fairway.server import attending, guarding, looking, openapi, views
from fairway.server.rights import NEEDED, REFUSED, RIGHTS, matches
from tests.server.live import Live, live, until

OPERATIONS = [
    (method.upper(), path, told)
    for path, methods in openapi.document()["paths"].items()
    for method, told in methods.items()
]
BODIES: dict[str, Any] = {
    "submit": {"chunks": 1},
    "put": {"payload": ""},
    "complete": {"leases": []},
    "fail": {"receipts": []},
    "renew": {"receipts": []},
    "release": {"receipts": []},
    "reserve": {},
    "join": {"consumer": "c"},
    "trim": {"consumer": "c", "epoch": 0, "seq": 0},
    "redrive_letters": {"ids": []},
    "purge_letters": {"ids": []},
    "change_tenant": {"tenant": "t", "paused": False},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("rights"), queues=["mine", "secret-plans"]) as found:
        found.token("read")  # from the first token on, everybody needs one
        yield found


@cache
def with_rights(server: Live, *rights: str, queues: tuple[str, ...] = ("*",)) -> str:
    return server.token(*rights, queues=queues)


def send(
    server: Live, token: str | None, method: str, path: str, operation: dict, queue: str
) -> httpx2.Response:
    filled = path.replace("{queue}", queue).replace("{id}", "1").replace("{index}", "0")
    body = BODIES.get(operation["operationId"])
    with server.http(token) as http:
        if operation["operationId"] == "call":
            stats = msgspec.msgpack.encode([[36], "", 0, 0])
            return http.post(filled, content=stats, headers={"Content-Type": "application/msgpack"})
        return http.request(method, filled, json=body) if body is not None else http.request(method, filled)


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[told["operationId"] for _, _, told in OPERATIONS]
)
def test_a_route_is_open_to_its_right_alone(
    server: Live, method: str, path: str, operation: dict, right: str
) -> None:
    needed = operation["x-fairway-right"]
    queue = "made-" + right if operation["operationId"] in ("delete_queue", "make_queue") else "mine"
    answer = send(server, with_rights(server, right), method, path, operation, queue)
    allowed = right == needed or needed == "any"
    if operation["operationId"] == "call":
        allowed = right == "read"  # of the command that is sent here
    assert (answer.status_code == 403) is not allowed, answer.text
    assert answer.status_code != 401 and answer.status_code < 500
    nobody = send(server, None, method, path, operation, queue)
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="fairway"')


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [one for one in OPERATIONS if "{queue}" in one[1]],
    ids=[told["operationId"] for _, path, told in OPERATIONS if "{queue}" in path],
)
def test_a_foreign_queue_is_the_same_whether_it_exists_or_not(
    server: Live, method: str, path: str, operation: dict
) -> None:
    token = with_rights(server, *RIGHTS, queues=("mine",))
    there = send(server, token, method, path, operation, "secret-plans")
    missing = send(server, token, method, path, operation, "no-such-plans")
    assert (there.status_code, there.content) == (missing.status_code, missing.content)
    assert there.status_code == 403


def test_no_name_of_a_foreign_queue_is_told_anywhere(server: Live) -> None:
    for queue, tenant in (("secret-plans", "secret-tenant"), ("mine", "me")):
        with fairway.open(server.url, queue, token=server.token(*RIGHTS)) as q:
            q.put(b"x", tenant=tenant)
    with server.http(server.token(*RIGHTS, queues=("mine", "mine-*"))) as http:
        texts = [http.get("/v1/queues").text, http.get("/metrics").text, http.get("/openapi.json").text]
        texts += [http.get("/").text, http.get("/healthz").text, http.get("/readyz").text]
        for _, path, operation in OPERATIONS:
            answer = http.get(path.replace("{queue}", "mine").replace("{id}", "1").replace("{index}", "0"))
            texts += [answer.text, str(answer.headers)]
            assert operation
        assert http.get("/v1/queues").json()["queues"] == ["mine"]
        with http.stream("GET", "/v1/queues/mine/events", headers={"Accept": "text/event-stream"}) as stream:
            for line in stream.iter_lines():
                texts.append(line)
                if line.startswith("data: "):
                    break
    assert not [text for text in texts if "secret" in text]


def test_a_revoked_token_is_refused_at_once_and_ends_its_streams(server: Live) -> None:
    token, text = server.tokens.create("short", rights=["read"])
    with server.http(text) as http, server.http(text) as other:
        assert http.get("/v1/queues/mine/stats").status_code == 200
        with other.stream("GET", "/v1/queues/mine/events", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            next(lines)
            server.tokens.revoke(token.id)
            assert http.get("/v1/queues/mine/stats").status_code == 401
            since = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - since < 30
    with pytest.raises(fairway.NotFound):
        server.tokens.revoke(token.id)


def waiting(server: Live, text: str, how: str) -> Callable[[], int]:
    """A call that waits for long; gives its status."""
    with fairway.open(server.url, "mine", token=server.token(*RIGHTS)) as q:
        lasting = q.submit(chunks=1, tenant="nobody", delay_seconds=3600).id

    def ask() -> int:
        with server.http(text, headers={"Content-Type": wire.MSGPACK}) as http:
            if how == "show_submission":
                return http.get(f"/v1/queues/mine/submissions/{lasting}?wait_seconds=60").status_code
            if how == "call":
                body = wire.asking(wire.Asked(Reserve(wait_seconds=60.0)))
                return http.post("/v1/queues/mine/call", content=body).status_code
            queue = "a-bucket" if how == "bucket" else "mine"
            body = msgspec.msgpack.encode({"wait_seconds": 60})
            return http.post(f"/v1/queues/{queue}/reserve", content=body).status_code

    return ask


@pytest.mark.parametrize("how", ["reserve", "call", "show_submission", "bucket"])
@pytest.mark.parametrize("looks", [True, False], ids=["and nothing comes", "and work comes at once"])
def test_a_call_that_waits_ends_with_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, looks: bool
) -> None:
    """Also if work comes before anybody looked at the token again: then it goes back, and nobody is told of it."""
    monkeypatch.setattr(attending, "TOKEN_LOOK_SECONDS", 0.1 if looks else 3600.0)
    with live(tmp_path, queues=["mine"]) as server, server.http(server.token(*RIGHTS)) as http:
        http.put("/v1/queues/a-bucket", json={"kind": "bucket"})
        token, text = server.tokens.create("short", rights=["work", "read"])
        app = server.process.app
        assert app is not None
        with ThreadPoolExecutor(1) as pool:
            status = pool.submit(waiting(server, text, how))
            until(lambda: app.admission.waits == 1)
            server.tokens.revoke(token.id)
            if not looks and how == "show_submission":
                (lasting,) = http.get("/v1/queues/mine/submissions").json()["submissions"]
                http.delete(f"/v1/queues/mine/submissions/{lasting['id']}")
            elif not looks:
                queue = "a-bucket" if how == "bucket" else "mine"
                http.post(f"/v1/queues/{queue}/messages", json={"payload": "eA=="})
            assert status.result(60) == 401
        until(lambda: http.get("/v1/queues/mine/stats").json()["chunks_leased"] == 0)
        until(lambda: http.get("/v1/queues/a-bucket/stats").json()["leased"] == 0)
        if not looks and how != "show_submission":
            queue = "a-bucket" if how == "bucket" else "mine"
            leases = http.post(f"/v1/queues/{queue}/reserve", json={"wait_seconds": 30}).json()["leases"]
            assert [(lease["payload"], lease["attempt"]) for lease in leases] == [("eA==", 1)]


def test_a_stream_of_results_is_cut_off_with_its_token(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not end as if it were whole."""
    monkeypatch.setattr(looking, "_STREAM_ROWS", 1)
    with fairway.open(server.url, "mine", token=server.token(*RIGHTS)) as q:
        id = q.submit(chunks=5, tenant="streamed").id
        leases = q.reserve(100)
        assert [lease.index for lease in leases if lease.submission == id] == [0, 1, 2, 3, 4]
        q.complete(leases, results=[b"result"] * len(leases))
    token, text = server.tokens.create("short", rights=["read"])
    view = views.result_view

    def revoke(result: Any) -> Any:
        if result.index == 2:
            server.tokens.revoke(token.id)
        return view(result)

    monkeypatch.setattr(views, "result_view", revoke)
    lines: list[str] = []
    ndjson = {"Accept": "application/x-ndjson"}
    with (
        server.http(text) as http,
        pytest.raises(httpx2.RemoteProtocolError),
        http.stream("GET", f"/v1/queues/mine/submissions/{id}/results", headers=ndjson) as stream,
    ):
        for line in stream.iter_lines():
            lines.append(line)
    assert [msgspec.json.decode(line)["index"] for line in lines] == [0, 1, 2]


def test_a_token_ends_when_its_time_is_over(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    text = server.token("read", seconds=3600)
    with server.http(text) as http:
        assert http.get("/v1/queues/mine/stats").status_code == 200
        now = time.time
        monkeypatch.setattr("fairway.server.tokens.time.time", lambda: now() + 3601)
        assert http.get("/v1/queues/mine/stats").status_code == 401


def test_a_token_is_stored_as_a_digest_that_only_its_owner_can_read(server: Live) -> None:
    text = server.token("read")
    path = Path(server.settings.tokens_path)
    assert text.split("_", 2)[2] not in path.read_text()  # a secret may have this sign in it, too
    assert path.stat().st_mode & 0o077 == 0
    assert Path(server.settings.secret_path).stat().st_mode & 0o077 == 0


def test_who_submits_may_not_set_weights(server: Live) -> None:
    submit = server.token("submit", "read")
    with server.http(submit) as http:
        refused = http.post("/v1/queues/mine/submissions", json={"chunks": 1, "weight": 100})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    with (
        fairway.open(server.url, "mine", token=submit) as q,
        pytest.raises(fairway.Forbidden, match="weight"),
    ):
        q.put(b"x", weight=100)


def test_a_token_may_be_bound_to_a_tenant(server: Live) -> None:
    text = server.token("submit", "read", tenant="acme")
    with server.http(text) as http:
        made = http.post("/v1/queues/mine/submissions", json={"chunks": 1}).json()
        assert http.get(f"/v1/queues/mine/submissions/{made['id']}").json()["tenant"] == "acme"
        assert http.post("/v1/queues/mine/submissions", json={"chunks": 1, "tenant": "b"}).status_code == 403
    with fairway.open(server.url, "mine", token=text) as q:
        assert q.submission(q.put(b"x").id).tenant == "acme"
        with pytest.raises(fairway.Forbidden, match="tenant"):
            q.put_many([{"payload": b"x", "tenant": "other"}])


def test_a_client_name_works_for_its_own_caller_and_queue_alone(server: Live) -> None:
    first, second = server.token(*RIGHTS), server.token(*RIGHTS)
    with server.http(first) as http:
        name = http.post("/v1/queues/mine/clients").json()["client"]
    headers = {"Fairway-Client": name, "Fairway-Number": "1"}
    for token, queue in ((second, "mine"), (first, "secret-plans")):
        with server.http(token) as http:
            answer = http.post(f"/v1/queues/{queue}/messages", json={"payload": ""}, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "client_unknown")
    with server.http(first) as http:
        assert http.post("/v1/queues/mine/messages", json={"payload": ""}, headers=headers).status_code == 201


def carried() -> set[type]:
    """Every command and read that the body of a call can hold."""
    return set(get_args(get_type_hints(wire.Asked)["command"]))


def test_every_command_that_the_wire_carries_has_a_right_or_is_refused_for_a_reason() -> None:
    assert not NEEDED.keys() & REFUSED.keys()
    assert carried() == NEEDED.keys() | REFUSED.keys()


def test_every_field_that_a_client_can_send_is_looked_at() -> None:
    with_fields = {command for command in carried() - REFUSED.keys() if msgspec.structs.fields(command)}
    assert with_fields == guarding.CHECKED


# The route that does by REST what a command does: it needs the same right.
SAME: dict[type, str] = {
    c.Register: "register_client",
    c.Goodbye: "register_client",
    c.Submit: "submit",
    c.Reserve: "reserve",
    c.Complete: "complete",
    c.Fail: "fail",
    c.Renew: "renew",
    c.Release: "release",
    c.Join: "join",
    c.Trim: "trim",
    c.Finish: "complete",
    c.Cancel: "cancel",
    c.Redrive: "redrive",
    c.Pause: "pause_queue",
    c.SetWeight: "change_tenant",
    c.Configure: "make_queue",
    c.Show: "show_submission",
    c.Wait: "show_submission",
    c.ListActive: "list_submissions",
    c.ListDead: "list_dead",
    c.Stats: "show_stats",
    c.Tenants: "list_tenants",
    c.Consumers: "list_consumers",
    c.Explain: "explain",
    c.Winners: "list_results",
    c.ShowConfig: "show_queue",
    r.ReadPages: "show_payload",
    r.Describe: "show_submission",
    r.ListEnded: "list_submissions",
    r.ListEndedDead: "list_dead",
    r.ReadResults: "list_results",
    r.ReadEvents: "list_events",
}
COMMANDS = sorted(carried(), key=lambda kind: kind.__name__)


def smallest(kind: type) -> Any:
    """A command with no more in it than it must have; whether it makes sense is asked after the right."""
    needed = {one.name: one.type for one in msgspec.structs.fields(kind) if one.required}
    return kind(**{name: (get_origin(type_) or type_)() for name, type_ in needed.items()})


def test_every_command_is_that_of_a_route_or_refused() -> None:
    assert carried() == SAME.keys() | REFUSED.keys()


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize("kind", COMMANDS, ids=[kind.__name__ for kind in COMMANDS])
def test_a_command_is_open_to_the_right_of_its_route_alone(server: Live, kind: type, right: str) -> None:
    """In the one route that carries them all, and that every Python client uses."""
    rights = {told["operationId"]: told["x-fairway-right"] for _, _, told in OPERATIONS}
    body = wire.asking(wire.Asked(smallest(kind)))
    with server.http(with_rights(server, right), headers={"Content-Type": wire.MSGPACK}) as http:
        answer = http.post("/v1/queues/mine/call", content=body)
    allowed = kind not in REFUSED and rights[SAME[kind]] in (right, "any")
    assert (answer.status_code == 403) is not allowed, answer.text
    assert answer.status_code != 401 and answer.status_code < 500, answer.text
    if not allowed and kind not in REFUSED:
        assert f"the right '{rights[SAME[kind]]}'" in str(
            wire.error_of(answer.content, answer.headers["content-type"])
        )


@pytest.mark.parametrize("command", [Purge(), Finish("c", run="nobody")], ids=lambda one: type(one).__name__)
def test_what_no_client_may_send_is_forbidden_and_the_rest_is_not(server: Live, command: Any) -> None:
    body = wire.asking(wire.Asked(command))
    with server.http(with_rights(server, *RIGHTS), headers={"Content-Type": wire.MSGPACK}) as http:
        answer = http.post("/v1/queues/mine/call", content=body)
    refused = type(command) in REFUSED
    assert (answer.status_code == 403) is refused, answer.text
    assert refused or wire.error_of(answer.content, answer.headers["content-type"]).code == "consumer_fenced"


def test_patterns_mean_what_they_show() -> None:
    assert matches("orders-eu", ("orders-*",)) and not matches("orders", ("orders-*",))
    assert not matches("Orders-eu", ("orders-*",))
    assert not matches("a", ("[ab]",)) and matches("ab", ("a?",))


def test_wrong_rights_and_patterns_are_refused(server: Live) -> None:
    for given in ({"rights": ["root"]}, {"rights": []}, {"queues": []}, {"queues": [""]}, {"seconds": 0.0}):
        with pytest.raises(fairway.BadArgument):
            server.tokens.create("x", **{"rights": ["read"], **given})  # type: ignore[arg-type]
