"""The REST routes: what each of them does, in the words of the design."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import msgspec
import pytest

import fairway
from fairway.client import wire
from fairway.engine.commands import Reserve
from fairway.errors import all_errors
from fairway.limits import GRACE_SECONDS
from fairway.server import answering
from fairway.server.desk import FarDesk, OwnDesk, Verb
from fairway.server.queues import OpenQueues
from tests.server.live import Live, live, until

_names = itertools.count()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def q(http: httpx2.Client) -> Iterator[str]:
    path = f"/v1/queues/rest-{next(_names)}"
    assert http.put(path).status_code == 201
    yield path


def reserve(http: httpx2.Client, q: str, **body: object) -> list[dict]:
    answer = http.post(f"{q}/reserve", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["leases"]


def test_a_queue_is_made_shown_configured_and_deleted(http: httpx2.Client) -> None:
    assert http.get("/v1/queues/life").status_code == 404
    made = http.put("/v1/queues/life", json={"attempts_max": 2, "strategy": "OldestFirst"})
    assert (made.status_code, made.json()["settings"]["attempts_max"]) == (201, 2)
    again = http.put("/v1/queues/life", json={"lease_seconds": 5})
    assert (again.status_code, again.json()["settings"]["strategy"]) == (200, "OldestFirst")
    assert http.get("/v1/queues/life").json()["settings"] == again.json()["settings"]
    assert "life" in http.get("/v1/queues").json()["queues"]
    http.post("/v1/queues/life/messages", json={"payload": b64(b"x")})
    assert http.delete("/v1/queues/life").status_code == 204
    assert http.delete("/v1/queues/life").status_code == 404
    assert "life" not in http.get("/v1/queues").json()["queues"]
    assert http.get("/v1/queues/life/stats").status_code == 404
    assert http.put("/v1/queues/life").status_code == 201
    assert http.get("/v1/queues/life/stats").json()["submissions_active"] == 0


def test_a_strategy_is_a_text_or_lists(http: httpx2.Client, q: str) -> None:
    lists = [
        "OrElse",
        ["SelectOnly", "mode", "preview", "OldestFirst"],
        ["MaxSimultaneous", "tenant", 1, "Fair"],
    ]
    text = 'OrElse(SelectOnly("mode", "preview", OldestFirst), MaxSimultaneous("tenant", 1, Fair))'
    for mode in ("x", "preview"):
        http.post(f"{q}/submissions", json={"chunks": 2, "tenant": "acme", "metadata": {"mode": mode}})
    assert [one["metadata"]["mode"] for one in reserve(http, q, max=9, strategy=lists)] == ["preview"] * 2
    assert not reserve(http, q, strategy=["MaxSimultaneous", "tenant", 1, "Fair"])
    put = http.put(q, json={"strategy": lists})
    assert (put.status_code, put.json()["settings"]["strategy"]) == (200, text)
    assert http.put(q, json={"strategy": ["Fair"]}).json()["settings"]["strategy"] == "Fair"
    packed = http.post(
        f"{q}/reserve",
        content=msgspec.msgpack.encode({"strategy": ["SelectOnly", "mode", "x", "Fair"]}),
        headers={"Content-Type": "application/msgpack"},
    )
    assert [one["metadata"]["mode"] for one in packed.json()["leases"]] == ["x"]


@pytest.mark.parametrize(
    ("strategy", "path"),
    [
        (["Fare"], "[0]"),
        (["OrElse", "Fair", ["PreferDistinct", "tenant", 0, "Fair"]], "[2][2]"),
        (["SelectOnly", "mode", {"a": 1}, "Fair"], "[2]"),
        ([["Fair"]], "[0]"),
    ],
)
def test_a_list_that_is_no_strategy_is_pointed_at(
    http: httpx2.Client, q: str, strategy: list[object], path: str
) -> None:
    new = f"/v1/queues/never-{next(_names)}"
    for refused in (
        http.post(f"{q}/reserve", json={"strategy": strategy}),
        http.put(q, json={"strategy": strategy}),
        http.put(new, json={"strategy": strategy}),
    ):
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["details"]["path"]) == (400, "bad_strategy", path)
        assert error["message"].startswith(f"strategy: at {path}: ")
    assert http.get(new).status_code == 404, "nothing was made"


@pytest.mark.parametrize(
    "strategy", [[], ["OrElse", "Fair", "Fair", "Fair", "Fair"], 3, {"Fair": []}, "", "Fare"]
)
def test_what_is_no_strategy_makes_no_queue(http: httpx2.Client, strategy: object) -> None:
    new = f"/v1/queues/never-{next(_names)}"
    assert http.put(new, json={"strategy": strategy}).status_code == 400
    assert http.get(new).status_code == 404


def test_a_strategy_nested_without_end_is_refused(http: httpx2.Client, q: str) -> None:
    for deep in (17, 5000, 100_000):
        body = '{"strategy": ' + '["OrElse", "Fair", ' * deep + '"Fair"' + "]" * deep + "}"
        refused = http.post(f"{q}/reserve", content=body, headers={"Content-Type": "application/json"})
        assert refused.status_code == 400, refused.text


@pytest.mark.parametrize("name", ["any", "methods", "queues", "v1", "submissions", "queue", "None"])
def test_every_name_is_a_queue_like_any_other(http: httpx2.Client, name: str) -> None:
    path = f"/v1/queues/{name}"
    assert http.put(path).status_code == 201
    assert http.get(path).json()["name"] == name
    assert http.get(f"{path}/submissions/{name}").status_code == 404
    assert http.get(f"/ui/queues/{name}").status_code == 200
    assert http.delete(path).status_code == 204


def test_a_submission_goes_its_way(http: httpx2.Client, q: str) -> None:
    sub = http.post(
        f"{q}/submissions",
        json={"payloads": [b64(b"one"), b64(b"two")], "tenant": "acme", "metadata": {"mode": "preview"}},
    )
    assert sub.status_code == 201
    id = sub.json()["id"]
    assert (sub.json()["state"], sub.json()["total"], sub.json()["tenant"]) == ("active", 2, "acme")
    leases = reserve(http, q, max=10)
    assert [(one["submission"], one["index"], base64.b64decode(one["payload"])) for one in leases] == [
        (id, 0, b"one"), (id, 1, b"two")
    ]  # fmt: skip
    done = http.post(
        f"{q}/complete", json={"leases": [{"receipt": one["receipt"], "result": b64(b"r")} for one in leases]}
    )
    assert done.json()["outcomes"] == ["done", "done"]
    ended = http.get(f"{q}/submissions/{id}", params={"wait_seconds": 10}).json()
    assert (ended["state"], ended["done"]) == ("completed", 2)
    page = http.get(f"{q}/submissions/{id}/results", params={"limit": 1}).json()
    assert page == {"results": [{"index": 0, "data": b64(b"r"), "object": None}], "next": 0}
    rest = http.get(f"{q}/submissions/{id}/results", params={"after": page["next"]}).json()
    assert [one["index"] for one in rest["results"]] == [1] and rest["next"] is None
    lines = http.get(f"{q}/submissions/{id}/results", headers={"Accept": "application/x-ndjson"}).text
    assert [msgspec.json.decode(line)["index"] for line in lines.splitlines()] == [0, 1]


def test_many_submissions_are_accepted_whole_or_not_at_all(http: httpx2.Client, q: str) -> None:
    good = [{"chunks": 3, "tenant": "a"}, {"chunks": 0}]
    made = http.post(f"{q}/submissions", json=good)
    assert [one["state"] for one in made.json()] == ["active", "completed"]
    bad = http.post(f"{q}/submissions", json=[*good, {"chunks": 1, "payloads": []}])
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_argument")
    assert http.get(f"{q}/stats").json()["submissions_active"] == 1


def test_an_idempotency_key_is_a_header_or_a_field(http: httpx2.Client, q: str) -> None:
    def put(payload: bytes, **more: object) -> httpx2.Response:
        return http.post(
            f"{q}/messages", content=payload, headers={"Content-Type": "application/octet-stream", **more}
        )

    first = put(b"x", **{"Idempotency-Key": "k1"}).json()["ids"]
    assert put(b"x", **{"Idempotency-Key": "k1"}).json()["ids"] == first
    conflict = put(b"y", **{"Idempotency-Key": "k1"})
    assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "key_conflict")
    one = http.post(f"{q}/submissions", json={"chunks": 1, "key": "s"}).json()
    assert http.post(f"{q}/submissions", json={"chunks": 1, "key": "s"}).json()["id"] == one["id"]
    two = http.post(f"{q}/submissions", json={"chunks": 1, "key": "s"}, headers={"Idempotency-Key": "t"})
    assert two.status_code == 400


def test_messages_come_as_bytes_as_json_and_as_msgpack(http: httpx2.Client, q: str) -> None:
    octets = {"Content-Type": "application/octet-stream"}
    assert http.post(f"{q}/messages?tenant=t", content=b"raw", headers=octets).status_code == 201
    assert (
        len(http.post(f"{q}/messages", json=[{"payload": b64(b"a")}, {"payload": b64(b"b")}]).json()["ids"])
        == 2
    )
    packed = msgspec.msgpack.encode({"payload": b"packed", "tenant": "t"})
    answer = http.post(
        f"{q}/messages",
        content=packed,
        headers={"Content-Type": "application/msgpack", "Accept": "application/msgpack"},
    )
    assert len(msgspec.msgpack.decode(answer.content)["ids"]) == 1
    assert {base64.b64decode(one["payload"]) for one in reserve(http, q, max=9)} == {
        b"raw",
        b"a",
        b"b",
        b"packed",
    }


def test_leases_fail_renew_and_release(http: httpx2.Client, q: str) -> None:
    http.post(f"{q}/messages", json=[{"payload": b64(b"x")} for _ in range(3)])
    failed, renewed, released = [one["receipt"] for one in reserve(http, q, max=3)]
    told = http.post(f"{q}/fail", json={"receipts": [failed], "error": "why", "retry": False})
    assert told.json()["outcomes"] == ["dead"]
    held = http.post(f"{q}/renew", json={"receipts": [renewed, failed], "seconds": 600}).json()
    assert held["outcomes"] == ["renewed", "lost"] or held["outcomes"] == ["renewed", "ended"]
    assert held["deadline"] > time.time() + 500
    assert http.post(f"{q}/release", json={"receipts": [released]}).json()["outcomes"] == ["released"]
    assert len(reserve(http, q, max=9)) == 1
    dead = http.get(f"{q}/dead").json()["dead"]
    assert [(one["error"], one["attempts"]) for one in dead] == [("why", 1)] or dead == []


def test_the_dead_are_listed_and_redriven(http: httpx2.Client, q: str) -> None:
    http.put(q, json={"attempts_max": 1})
    ids = http.post(f"{q}/messages", json=[{"payload": b64(b"x")} for _ in range(5)]).json()["ids"]
    receipts = [one["receipt"] for one in reserve(http, q, max=5)]
    http.post(f"{q}/fail", json={"receipts": receipts, "error": "bad"})
    found: list[dict] = []
    after: str | None = ""
    while after is not None:
        page = http.get(f"{q}/dead", params={"after": after, "limit": 2}).json()
        found += page["dead"]
        after = page["next"]
    assert sorted(one["submission"] for one in found) == sorted(ids)
    assert http.post(f"{q}/submissions/{ids[0]}/redrive").json()["state"] == "active"
    again = http.post(f"{q}/submissions/{ids[0]}/redrive")
    assert again.status_code == 409
    assert [one["submission"] for one in reserve(http, q, max=5)] == [ids[0]]


def test_listings_are_paged(http: httpx2.Client, q: str) -> None:
    made = http.post(f"{q}/submissions", json=[{"chunks": 1, "tenant": f"t{i % 3}"} for i in range(7)]).json()
    for one in made[::2]:
        http.delete(f"{q}/submissions/{one['id']}")
    found, after = [], "0"
    while after is not None:
        page = http.get(f"{q}/submissions", params={"after": after, "limit": 2}).json()
        found += [one["id"] for one in page["submissions"]]
        after = page["next"]
    assert found == [one["id"] for one in made]
    active = http.get(f"{q}/submissions", params={"state": "active", "tenant": "t1"}).json()["submissions"]
    assert {one["state"] for one in active} == {"active"} and {one["tenant"] for one in active} <= {"t1"}
    tenants = http.get(f"{q}/tenants", params={"limit": 1}).json()
    assert (len(tenants["tenants"]), tenants["more"]) == (1, True)


def test_tenants_are_weighed_and_paused(http: httpx2.Client, q: str) -> None:
    http.post(f"{q}/submissions", json=[{"chunks": 5, "tenant": "a"}, {"chunks": 5, "tenant": "b"}])
    assert http.patch(f"{q}/tenants", json={"tenant": "a", "weight": 3, "paused": True}).status_code == 204
    row = next(t for t in http.get(f"{q}/tenants").json()["tenants"] if t["name"] == "a")
    assert (row["weight"], row["paused"]) == (3.0, True)
    assert {one["tenant"] for one in reserve(http, q, max=9)} == {"b"}
    assert "a" in http.get(f"{q}/explain").json()["text"]
    http.post(f"{q}/pause")
    http.patch(f"{q}/tenants", json={"tenant": "a", "paused": False})
    assert reserve(http, q, max=9) == []
    assert http.post(f"{q}/resume").json()["stats"]["paused"] is False
    assert {one["tenant"] for one in reserve(http, q, max=9)} == {"a"}


def test_a_reserve_waits_for_work(http: httpx2.Client, q: str, server: Live) -> None:
    def put() -> None:
        time.sleep(0.3)
        with server.http() as other:
            other.post(f"{q}/messages", json={"payload": b64(b"late")})

    helper = threading.Thread(target=put)
    helper.start()
    since = time.monotonic()
    assert len(reserve(http, q, wait_seconds=30)) == 1
    assert time.monotonic() - since < 28
    helper.join()
    assert reserve(http, q, wait_seconds=0.1) == []


def test_named_reservations_over_rest(http: httpx2.Client, q: str) -> None:
    http.post(f"{q}/submissions", json={"chunks": 4})
    first = http.post(f"{q}/join", json={"consumer": "nightly"}).json()["epoch"]
    named = {"consumer": "nightly", "epoch": first, "seq": 1, "max": 2}
    leases = reserve(http, q, **named)
    assert [one["receipt"] for one in reserve(http, q, **named)] == [one["receipt"] for one in leases]
    second = http.post(f"{q}/join", json={"consumer": "nightly"}).json()["epoch"]
    fenced = http.post(f"{q}/reserve", json=named)
    assert (fenced.status_code, fenced.json()["error"]["code"]) == (409, "consumer_fenced")
    trim = {"consumer": "nightly", "epoch": second, "seq": 1}
    assert http.post(f"{q}/trim", json=trim).json()["error"]["code"] == "reservation_open"
    assert http.post(f"{q}/trim", json={**trim, "complete": True}).status_code == 204
    assert [one["name"] for one in http.get(f"{q}/consumers").json()["consumers"]] == ["nightly"]
    assert http.post(f"{q}/reserve", json={"consumer": "nightly", "seq": 1}).status_code == 400


def test_a_numbered_call_has_one_effect_and_one_answer(http: httpx2.Client, q: str) -> None:
    client = http.post(f"{q}/clients").json()["client"]

    def numbered(number: int, received: int = 0) -> dict[str, str]:
        return {"Fairway-Client": client, "Fairway-Number": str(number), "Fairway-Received": str(received)}

    body = {"payload": b64(b"once")}
    first = http.post(f"{q}/messages", json=body, headers=numbered(1)).json()
    assert http.post(f"{q}/messages", json=body, headers=numbered(1)).json() == first
    assert http.get(f"{q}/stats").json()["submissions_active"] == 1
    leased = http.post(f"{q}/reserve", json={}, headers=numbered(2)).json()
    assert http.post(f"{q}/reserve", json={}, headers=numbered(2)).json() == leased
    dropped = http.post(f"{q}/reserve", json={}, headers=numbered(2, 1))
    assert dropped.status_code == 200
    gone = http.post(f"{q}/messages", json=body, headers=numbered(1))
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "request_dropped")


def streamed(http: httpx2.Client, q: str, many: int, **headers: str) -> list[tuple[str, str]]:
    """So many events of a stream, each with the last id that had come by then."""
    found: list[tuple[str, str]] = []
    last = headers.get("Last-Event-ID", "")
    with http.stream("GET", f"{q}/events", headers={"Accept": "text/event-stream", **headers}) as stream:
        for line in stream.iter_lines():
            if line.startswith("id: "):
                last = line.removeprefix("id: ")
            elif line.startswith("data: "):
                found.append((last, str(json.loads(line.removeprefix("data: "))["submission"])))
                if len(found) == many:
                    break
    return found


def test_a_stream_that_comes_again_goes_on_behind_the_last_id_and_skips_nothing(
    http: httpx2.Client, q: str
) -> None:
    groups = [
        http.post(f"{q}/messages", json=[{"payload": ""}] * 3).json()["ids"],
        http.post(f"{q}/messages", json=[{"payload": ""}] * 2).json()["ids"],
    ]
    seen = streamed(http, q, 5)
    assert [id for _, id in seen] == [str(id) for group in groups for id in group]
    ids = [last for last, _ in seen]
    assert ids[:2] == ["", ""] and ids[2] == ids[3] != ids[4], "the last event of a group has its id"
    for last, rest in (("0", 0), (ids[2], 3)):
        assert [id for _, id in streamed(http, q, 5 - rest, **{"Last-Event-ID": last})] == [
            id for _, id in seen[rest:]
        ]
    for wrong in ("x", "9" * 19):
        answer = http.get(f"{q}/events", headers={"Accept": "text/event-stream", "Last-Event-ID": wrong})
        assert answer.status_code == 400


def test_events_are_paged_and_streamed(http: httpx2.Client, q: str) -> None:
    http.post(f"{q}/messages", json=[{"payload": b64(b"x")} for _ in range(3)])
    reserve(http, q, max=3)
    page = http.get(f"{q}/events", params={"limit": 1}).json()
    assert {one["what"] for one in page["events"]} == {"submitted"}
    rest = http.get(f"{q}/events", params={"after": page["next"]}).json()
    assert {one["what"] for one in rest["events"]} == {"reserved"}
    assert http.get(f"{q}/events", params={"after": rest["next"]}).json()["events"] == []
    with http.stream("GET", f"{q}/events", headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        seen = []
        for line in stream.iter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
            if seen.count("reserved") == 1:
                break
    assert seen[0] == "submitted"


@pytest.mark.parametrize(
    "bound", ["fairway.server.payloads.ANSWER_BYTES_MAX", "fairway.limits.CALLER_UNREAD_BYTES_MAX"]
)
def test_a_payload_that_does_not_fit_is_late(
    http: httpx2.Client, q: str, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(bound, 150_000)
    payloads = [bytes([i]) * 60_000 for i in range(6)]
    id = http.post(f"{q}/submissions", json={"payloads": [b64(one) for one in payloads]}).json()["id"]
    leases = sorted(reserve(http, q, max=6), key=lambda one: one["index"])
    late = [one["late"] for one in leases]
    assert len(late) == 6 and True in late and False in late
    for one in leases:
        if one["late"]:
            found = http.get(f"{q}/submissions/{id}/chunks/{one['index']}").content
        else:
            found = base64.b64decode(one["payload"])
        assert found == payloads[one["index"]]
    assert http.get(f"{q}/submissions/{id}/chunks/6").status_code == 404


def test_health_readiness_metrics_and_the_document(http: httpx2.Client, q: str) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready"}
    http.post(f"{q}/submissions", json=[{"chunks": 2, "tenant": f"t{i:02}"} for i in range(30)])
    page = http.get("/metrics").text
    name = q.rsplit("/", 1)[1]
    assert f'fairway_queue_chunks_waiting{{queue="{name}"}} 60.0' in page
    assert page.count(f'fairway_tenant_chunks_waiting{{queue="{name}"') == 20
    assert 'fairway_http_requests_total{route="submit",status="201"}' in page
    assert http.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert http.get("/nothing").status_code == 404
    wrong = http.post("/v1/queues")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


def test_a_server_that_ends_answers_those_who_wait(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        answers: list[httpx2.Response] = []

        def wait(path: str, **more: object) -> None:
            with server.http() as client:
                answers.append(client.request(str(more.pop("method")), path, **more))  # type: ignore[arg-type]

        with server.http() as client:
            id = client.post("/v1/queues/default/submissions", json={"chunks": 1}).json()["id"]
            client.post("/v1/queues/default/pause")
        calls = [
            {"method": "POST", "path": "/v1/queues/default/reserve", "json": {"wait_seconds": 50}},
            {"method": "GET", "path": f"/v1/queues/default/submissions/{id}?wait_seconds=50"},
        ]
        threads = [threading.Thread(target=wait, kwargs=call) for call in calls]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        while server.process.app.admission.waits < 2:  # type: ignore[union-attr]
            assert time.monotonic() < until
            time.sleep(0.02)
        since = time.monotonic()
        server.process.stop()
        for thread in threads:
            thread.join()
    assert time.monotonic() - since < 40, "they would have waited for longer"
    assert sorted(one.status_code for one in answers) == [200, 200]
    assert {"leases": []} in [one.json() for one in answers]


def test_a_server_that_ends_answers_those_who_wait_for_a_bucket_queue(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        answers: list[httpx2.Response] = []

        def wait() -> None:
            with server.http() as client:
                answers.append(client.post("/v1/queues/events/reserve", json={"wait_seconds": 50}))

        with server.http() as client:
            assert client.put("/v1/queues/events", json={"kind": "bucket"}).status_code == 201
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: server.process.app.admission.waits)  # type: ignore[union-attr]
        server.process.stop()
        thread.join()
    (answer,) = answers
    assert (answer.status_code, answer.json()) == (200, {"leases": []})


def test_a_wait_that_comes_as_the_server_ends_does_not_hold_it_up(tmp_path: Path) -> None:
    body = b'{"wait_seconds": 50}'
    head = (
        b"POST /v1/queues/default/reserve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    with live(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port)) as end:
        end.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        until(lambda: server.process.app.admission.waits)  # type: ignore[union-attr]
        server.process.stop()
        until(lambda: server.process.app.stopping)  # type: ignore[union-attr]
        since = time.monotonic()
        end.sendall(body[5:])
        end.settimeout(60)
        answer = b"".join(iter(lambda: end.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b'{"leases":[]}'), answer
        assert time.monotonic() - since < GRACE_SECONDS - 5  # then a call that still waits is cut off


@pytest.mark.parametrize("way", ["rest", "call"])
def test_a_server_that_ends_hands_nobody_leases_that_went_back(tmp_path: Path, way: str) -> None:
    """A chunk comes in the moment in which a wait is ended: its lease goes back, and is not told under its number."""
    answers: list[httpx2.Response] = []
    q = "/v1/queues/default"
    with live(tmp_path) as server, server.http() as http:
        client = http.post(f"{q}/clients").json()["client"]
        if way == "rest":
            numbered = {"Fairway-Client": client, "Fairway-Number": "1"}
            sent = {"url": f"{q}/reserve", "json": {"wait_seconds": 50}, "headers": numbered}
        else:
            asked = wire.asking(wire.Asked(Reserve(1, wait_seconds=50.0), client, 1))
            sent = {"url": f"{q}/call", "content": asked, "headers": {"Content-Type": wire.MSGPACK}}
        thread = threading.Thread(target=lambda: answers.append(http.post(**sent)))  # type: ignore[arg-type]
        thread.start()
        with fairway.open(server.settings.store) as beside:
            until(lambda: beside.stats().waiters)
            with server.held_up():
                server._loop.call_soon_threadsafe(server.process.app.stop)  # type: ignore[union-attr]
                beside.put(b"x")  # which the wait gets, and its end comes first
                until(lambda: beside.stats().chunks_leased)
            thread.join()
            (answer,) = answers
            assert answer.status_code == 503 and b"owner_gone" in answer.content, answer.content
            (lease,) = beside.reserve(wait_seconds=20)
            assert lease.attempt == 1


def test_an_engine_that_dies_while_it_is_asked_for_a_queue_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = OwnDesk.ask

    async def ask(self: OwnDesk, do: Verb, queue: str = "") -> bool:
        asked.append(do)
        if asked.count(do) == 1:
            raise fairway.NoHost("the engine's process went away; try again")
        return await real(self, do, queue)

    monkeypatch.setattr(OwnDesk, "ask", ask)
    with live(tmp_path) as server, server.http() as http:
        assert http.get("/v1/queues/default/stats").status_code == 200
    assert asked == ["begin", "begin", "host", "host"]


def test_a_server_is_ready_only_while_its_engine_answers(
    own: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("fairway.server.queues.READY_SECONDS", 0.3)
    assert own.process.app is not None
    queues, path = own.process.app.queues, str(tmp_path / "desk")
    with own.http() as http, socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(path)
        stopped.listen()  # so is an engine's process that was stopped: it is there, and says nothing
        assert http.get("/readyz").status_code == 200
        for far in (path, path + "-gone"):
            with monkeypatch.context() as patched:
                patched.setattr(queues, "_desk", FarDesk(far))
                answer = http.get("/readyz")
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_host")
                assert http.get("/healthz").status_code == 200
        assert http.get("/readyz").status_code == 200


def test_however_many_ask_whether_a_server_is_ready_its_engine_is_asked_by_one(own: Live) -> None:
    """Nobody needs a token to ask, and the engine has few threads to answer."""
    asked: list[str] = []

    class Slow:
        async def ask(self, do: Verb, queue: str = "") -> bool:
            asked.append(do)
            await asyncio.sleep(0.1)
            return False

    async def crowd() -> None:
        queues = OpenQueues(own.settings.store, Slow(), False)
        await queues.names()
        del asked[:]
        await asyncio.gather(*(queues.ready() for _ in range(50)))
        assert asked == ["begin"]
        await queues.ready()
        assert asked == ["begin"] * 2, "what was true once is asked again"
        await queues.close()

    asyncio.run(crowd())


def test_who_is_told_when_to_come_again_has_had_no_effect() -> None:
    """Whoever obeys `Retry-After` puts nothing twice; a 503 that leaves open what was done comes without."""
    told = {
        code
        for code, kind in all_errors().items()
        if b"retry-after" in dict(answering.refused(kind()).headers)
    }
    assert told == {"busy", "too_many_calls", "too_many_strategies", "store_failed"}
    text = Path("docs/server.md").read_text()
    for code in (*told, "owner_gone", "no_host", "host_stuck", "group_unknown", "outcome_unknown"):
        assert f"`{code}`" in text
