"""A deleted queue leaves the tables of a cluster: all of it, only it, and for good."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import fairway
from fairway.errors import QueueDeleted
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.store.cassandra.fencing import DELETED
from fairway.store.cassandra.removing import bury
from fairway.store.cassandra.sweeping import buried, removal
from fairway.testing.cassandra.sharing import Address as Cluster
from fairway.testing.conformance import Owner
from tests.cassandra.nodes import Node

pytestmark = pytest.mark.real
TABLES = (
    "runs",
    "levels",
    "pairs",
    "times",
    "endings",
    "results",
    "objects",
    "keys",
    "journal",
    "events",
    "bundles",
)


@pytest.fixture
def realm() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def mine(cassandra: Cluster, connection: Connection, realm: str) -> Iterator[Connection]:
    """A connection to a realm of this test; the tables are there."""
    made = Connection.open(Address.parse(url(cassandra, realm)))
    yield made
    made.close()


def url(cassandra: Cluster, realm: str) -> str:
    return f"{cassandra.url}fairway_tests?realm={realm}"


def fill(where: str, name: str) -> None:
    """A queue with something in every table: small and large payloads and results, keys, times, metadata."""
    with fairway.open(where, name) as q:
        q.configure(retention_seconds=3600)
        ended = q.submit([b"x", b"y" * 200_000], tenant="a", key="k1", metadata={"mode": "m", "n": 1})
        leases = q.reserve(2)
        q.complete(leases, results=[b"small", b"z" * 200_000])
        assert q.submission(ended).state == "completed"
        q.submit(
            [b"w" * 70_000] * 3, tenant="b", key="k2", not_before=time.time() + 3600, metadata={"mode": "m"}
        )
        q.put_many([b"%d" % n for n in range(50)])
        q.put(b"late", deadline_seconds=3600)
        q.reserve(3)
        q.fail(q.reserve(1), "no", retry=False)


def rows(connection: Connection, queue: uuid.UUID) -> dict[str, int]:
    """How many rows of a queue each table has."""
    found: dict[str, int] = {}
    for table in TABLES:
        text = f"SELECT count(*) FROM {connection.address.keyspace}.{table} WHERE queue = %s ALLOW FILTERING"
        found[table] = connection.session.execute(text, (queue,)).one()[0]
    return found


def key_of(connection: Connection, name: str) -> uuid.UUID:
    ((queue, _),) = connection.read("find_queue", (connection.address.realm, name))
    return queue


def test_a_deleted_queue_leaves_nothing_but_its_closed_fence(
    cassandra: Cluster, mine: Connection, realm: str
) -> None:
    for name in ("goes", "stays"):
        fill(url(cassandra, realm), name)
    goes, stays = key_of(mine, "goes"), key_of(mine, "stays")
    before = rows(mine, goes)
    assert all(before.values()), before
    kept = rows(mine, stays)
    assert list(removal(mine)) == [], "nothing was deleted yet"
    assert bury(mine, "goes")
    assert [queue for _, queue in buried(mine)] == [goes]
    half = removal(mine)
    for _ in range(5):
        next(half)
    half.close()  # whoever did it died
    for _ in removal(mine):
        pass
    assert not any(rows(mine, goes).values()), rows(mine, goes)
    assert rows(mine, stays) == kept
    assert buried(mine) == []
    (fence,) = mine.read("fence", (goes,))
    assert fence[0] == DELETED and fence[-1] == b"" and not mine.read("logged", (goes, -1))
    with fairway.open(url(cassandra, realm), "goes") as q:
        assert q.stats().submissions_active == 0 and key_of(mine, "goes") != goes


def test_what_a_former_owner_writes_late_is_never_seen(mine: Connection, realm: str) -> None:
    store = CassandraStore.open(mine, "late", realm=realm)
    try:
        owner = Owner(store)
        owner.write(rows=[owner.row(1, 1)])
        assert owner.active() == [1], "a read waits until the tables have what the log has"
        queue = key_of(mine, "late")
        (written,) = _runs(mine, queue)
        assert bury(mine, "late")
        for _ in removal(mine):
            pass
        assert not any(rows(mine, queue).values())
        insert: Any = mine.bound("put_life", (queue, *written, 1, "active", 0.0, 0, b"", 2**40))
        mine.send(insert).result()
        assert rows(mine, queue)["runs"] == 0, "it is older than the removal, whatever its number"
        with pytest.raises((QueueDeleted, fairway.Fenced)):
            owner.write(rows=[owner.row(2, 2)])
        with pytest.raises((QueueDeleted, fairway.Fenced)):
            Owner(store)
    finally:
        store.close()


def _runs(connection: Connection, queue: uuid.UUID) -> list[tuple[int, int]]:
    text = f"SELECT shard, id FROM {connection.address.keyspace}.runs WHERE queue = %s ALLOW FILTERING"
    return [tuple(row) for row in connection.session.execute(text, (queue,))]


def test_two_that_remove_at_once_are_harmless(cassandra: Cluster, mine: Connection, realm: str) -> None:
    fill(url(cassandra, realm), "both")
    queue = key_of(mine, "both")
    assert bury(mine, "both")
    first, second = removal(mine), removal(mine)
    ended = 0
    while ended < 2:
        ended = sum(next(one, "end") == "end" for one in (first, second))
    assert not any(rows(mine, queue).values()) and buried(mine) == []


def test_a_server_removes_what_was_deleted_behind_its_answer(
    cassandra: Cluster, mine: Connection, realm: str, tmp_path: Path
) -> None:
    fill(url(cassandra, realm), "default")
    queue = key_of(mine, "default")
    node = Node(url(cassandra, realm), tmp_path)
    try:
        node.start()
        with httpx2.Client(base_url=node.url, trust_env=False, timeout=60) as http:
            assert http.delete("/v1/queues/default").status_code == 204
        until = time.monotonic() + 60
        while any(rows(mine, queue).values()) or buried(mine):
            assert time.monotonic() < until, rows(mine, queue)
            time.sleep(0.2)
    finally:
        node.stop()
