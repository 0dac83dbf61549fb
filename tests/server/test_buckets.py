"""Bucket queues over HTTP: the routes of fair queues as far as they have them, and the same handle in Python."""

from __future__ import annotations

import asyncio
import pickle
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import fairway
from fairway import limits
from fairway.client.buckets import FarBucketVerbs
from fairway.client.connections import Answer, Connections
from fairway.server.bucketing import HANDLERS
from fairway.server.rights import RIGHTS
from fairway.server.routes import ROUTES
from tests.server.live import Live, live, served, until

ROOT = "/v1/queues/events"


@pytest.fixture
def events(own: Live) -> Live:
    """A server with a bucket queue."""
    with own.http() as http:
        assert http.put(ROOT, json={"kind": "bucket"}).status_code == 201
    return own


def test_a_message_goes_through_the_routes(events: Live) -> None:
    with events.http() as http:
        body = [
            {"payload": b64encode(b"one").decode(), "metadata": {"kind": "a", "size": 1}},
            {"payload": ""},
        ]
        ids = http.post(f"{ROOT}/messages", json=body).json()["ids"]
        raw = http.post(
            f"{ROOT}/messages", content=b"plain", headers={"Content-Type": "application/octet-stream"}
        )
        assert raw.status_code == 201
        leases = http.post(f"{ROOT}/reserve", json={"max": 9, "wait_seconds": 5}).json()["leases"]
        found = {lease["submission"]: (b64decode(lease["payload"]), lease["metadata"]) for lease in leases}
        assert found == {
            ids[0]: (b"one", {"kind": "a", "size": 1}),
            ids[1]: (b"", {}),
            raw.json()["ids"][0]: (b"plain", {}),
        }
        receipts = [lease["receipt"] for lease in leases]
        renewed = http.post(f"{ROOT}/renew", json={"receipts": receipts, "seconds": 100}).json()
        assert renewed["outcomes"] == ["renewed"] * 3 and renewed["deadline"] > time.time() + 50
        old = http.post(f"{ROOT}/complete", json={"leases": [{"receipt": receipts[0]}]}).json()
        assert old["outcomes"] == ["lost"], "the receipt before the renewal counts no more"
        first, second, third = renewed["receipts"]
        for _ in range(2):
            done = http.post(f"{ROOT}/complete", json={"leases": [{"receipt": first}]}).json()["outcomes"]
        assert done == ["already"]
        assert http.post(f"{ROOT}/release", json={"receipts": [second]}).json()["outcomes"] == ["released"]
        failed = {"receipts": [third], "retry": False, "error": "no"}
        assert http.post(f"{ROOT}/fail", json=failed).json()["outcomes"] == ["dead"]
        until(lambda: http.get(f"{ROOT}/stats").json()["dead"] == 1)
        (letter,) = http.get(f"{ROOT}/dead").json()["dead"]
        assert (letter["error"], letter["attempts"]) == ("no", 1)
        assert http.post(f"{ROOT}/redrive", json={"ids": [letter["submission"]]}).json() == {"count": 1}
        assert http.post(f"{ROOT}/purge", json={}).json() == {"count": 0}
        sizes = http.get(f"{ROOT}/stats").json()
        assert (sizes["ready"], sizes["leased"], sizes["dead"]) == (2, 0, 0)


def test_what_a_bucket_queue_does_not_have_is_refused_by_name(events: Live) -> None:
    with events.http() as http:
        for path, body in (
            ("messages", {"payload": "", "tenant": "acme"}),
            ("messages", {"payload": "", "priority": 3}),
            ("messages", {"payload": "", "policy": "fail_fast"}),
            ("reserve", {"strategy": "Fair"}),
            ("complete", {"leases": [{"receipt": "b1.0000000", "result": ""}]}),
        ):
            answer = http.post(f"{ROOT}/{path}", json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_argument"), answer.text
        keyed = http.post(f"{ROOT}/messages", json={"payload": ""}, headers={"Idempotency-Key": "k"})
        assert keyed.status_code == 400
        assert http.put(ROOT, json={"strategy": "Fair"}).status_code == 400
        assert http.put("/v1/queues/default", json={"bucket_rows": 5}).status_code == 400
        assert http.get(f"{ROOT}/stats").json()["ready"] == 0, "nothing of it was done"
        for route in ROUTES:
            if "{queue}" in route.path and route.name not in HANDLERS and route.takes is None:
                path = route.path.format(queue="events", id="1", index="0")
                answer = http.request(route.method, path)
                assert (answer.status_code, answer.json()["error"]["code"]) == (405, "wrong_kind"), route.name
        for path in ("redrive", "purge"):
            assert http.post(f"/v1/queues/default/{path}", json={}).json()["error"]["code"] == "wrong_kind"


def test_a_name_is_a_queue_of_one_kind(events: Live) -> None:
    with events.http() as http:
        assert http.put(ROOT, json={"kind": "fair"}).json()["error"]["code"] == "wrong_kind"
        assert http.put("/v1/queues/default", json={"kind": "bucket"}).json()["error"]["code"] == "wrong_kind"
        assert http.put(ROOT, json={"attempts_max": 2}).json()["settings"]["attempts_max"] == 2
        assert http.get(ROOT).json()["kind"] == "bucket"
        assert http.get("/v1/queues").json()["queues"] == ["default", "events"]
    with pytest.raises(fairway.WrongKind):
        fairway.open(events.url, "default", kind="bucket")
    with pytest.raises(fairway.NotFound):
        fairway.open(events.url, "none", kind="bucket", create=False)


def test_a_deleted_queue_is_gone_and_its_successor_is_another(events: Live) -> None:
    with events.http() as http, fairway.open(events.url, "events", kind="bucket") as q:
        q.put(b"x")
        with fairway.open(events.settings.store, "events", kind="bucket") as beside:
            beside.delete()  # by another process, as it were: the server finds out by itself
        with pytest.raises((fairway.QueueDeleted, fairway.NotFound)):
            q.put(b"late")
        assert http.get(f"{ROOT}/stats").status_code == 404
        assert http.put(ROOT, json={"kind": "bucket"}).json()["stats"]["ready"] == 0
        assert http.delete(ROOT).status_code == 204
        assert http.delete(ROOT).status_code == 404


def test_a_caller_that_goes_away_leaves_no_lease(events: Live) -> None:
    with events.http() as http:
        for _ in range(3):
            with pytest.raises(httpx2.ReadTimeout):
                http.post(f"{ROOT}/reserve", json={"wait_seconds": 30}, timeout=0.3)
        http.post(f"{ROOT}/messages", json={"payload": ""})
        (lease,) = http.post(f"{ROOT}/reserve", json={"wait_seconds": 25}).json()["leases"]
        assert lease["attempt"] == 1


def test_rights_hold_for_bucket_queues_too(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        everything = server.token(*RIGHTS)
        with server.http(everything) as http:
            http.put(ROOT, json={"kind": "bucket"})
        for right, allowed in (
            ("submit", {"messages"}),
            ("work", {"reserve", "complete"}),
            ("read", {"stats", "dead"}),
            ("operate", {"redrive", "purge"}),
        ):
            token = server.token(right)
            told = {
                name: _once(server, token, method, f"{ROOT}/{name}", body)
                for name, (method, body) in {
                    "messages": ("POST", {"payload": ""}),
                    "reserve": ("POST", {}),
                    "complete": ("POST", {"leases": []}),
                    "stats": ("GET", None),
                    "dead": ("GET", None),
                    "redrive": ("POST", {}),
                    "purge": ("POST", {}),
                }.items()
            }
            assert {name for name, answer in told.items() if answer.status_code < 300} == allowed
            assert {answer.status_code for name, answer in told.items() if name not in allowed} == {403}
        with server.http(server.token(*RIGHTS, queues=("mine",))) as http:
            assert http.get("/v1/queues").json()["queues"] == []
            assert http.get(f"{ROOT}/stats").content == http.get("/v1/queues/no-such/stats").content


def test_the_payload_of_a_dead_letter_is_for_who_may_work(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        everything = server.token(*RIGHTS)
        with fairway.open(server.url, "events", kind="bucket", token=everything) as q:
            q.put(b"secret")
            q.fail(q.reserve(wait_seconds=20), "no", retry=False)
            until(lambda: q.stats().dead == 1)
        for rights, payload in ((("read",), None), (("read", "work"), b"secret")):
            token = server.token(*rights)
            (shown,) = _once(server, token, "GET", f"{ROOT}/dead", None).json()["dead"]
            assert shown["payload"] == (b64encode(payload).decode() if payload else None)
            assert (shown["payload_bytes"], shown["error"]) == (6, "no")
            with fairway.open(server.url, "events", kind="bucket", token=token) as q:
                assert [letter.payload for letter in q.dead()] == [payload]


def _once(server: Live, token: str, method: str, path: str, body: Any) -> httpx2.Response:
    """On a connection of its own: a server that refuses does not read the body, and closes."""
    with server.http(token) as http:
        return http.request(method, path, json=body) if body is not None else http.request(method, path)


# -- from Python


def test_the_handle_of_a_server_has_the_verbs_of_a_file(own: Live) -> None:
    with fairway.open(own.url, "events", kind="bucket") as q:
        assert q.configure(attempts_max=2, retry_delay_seconds=0.0).attempts_max == 2
        ids = q.put_many(
            [b"a", {"payload": b"b", "headers": {"n": 1}}, {"payload": b"c", "delay_seconds": 3600}]
        )
        leases = sorted(q.reserve(10, lease_seconds=30, wait_seconds=5), key=lambda lease: lease.payload)
        assert [(one.id, one.payload, one.headers) for one in leases] == [
            (ids[0], b"a", {}),
            (ids[1], b"b", {"n": 1}),
        ]
        renewed = q.renew(leases[0], 100)
        assert renewed.receipt != leases[0].receipt and renewed.deadline > leases[0].deadline
        with pytest.raises(fairway.LeaseLost):
            q.complete(leases[0])
        assert (q.complete(renewed), q.complete(renewed.receipt)) == ("done", "already")
        assert q.release([leases[1]]) == ["released"]
        (again,) = q.reserve()
        assert again.attempt == 1, "a delivery that was given back does not count"
        assert q.fail(again, "no", retry=False) == "dead"
        until(lambda: q.stats().dead == 1)
        (letter,) = q.dead()
        assert (letter.id, letter.payload, letter.headers, letter.error) == (ids[1], b"b", {"n": 1}, "no")
        assert q.redrive([letter.id]) == 1 and q.purge() == 0
        stats = q.stats()
        assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (1, 1, 0, 0)
        with pickle.loads(pickle.dumps(q)) as copy:
            assert copy.stats() == stats
        for wrong in (lambda: q.put(b"x" * 70_000), lambda: q.reserve(0), lambda: q.complete("nothing")):
            with pytest.raises(fairway.BadArgument):
                wrong()
        with pytest.raises(fairway.WrongKind):
            q.submit([b"chunk"])
        q.delete()


def test_the_awaiting_handle_of_a_server(own: Live) -> None:
    async def main() -> list[bytes]:
        async with fairway.aio.open(own.url, "events", kind="bucket") as q:
            waiting = asyncio.create_task(q.reserve(5, wait_seconds=20))
            await asyncio.sleep(0.3)
            await q.put(b"hello")
            leases = await waiting
            assert await q.complete(leases) == ["done"]
            assert [letter async for letter in q.dead()] == []
            return [lease.payload for lease in leases]

    assert asyncio.run(main()) == [b"hello"]


def test_a_cancelled_reserve_leaves_no_lease_behind(own: Live) -> None:
    async def main() -> None:
        async with fairway.aio.open(own.url, "events", kind="bucket") as q:
            waiting = asyncio.create_task(q.reserve(wait_seconds=20))
            await asyncio.sleep(0.3)
            waiting.cancel()
            await asyncio.wait((waiting,))
            assert waiting.cancelled()
            await q.put(b"for who is still there")
            (lease,) = await q.reserve(wait_seconds=10)
            assert lease.attempt == 1

    asyncio.run(main())


def test_reserves_that_wait_hold_up_no_other_verb(own: Live) -> None:
    async def main() -> None:
        async with fairway.aio.open(own.url, "events", kind="bucket") as q:
            await q.put(b"held")
            (lease,) = await q.reserve(wait_seconds=10)
            waiting = [asyncio.create_task(q.reserve(wait_seconds=30)) for _ in range(limits.LANES_MAX)]
            await asyncio.sleep(1.0)
            assert await asyncio.wait_for(q.complete(lease), 10) == "done"
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)

    asyncio.run(main())


def test_a_reserve_that_a_server_answers_early_waits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops answers its waits at once; the next one is asked for what is left of the time."""
    steps = FarBucketVerbs().reserve(wait_seconds=18)
    asked: list[float] = []

    def answer() -> Any:
        step = next(steps) if not asked else steps.send(msgspec.convert({"leases": []}, call.gives))
        return step.command  # type: ignore[union-attr]

    for _ in range(3):
        call = answer()
        asked.append(call.body["wait_seconds"])
    assert asked == pytest.approx([18, 18, 18], abs=3)
    moment = time.monotonic()
    monkeypatch.setattr("fairway.client.buckets.time.monotonic", lambda: moment + 19)
    with pytest.raises(StopIteration) as ended:
        answer()
    assert ended.value.value == []


def test_a_put_whose_answer_is_lost_is_said_to_be_unknown_and_not_sent_again(
    own: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairway.open(own.url, "events", kind="bucket") as q:
        call, lose = Connections.call, [1]

        def lossy(self: Connections, *given: Any) -> Answer:
            answer = call(self, *given)
            if lose:
                lose.pop()
                raise ConnectionResetError("lost on the way")
            return answer

        monkeypatch.setattr(Connections, "call", lossy)
        with pytest.raises(fairway.OutcomeUnknown) as raised:
            q.put(b"once")
        assert raised.value.details["accepted"] == raised.value.details["left"] == []
        (lease,) = q.reserve(5)
        assert lease.payload == b"once" and q.reserve() == [], "it was put, and once"
        lose[:] = [1]
        assert q.complete(lease) == "already", "repeated by its receipt"


def test_a_client_whose_second_part_fails_is_told_what_became_of_all(
    own: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairway.open(own.url, "parts", kind="bucket") as q:
        monkeypatch.setattr(
            "fairway.client.buckets._parts", lambda offers: [offers[:3], offers[3:5], offers[5:]]
        )
        call, calls = Connections.call, [0]

        def failing(self: Connections, *given: Any) -> Answer:
            calls[0] += 1
            if calls[0] == 2:
                raise fairway.StoreFailed("told by the server", accepted=["x"], unknown=[], left=[1])
            return call(self, *given)

        monkeypatch.setattr(Connections, "call", failing)
        with pytest.raises(fairway.StoreFailed) as raised:
            q.put_many([b"%d" % n for n in range(7)])
        details = raised.value.details
        assert len(details["accepted"]) == 4 and details["accepted"][3] == "x"
        assert details["left"] == [4, 5, 6]


def test_every_process_of_a_server_serves_bucket_queues(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2") as server:
        with fairway.open(server.url, "events", kind="bucket") as q:
            ids = {q.put(b"%d" % n) for n in range(20)}
            got: set[str] = set()
            while len(got) < 20:
                leases = q.reserve(3, wait_seconds=20)
                assert leases
                assert set(q.complete(leases)) == {"done"}
                got |= {lease.id for lease in leases}
            assert got == ids
        assert server.stop() == 0


def test_calls_are_refused_after_the_end(own: Live) -> None:
    q = fairway.open(own.url, "events", kind="bucket")
    q.close()
    q.close()
    with pytest.raises(fairway.Closed):
        q.put(b"x")
