"""Nodes of one cluster that speak TLS to each other, and bucket queues on every one of them."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import fairway
from fairway.store.cassandra import Connection
from fairway.testing.cassandra.sharing import Address as Cluster
from tests.cassandra.nodes import Node
from tests.certificates import certificate
from tests.server.live import until

pytestmark = pytest.mark.real
Start = Callable[..., Node]


@pytest.fixture
def start(cassandra: Cluster, connection: Connection, tmp_path: Path) -> Iterator[Start]:
    url = f"{cassandra.url}fairway_tests?realm={uuid.uuid4().hex}"
    started: list[Node] = []

    def start(**given: Any) -> Node:
        started.append(Node(url, tmp_path, **{"queues": [] if started else ["default"], **given}))
        started[-1].start()
        return started[-1] if len(started) > 1 else started[-1].own()  # the first one owns the queue

    yield start
    for node in reversed(started):
        node.stop()


def test_nodes_hand_requests_on_over_tls_to_whom_their_authority_vouches_for(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path, "nodes")
    foreign, _ = certificate(tmp_path, "foreign")
    tls = {"tls_cert": cert, "tls_key": key}
    first, second = start(**tls, nodes_ca=cert), start(**tls, nodes_ca=cert)
    deaf = start(**tls, nodes_ca=foreign)
    assert first.url.startswith("https://")
    monkeypatch.setenv("SSL_CERT_FILE", cert)
    with fairway.open(second.url) as q, httpx2.Client(verify=False, trust_env=False) as http:
        id = q.put(b"over both").id
        assert second.owner().elsewhere == first.url and not second.owner().here
        (lease,) = q.reserve(wait_seconds=20)
        assert lease.submission == id and q.complete(lease) == "done"
        # One that does not trust the owner's certificate hands nothing on, and says so.
        answer = http.post(f"{deaf.url}/v1/queues/default/messages", json={"payload": ""}, timeout=60)
        assert answer.status_code in (500, 503) and q.stats().submissions_active == 0


def test_every_node_answers_for_bucket_queues(start: Start) -> None:
    first, second = start(), start()
    path = "/v1/queues/events"
    with (
        httpx2.Client(base_url=first.url, trust_env=False, timeout=60) as one,
        httpx2.Client(base_url=second.url, trust_env=False, timeout=60) as two,
    ):
        assert one.put(path, json={"kind": "bucket"}).status_code == 201
        assert two.put(path, json={"kind": "bucket", "attempts_max": 1}).status_code == 200
        assert two.get("/v1/queues").json()["queues"] == ["default", "events"]
        body = [{"payload": b64encode(b"%d" % n).decode()} for n in range(4)]
        ids = one.post(f"{path}/messages", json=body[:2]).json()["ids"]
        ids += two.post(f"{path}/messages", json=body[2:]).json()["ids"]
        leases: list[dict[str, Any]] = []
        for http in (two, one) * 8:
            asked = {"max": 2, "wait_seconds": 30}
            leases += http.post(f"{path}/reserve", json=asked).json()["leases"] if len(leases) < 4 else []
        assert sorted(lease["submission"] for lease in leases) == sorted(ids)
        done = [{"receipt": lease["receipt"]} for lease in leases[:3]]
        for http, outcome in ((one, "done"), (two, "already")):
            told = http.post(f"{path}/complete", json={"leases": done}).json()
            assert told["outcomes"] == [outcome] * 3, "a receipt is as good at every node"
        failed = {"receipts": [leases[3]["receipt"]], "error": "no", "retry": False}
        assert two.post(f"{path}/fail", json=failed).json()["outcomes"] == ["dead"]
        until(lambda: one.get(f"{path}/dead").json()["dead"], 60)
        found = one.get(f"{path}/dead").json()["dead"]
        assert [letter["submission"] for letter in found] == [leases[3]["submission"]]
        assert one.post(f"{path}/redrive", json={}).json() == {"count": 1}
        assert two.get(f"{path}/stats").json()["ready"] == 1
        assert one.delete(path).status_code == 204
        assert two.get(f"{path}/stats").status_code in (404, 410), "it had the queue open"
        assert two.post(f"{path}/messages", json=body).status_code == 404
