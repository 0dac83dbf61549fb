"""Several nodes on one cluster: any of them answers, the owner carries out, and nothing happens twice."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

import fairway
from fairway.client import wire
from fairway.engine.commands import Reserve
from fairway.errors import BadArgument, QueueDeleted
from fairway.server.handing import NoAnswer
from fairway.server.passes import HEADER, Passes, derived, shared_secret
from fairway.server.settings import settings
from fairway.server.tokens import OPEN
from fairway.store.cassandra import Address, Connection
from fairway.store.cassandra.owning import OwnerLease
from fairway.testing.cassandra.sharing import Address as Cluster
from fairway.testing.history import End, Header, load
from tests.cassandra.nodes import Node, NodeProcess, secret_file
from tests.kill.counting import acknowledged, on_a_call
from tests.kill.recorded import Lines
from tests.proving import number
from tests.server.test_kills import Load, drain, judge

pytestmark = pytest.mark.real
SOON_SECONDS = 60.0  # on two busy cores; by itself a takeover takes six
TAKE_OVER_SECONDS = (
    30.0  # 10 s are promised, and two busy cores get 20 more; the note of the storm says what it took
)

Start = Callable[..., Node]


def new_url(cassandra: Cluster) -> str:
    return f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"


@pytest.fixture
def url(cassandra: Cluster, connection: Connection) -> str:
    return new_url(cassandra)


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Start]:
    """One more node; the first makes the queue and owns it before there is another."""
    started: list[Node] = []

    def start(**given: Any) -> Node:
        node = Node(url, tmp_path, **{"queues": [] if started else ["default"], **given})
        started.append(node)
        node.start()
        return node.own() if node.settings.queues else node

    yield start
    for node in reversed(started):
        node.stop()


@pytest.fixture(scope="module")
def pair(
    cassandra: Cluster, connection: Connection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Node, Node]]:
    """The owner of the queue `default`, and a node that is not."""
    folder, url = tmp_path_factory.mktemp("nodes"), new_url(cassandra)
    first = Node(url, folder, queues=["default"])
    try:
        first.start().own()
        second = Node(url, folder)
        try:
            yield first, second.start()
        finally:
            second.stop()
    finally:
        first.stop()


def http(node: Node, token: str | None = None, **more: Any) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.Client(base_url=node.url, headers=headers, trust_env=False, timeout=60, **more)


def owner_and_other(pair: tuple[Node, Node], queue: str) -> tuple[Node, Node]:
    """Of a new queue; either node may be the quicker one."""
    first, second = pair
    for node in pair:
        with fairway.open(node.url, queue) as q:
            q.stats()
    owner, other = (first, second) if first.owner(queue).here else (second, first)
    assert other.owner(queue).elsewhere == owner.url
    return owner, other


def eventually(what: Callable[[], Any]) -> Any:
    until = time.monotonic() + SOON_SECONDS
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def test_any_node_answers_for_every_queue(pair: tuple[Node, Node]) -> None:
    first, second = pair
    with fairway.open(second.url) as q, fairway.open(first.url) as direct:
        sub = q.submit([b"one", b"two"], tenant="acme")
        leases = q.reserve(2, wait_seconds=30)
        assert [lease.payload for lease in leases] == [b"one", b"two"]
        q.complete(leases, results=[b"1", b"2"])
        assert q.wait(sub.id, 60).state == "completed"
        assert [result.data for result in direct.results(sub.id)] == [b"1", b"2"]
        assert q.stats().handed == direct.stats().handed == 2
    assert first.owner().here and not second.owner().here
    assert second.owner().elsewhere == first.url
    with http(second) as client:
        made = client.put("/v1/queues/other", json={"attempts_max": 3})
        assert (made.status_code, made.json()["settings"]["attempts_max"]) == (201, 3)
        assert client.put("/v1/queues/other").status_code == 200
        ids = client.post("/v1/queues/other/messages", json=[{"payload": ""}] * 3).json()["ids"]
    with http(first) as client:
        eventually(lambda: client.get("/v1/queues").json()["queues"] == ["default", "other"])
        assert client.get(f"/v1/queues/other/submissions/{ids[0]}").json()["state"] == "active"
        assert client.get("/v1/queues/none/stats").status_code == 404
        assert len(client.post("/v1/queues/other/reserve", json={"max": 9}).json()["leases"]) == 3
        assert 'queue="default"' in client.get("/metrics").text, "the owner has the figures of a queue"
    with http(second) as client:
        assert 'queue="default"' not in client.get("/metrics").text
        bad = client.get("/v1/queues/default/submissions/1")
        assert (bad.status_code, bad.json()["error"]["code"]) == (404, "not_found"), (
            "errors come back as they were"
        )
    owner_and_other(pair, "other")


def test_a_number_has_one_effect_whichever_nodes_are_asked(pair: tuple[Node, Node]) -> None:
    first, second = pair
    with http(first) as one, http(second) as other:
        name = other.post("/v1/queues/default/clients").json()["client"]
        headers = {"Fairway-Client": name, "Fairway-Number": "1"}
        sent = [
            client.post("/v1/queues/default/messages", json={"payload": "AAAA"}, headers=headers).json()[
                "ids"
            ]
            for client in (other, one, other)
        ]
    assert sent[0] == sent[1] == sent[2]


def test_a_caller_that_goes_away_leaves_no_lease_at_the_owner(pair: tuple[Node, Node]) -> None:
    first, second = pair
    with fairway.open(first.url, "gone") as q:
        for _ in range(3):
            with http(second) as client, suppress(httpx2.ReadTimeout):
                client.post("/v1/queues/gone/reserve", json={"wait_seconds": 30}, timeout=0.5)
        eventually(lambda: q.stats().waiters == 0)
        id = q.put(b"x").id
        (lease,) = q.reserve(wait_seconds=60)
        assert (lease.submission, lease.attempt) == (id, 1), "nobody had it before"
        q.complete(lease)


def test_leases_of_an_answer_that_reached_nobody_go_back(
    pair: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner has answered, and the caller is gone before the other node can send it on."""
    owner, other = owner_and_other(pair, "late")
    app = other.process.app
    assert app is not None and app._carrier is not None
    with fairway.open(owner.url, "late") as q:
        q.put_many([b"a", b"b"])
        handing = app._carrier._handing
        send, answered = handing.send, []

        async def slow(*given: Any) -> Any:
            answer = await send(*given)
            if not answered or given[2].body == wire.asked(body):
                answered.append(answer)
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
            return answer

        monkeypatch.setattr(handing, "send", slow)
        body = wire.asking(wire.Asked(Reserve(1)))
        for n, (path, media, sent) in enumerate(
            (("reserve", wire.JSON, b'{"lease_seconds": 3600}'), ("call", wire.MSGPACK, body)), 1
        ):
            head = f"POST /v1/queues/late/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
            with socket.create_connection(("127.0.0.1", other.port), timeout=60) as end:
                end.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
                eventually(lambda n=n: len(answered) == n)
        assert [b"receipt" in answer.value for answer in answered] == [True, False]
        assert all(len(answer.value) > 50 for answer in answered), "there were leases in both"
        eventually(lambda: q.stats().chunks_leased == 0)


def test_streams_come_through_and_end_with_their_token(start: Start, tmp_path: Path) -> None:
    _, second = start(), start(tokens=str(tmp_path / "theirs"))
    token, text = second.tokens.create("reader", rights=["read", "submit"])
    with (
        http(second, text) as client,
        http(second, text) as other,
        other.stream("GET", "/v1/queues/default/events", headers={"Accept": "text/event-stream"}) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        client.post("/v1/queues/default/messages", json={"payload": ""})
        assert any(line.startswith("event: submitted") for line in lines)
        second.tokens.revoke(token.id)
        since = time.monotonic()
        for _ in lines:
            pass
        assert time.monotonic() - since < 30


def test_an_answer_that_is_lost_between_nodes_has_one_effect_or_is_said_to_be_lost(
    pair: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, other = owner_and_other(pair, "lossy")
    app = other.process.app
    assert app is not None and app._carrier is not None
    handing = app._carrier._handing
    send, lose = handing.send, []

    async def lossy(*given: Any) -> Any:
        answer = await send(*given)
        if lose:
            lose.pop()
            raise NoAnswer("lost on the way")
        return answer

    monkeypatch.setattr(handing, "send", lossy)
    with (
        fairway.open(owner.url, "lossy") as direct,
        fairway.open(other.url, "lossy") as q,
        http(other) as client,
    ):
        q.put(b"a")
        lose[:] = [1]
        q.put(b"b")
        assert not lose and direct.stats().submissions_active == 2
        name = client.post("/v1/queues/lossy/clients").json()["client"]
        numbered = {"Fairway-Client": name, "Fairway-Number": "1"}
        lose[:] = [1]
        put = client.post("/v1/queues/lossy/messages", json={"payload": ""}, headers=numbered)
        assert (put.status_code, bool(lose), direct.stats().submissions_active) == (201, False, 3)
        lose[:] = [1]
        put = client.post("/v1/queues/lossy/messages", json={"payload": ""})
        assert (put.status_code, put.json()["error"]["code"]) == (503, "owner_gone")
        assert direct.stats().submissions_active == 4, "it was not sent a second time"
        lose[:] = [1]
        leases = q.reserve(4)
        assert len(leases) == 4 and q.complete(leases) == ["done"] * 4, "leases that were confirmed are good"


# -- whom nodes believe


def test_rights_are_checked_by_the_first_node_and_go_with_the_request(start: Start, tmp_path: Path) -> None:
    first, second = start(tokens=str(tmp_path / "mine")), start(tokens=str(tmp_path / "theirs"))
    first.tokens.create("somebody else", rights=["read"])
    _, reader = second.tokens.create("reader", rights=["read"])
    _, bound = second.tokens.create("bound", rights=["submit", "read"], tenant="acme")
    with http(second, reader) as client:
        assert client.get("/v1/queues/default/stats").status_code == 200
        assert client.post("/v1/queues/default/messages", json={"payload": ""}).status_code == 403
        assert client.put("/v1/queues/new").status_code == 403
    with http(first, reader) as client:
        assert client.get("/v1/queues/default/stats").status_code == 401, "it is a token of the other node"
    with http(second, bound) as client:
        made = client.post("/v1/queues/default/submissions", json={"chunks": 1}).json()
        assert made["tenant"] == "acme"
        refused = client.post("/v1/queues/default/submissions", json={"chunks": 1, "tenant": "b"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    with fairway.open(second.url, token=bound) as q:
        assert q.submission(q.put(b"x").id).tenant == "acme"


def passes_of(node: Node) -> Passes:
    return Passes(derived(shared_secret(node.settings.secret_file), "nodes"))


PUT = b'{"payload": "AA=="}'


def handed(node: Node, passes: Passes, body: bytes = PUT, **headers: str) -> httpx2.Response:
    """Send a request to a node as another node would, with this body and more headers than the pass is for."""
    told = {"content-type": "application/json", "accept": "application/json"}
    known = {name.encode(): value.encode() for name, value in told.items()}
    made = passes.make(OPEN, 0, "POST", "/v1/queues/default/messages", b"", known, PUT)
    with http(node) as client:
        sent = {**told, HEADER.decode(): made, **headers}
        return client.post("/v1/queues/default/messages", content=body, headers=sent)


def test_a_request_that_was_handed_on_is_never_handed_on_again(pair: tuple[Node, Node]) -> None:
    first, second = pair
    with fairway.open(second.url) as q:
        before = q.stats().submissions_active
        assert handed(first, passes_of(first)).status_code == 201
        refused = handed(second, passes_of(first))
        assert (refused.status_code, refused.json()["error"]["code"]) == (421, "not_owner")
        assert q.stats().submissions_active == before + 1


def test_nobody_is_believed_without_the_secret(pair: tuple[Node, Node]) -> None:
    first, _ = pair
    right, wrong = passes_of(first), Passes(derived(b"another secret", "nodes"))
    with fairway.open(first.url) as q:
        before = q.stats().submissions_active
        for answer in (
            handed(first, wrong),
            handed(first, right, b'{"payload": "AQ=="}'),
            handed(first, right, **{"idempotency-key": "k"}),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), answer.text
        made = right.make(OPEN, 0, "POST", "/v1/queues/other/messages", b"", {}, b"")
        for value in (made, "", "x", "x.y", made[:-1]):
            with http(first) as client:
                answer = client.post("/v1/queues/default/messages", headers={HEADER.decode(): value})
            assert answer.status_code == 401
        assert q.stats().submissions_active == before


def test_an_old_pass_is_refused(pair: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = pair
    now = time.time
    monkeypatch.setattr("fairway.server.passes.time.time", lambda: now() - 301)
    passes = passes_of(first)
    made = passes.make(OPEN, 0, "GET", "/v1/queues/default/stats", b"", {}, b"")
    monkeypatch.undo()
    with http(first) as client:
        answer = client.get("/v1/queues/default/stats", headers={HEADER.decode(): made, "accept": ""})
    assert (answer.status_code, "ago" in answer.text) == (401, True)


def test_nodes_with_different_secrets_do_not_answer_for_each_other(start: Start, tmp_path: Path) -> None:
    start()
    other = start(secret_file=str(secret_file(tmp_path, "another secret of more than 32 bytes")))
    with http(other) as client:
        answer = client.get("/v1/queues/default/stats")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "ours")


def test_settings_of_a_node_are_checked(tmp_path: Path) -> None:
    secret = str(secret_file(tmp_path))
    good = {"store": "cassandra://ann:pass@h1/work?tls=1", "secret_file": secret}
    made = settings(good, {})
    assert (made.shown_store, made.tokens_path) == ("cassandra://h1/work", "fairway-tokens")
    for wrong, told in (
        ({"secret_file": ""}, "share a secret"),
        ({"workers": 2}, "one process"),
        ({"advertise": "node1"}, "advertise"),
        ({"listen": "0.0.0.0", "plain_http": True}, "advertise"),
    ):
        with pytest.raises(BadArgument, match=told):
            settings({**good, **wrong}, {})
    short = tmp_path / "short"
    short.write_text("short")
    for path in (str(short), str(tmp_path / "none")):
        with pytest.raises(BadArgument, match="secret_file"):
            shared_secret(path)


# -- the owner changes


def test_a_clean_stop_of_the_owner_is_not_noticed_by_callers(start: Start) -> None:
    first, second = start(), start()
    with fairway.open(second.url) as q:
        id = q.put(b"kept").id
        answers: list[Any] = []
        waiting = threading.Thread(target=lambda: answers.append(q.reserve(2, wait_seconds=60)))
        waiting.start()
        (lease,) = eventually(lambda: answers and answers[0])
        assert lease.submission == id
        first.stop()
        q.complete(lease)
        assert q.wait(id, 60).state == "completed"
        with http(second) as client:
            assert client.post("/v1/queues/default/messages", json={"payload": ""}).status_code == 201
        waiting.join()
    assert second.owner().here


def test_a_queue_that_is_deleted_is_gone_at_every_node(start: Start) -> None:
    first, second = start(), start()
    with fairway.open(first.url) as q, fairway.open(second.url, create=False) as other:
        q.put(b"x")
        with http(second) as client:
            assert client.delete("/v1/queues/default").status_code == 204
            assert client.delete("/v1/queues/default").status_code == 404
            assert client.get("/v1/queues").json()["queues"] == []
        for handle in (q, other):
            with pytest.raises((fairway.NotFound, QueueDeleted)):
                handle.put(b"never stored")
    with fairway.open(second.url, create=True) as q:
        assert q.stats().submissions_active == 0, "a queue made later under its name is another one"


def owner_of(connection: Connection, url: str) -> str:
    """Who owns the queue, as it calls itself."""
    realm = Address.parse(url).realm
    queue, _ = connection.read("find_queue", (realm, "default"))[0]
    seen = OwnerLease(connection, queue, "").look()
    return seen.owner if seen is not None else ""


def test_a_call_in_flight_at_an_owner_that_is_paused_has_one_effect(
    url: str, tmp_path: Path, connection: Connection, start: Start
) -> None:
    """The owner has the call and is stopped; another node takes over, and the first one wakes up."""
    owner = NodeProcess(url, tmp_path, "owner").wait()
    try:
        owner.own()
        node = start(queues=[])
        with fairway.open(node.url) as q:
            q.put(b"first")
            assert node.owner().elsewhere == owner.url
            answers: list[int] = []
            os.kill(owner.process.pid, signal.SIGSTOP)
            callers = [
                threading.Thread(target=lambda n=n: answers.append(q.put(b"%d" % n).id)) for n in range(4)
            ]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join(2 * SOON_SECONDS)
            assert node.owner().here, "it took over"
            assert owner_of(connection, url).partition(" ")[2] == node.url
            os.kill(owner.process.pid, signal.SIGCONT)
            with httpx2.Client(base_url=owner.url, trust_env=False, timeout=60) as client:
                assert client.post("/v1/queues/default/messages", json={"payload": "NQ=="}).status_code == 201
            leases = q.reserve(100)
            assert sorted(lease.payload for lease in leases) == [b"0", b"1", b"2", b"3", b"5", b"first"]
            assert set(answers) < {lease.submission for lease in leases} and len(set(answers)) == 4
    finally:
        owner.kill()


@pytest.mark.timeout(400)
def test_a_kill_of_the_owner_with_calls_in_flight_loses_and_doubles_nothing(
    url: str, tmp_path: Path, connection: Connection
) -> None:
    storm(url, tmp_path, connection, 1)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_fifty_kills_of_the_owner_with_calls_in_flight(
    url: str, tmp_path: Path, connection: Connection, record_proof: Callable[..., None]
) -> None:
    storm(url, tmp_path, connection, number("OWNER_KILLS", 50), record_proof)


def storm(
    url: str,
    tmp_path: Path,
    connection: Connection,
    kills: int,
    record: Callable[..., None] = lambda *_, **__: None,
) -> None:
    """Callers know one node that lives and is not the owner; the owner is killed under their calls."""
    history = tmp_path / "history.jsonl"
    lines = Lines(history, time.time() - time.monotonic(), 0)
    lines.write(Header(drained=True, origin={"seed": 5}))
    lines.started(life=0)
    times: list[float] = []
    took: list[float] = []  # from a death to the next owner
    nodes = [NodeProcess(url, tmp_path, f"node{n}") for n in range(2)]
    try:
        nodes = [node.wait() for node in nodes]
        load_ = Load([node.url for node in nodes], lines)  # type: ignore[arg-type]
        load_.start()
        try:
            for n in range(kills):
                _calls(load_, nodes)
                owner = owner_of(connection, url).partition(" ")[2]
                at = [node.url for node in nodes].index(owner)
                times.append(lines.now())
                nodes[at].kill()
                lines.started(life=n + 1)
                eventually(lambda owner=owner: owner_of(connection, url).partition(" ")[2] not in ("", owner))
                took.append(lines.now() - times[-1])
                port = owner.rpartition(":")[2]
                nodes[at] = NodeProcess(url, tmp_path, f"again{n}", port).wait()
            _calls(load_, nodes)
        finally:
            load_.end()
        drain([node.url for node in nodes], lines)  # type: ignore[arg-type]
        assert [node.stop() for node in nodes] == [0, 0]
    finally:
        for node in nodes:
            node.kill()
    lines.close()
    found = load(history)
    violations = judge(found)
    record(
        "owners on a cluster killed",
        operations=acknowledged(found),
        faults=on_a_call(found, times),
        lost=len(violations),
        seed=5,
        note=f"{kills} kills; those with a call in flight are counted; "
        f"the next owner was there {sorted(took)[kills // 2]:.1f} s after a death, at most {max(took):.1f} s",
        history=found,
    )
    assert not violations, "\n".join(violation.story(found) for violation in violations[:5])
    assert max(took) < TAKE_OVER_SECONDS, took
    assert len([request for request in found.of("complete") if request.answered]) > 20
    refused = [line.error for line in found.lines if isinstance(line, End) and line.error]
    assert not refused, "no call may be refused with an error"


def _calls(load_: Load, nodes: list[NodeProcess]) -> None:
    """Until some calls went through."""
    before, until = load_.calls, time.monotonic() + SOON_SECONDS
    while load_.calls < before + 30:
        told = [node.log.read_text()[-2000:] for node in nodes]
        assert time.monotonic() < until, (load_.failed, told)
        time.sleep(0.05)
