"""Three real nodes with clocks 5 s apart, killed and paused under load: nothing accepted is lost, nothing comes back.

Guards: what one node is told to delete by its clock never hides what another writes later by its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from secrets import randbits, token_bytes, token_hex
from typing import Any

import pytest
from cassandra.policies import WhiteListRoundRobinPolicy

import fairway
from fairway.bucket import naming
from fairway.bucket import statements as s
from fairway.bucket.places import place_after
from fairway.bucket.rows import Bucket, Message
from fairway.bucket.statements import APPLIED, UNKNOWN, Outcome
from fairway.store.cassandra import Address, Connection
from fairway.store.cassandra.bucket_reading import plain, to_uuid
from fairway.store.cassandra.buckets import CassandraBuckets
from fairway.store.cassandra.opening import prepare
from fairway.testing.bucket.checker import check_history
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.sharing import needed
from tests.bucket.directing import Stage
from tests.bucket.storming import Storm, stories
from tests.bucket.worker_script import Recorded, consume, produce
from tests.cassandra.clocks import skewed
from tests.proving import number

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LONG_SECONDS = number("CASSANDRA_STORM_SECONDS", 600)  # in `make proof`
SKEW_MILLIS = (0, 5000, -5000)  # the clients' clock is the first one's
PATIENCE_SECONDS = 60.0
PUT_REST_SECONDS = 0.2  # so that consumers keep up: the storm is to be long, not its end


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes with three copies of everything, to kill and to pause."""
    with needed():
        cluster = skewed(tmp_path_factory.mktemp("three"), *SKEW_MILLIS)
    with cluster:
        yield cluster


def url_of(cluster: Cluster) -> str:
    hosts = ",".join(f"{host}:{cluster.port}" for host in cluster.hosts)
    return f"cassandra://{hosts}/bucket_storm"


class Late:
    """The buckets of a realm through the node whose clock is the last of the three."""

    def __init__(self, cluster: Cluster) -> None:
        hosts = tuple((host, cluster.port) for host in cluster.hosts)
        slowest = min(zip(SKEW_MILLIS, cluster.hosts, strict=True))[1]
        through = WhiteListRoundRobinPolicy([slowest])
        self.connection = Connection.open(Address(hosts, "bucket_storm"), through)
        prepare(self.connection, True, "bucket_schema.cql")
        self.storage = CassandraBuckets(self.connection, token_hex(4))
        self.generation = token_bytes(16)

    def do(self, statement: s.Statement) -> Any:
        """Carry out a statement that may be repeated, until its outcome is known."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (found := self.storage.execute(statement)) is UNKNOWN:
            assert time.monotonic() < until, "the cluster does not answer"
        return found

    def delete_as_clients_do(self, bucket: bytes) -> None:
        """A delete without a condition: the driver stamps it with the client's clock."""
        text = "DELETE FROM bucket_storm.bucket_rows WHERE generation = %s AND bucket = %s"
        self.connection.session.execute(text, (plain(self.generation), to_uuid(bucket)), timeout=30.0)

    def make(self, bucket: bytes) -> tuple[Outcome, Bucket | None]:
        """Make a bucket: what is told, and what can be read of it then."""
        told = self.do(s.CreateBucket(self.generation, bucket, "node", time.time()))
        return told, self.do(s.ReadBucket(self.generation, bucket))

    def fill(self, bucket: bytes) -> list[bytes | None]:
        """Put a message into a bucket, which is told to be applied; gives what can be read of it then."""
        now = time.time()
        message = Message(place_after(now, [], 7), b"body", b"", now, now)
        assert self.do(s.Put(self.generation, bucket, [message])) is APPLIED
        found = self.do(s.ReadRows(self.generation, bucket, [message.uid], True))
        return [row.body for row in found.rows] if found is not None else []


@pytest.fixture
def late(three: Cluster) -> Iterator[Late]:
    late = Late(three)
    yield late
    late.storage.close()


def test_a_delete_by_the_clients_clock_hides_what_a_slower_node_writes_later(late: Late) -> None:
    """Why no bucket is deleted without a condition: the second create is told applied, and nobody finds the bucket."""
    bucket = place_after(time.time(), [], 1)
    assert late.make(bucket)[1] is not None and late.fill(bucket) == [b"body"]
    late.delete_as_clients_do(bucket)
    assert late.make(bucket) == (APPLIED, None)


def test_a_removed_bucket_hides_nothing_that_is_written_later(late: Late) -> None:
    bucket = place_after(time.time(), [], 2)
    for _ in range(3):  # never twice in a queue; but if it were, what is told applied would be there
        assert late.make(bucket)[1] is not None and late.fill(bucket) == [b"body"]
        late.do(s.MoveBucket(late.generation, bucket, "open", "sealed"))
        late.do(s.MoveBucket(late.generation, bucket, "sealed", "done"))
        late.do(s.RemoveBucket(late.generation, bucket))
        assert late.do(s.ReadBucket(late.generation, bucket)) is None


def test_a_queue_whose_buckets_come_and_go_hides_nothing_whatever_the_clocks_say(late: Late) -> None:
    stage = Stage(late.storage, randbits(40), bucket_rows=1, seal_seconds=0.0, attempts_max=1)
    for n in range(3):
        stage.put(b"%d" % n, b"dies %d" % n)
        leased = {one.row.body: one for one in stage.reserve()}
        stage.complete([leased[b"%d" % n]])  # the other one is delivered too often, once its lease is over
        stage.now += 60
        stage.repair(2)
        assert [letter.body for letter in stage.dead()] == [b"dies %d" % n], "purged below, written anew here"
        late.do(s.DropDead(stage.generation, [letter.uid for letter in stage.dead()]))
        assert stage.drain() == set() and not stage.kept()
    stage.run(naming.remove_queue("q", stage.run(naming.delete_queue("q")) or b""))
    stage.queue = stage.run(naming.create_queue("q", stage.config))
    stage.put(b"of its successor")
    assert [one.row.body for one in stage.reserve()] == [b"of its successor"]


class Load:
    """Producers and consumers, each with a connection of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self._stop = threading.Event()
        self.failed: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._work, args=(url, folder, n, work))
            for n, work in enumerate((produce, produce, consume, consume), 1)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, url: str, folder: Path, number: int, work) -> None:
        try:
            with fairway.open(url, "storm", kind="bucket") as queue:
                recorded = Recorded(
                    queue, str(folder / f"history-{number}.jsonl"), f"{work.__name__}-{number}"
                )
                try:
                    rest = PUT_REST_SECONDS if work is produce else 0.01
                    work(recorded, Random(number), lambda: not self._stop.wait(rest))
                finally:
                    recorded.close()
        except BaseException as error:
            self.failed.append(error)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.failed, self.failed


def break_nodes(cluster: Cluster, seconds: float, kill_seconds: float, dice: Random) -> dict[str, int]:
    """Pause a node, kill a node, one at a time: two always work."""
    done = {"pauses": 0, "kills": 0}
    end = time.monotonic() + seconds
    next_kill = time.monotonic() + kill_seconds
    while time.monotonic() < end:
        node = dice.choice(cluster.nodes)
        if time.monotonic() > next_kill:
            node.kill()
            time.sleep(dice.uniform(1.0, 4.0))
            node.start()
            node.wait()
            done["kills"] += 1
            next_kill = time.monotonic() + kill_seconds
            continue
        node.pause()
        try:
            time.sleep(dice.uniform(0.5, 4.0))
        finally:
            node.resume()
        done["pauses"] += 1
        time.sleep(dice.uniform(0.5, 2.0))
    return done


def storm(
    cluster: Cluster,
    folder: Path,
    seconds: float,
    kill_seconds: float,
    seed: int,
    record: Callable[..., None] = lambda *_, **__: None,
) -> None:
    """Load, broken nodes, a drain; then nothing is wrong."""
    url = url_of(cluster)
    with fairway.open(url, "storm", kind="bucket") as queue:
        queue.configure(bucket_rows=100, seal_seconds=3.0, lease_seconds=15.0, attempts_max=50)
    load = Load(url, folder)
    try:
        done = break_nodes(cluster, seconds, kill_seconds, Random(seed))
    finally:
        load.end()
    began = time.monotonic()
    history = Storm(url, folder, seed).drain(240.0)
    accepted = sum(len(put.args["uids"]) for put in history.of("put") if put.answered)
    unknown = sum(not put.answered for put in history.of("put"))
    drained = time.monotonic() - began
    print(
        f"{seconds:.0f} s, {done}, {accepted} accepted, {unknown} puts unanswered, drained in {drained:.0f} s"
    )
    wrong = check_history(history)
    record(
        "nodes of a cluster killed and paused under a bucket queue",
        operations=accepted,
        faults=sum(done.values()),
        lost=len(wrong),
        seed=seed,
        note=f"{done['kills']} kills, {done['pauses']} pauses, clocks 5 s apart",
        history=history,
    )
    assert not wrong, stories(history, wrong)
    assert accepted > 100 and done["pauses"] and done["kills"]


def test_nothing_is_lost_in_a_minute_of_kills_and_pauses(three: Cluster, tmp_path: Path) -> None:
    storm(three, tmp_path, 60.0, 15.0, 1)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_ten_minutes_of_kills_and_pauses_lose_nothing(
    three: Cluster, tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    storm(three, tmp_path, LONG_SECONDS, 40.0, 2, record_proof)
