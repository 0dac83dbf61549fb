"""What a message costs a cluster, counted by the store: conditional writes are what a bucket queue spends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from fairway.bucket import naming
from fairway.bucket.config import BucketConfig
from fairway.face.bucket.queue import BucketQueue, BucketVerbs
from fairway.runtime.bucket.office import Office
from fairway.runtime.bucket.ports import OfficePort
from fairway.runtime.bucket.running import run
from fairway.store.cassandra import Connection
from fairway.store.cassandra.buckets import CassandraBuckets
from fairway.store.cassandra.opening import prepare
from fairway.testing.cassandra.sharing import Address
from tests.bench.running import quick

pytestmark = pytest.mark.real

PUT_OF_50, SINGLE, WORK_OF_50 = 0.05, 2.1, 0.1  # LWTs a message, at most
BATCH, BATCHES, SINGLES, THREADS = 50, 20, 40, 4


class Costs:
    """A queue without a repairer, whose beats go by the clock and not by messages."""

    def __init__(self, connection: Connection) -> None:
        prepare(connection, True, "bucket_schema.cql")
        self.storage = CassandraBuckets(connection.share(), token_hex(4))
        office = Office(
            "q", run(naming.create_queue("q", BucketConfig()), self.storage), self.storage, repairs=False
        )
        self.queue = BucketQueue("q", BucketVerbs(office), OfficePort(office), None)
        self._before = self.storage.conditional_writes

    def per_message(self, messages: int) -> float:
        """LWTs since the last time this was asked."""
        before, self._before = self._before, self.storage.conditional_writes
        return (self._before - before) / messages

    def work(self, many: int) -> int:
        leases = self.queue.reserve(max=many)
        self.queue.complete(leases)
        return len(leases)


@pytest.fixture
def costs(connection: Connection) -> Iterator[Costs]:
    costs = Costs(connection)
    yield costs
    costs.queue.close()


def test_a_put_and_a_delivery_cost_as_few_conditional_writes_as_promised(costs: Costs) -> None:
    for _ in range(BATCHES):
        costs.queue.put_many([b"x"] * BATCH)
    put = costs.per_message(BATCH * BATCHES)
    done = sum(costs.work(1) for _ in range(SINGLES))
    single = costs.per_message(done)
    worked = 0
    while found := costs.work(BATCH):
        worked += found
    batched = costs.per_message(worked)
    print(
        f"LWTs a message: put of {BATCH} {put:.3f}, reserve + complete {single:.2f}, of {BATCH} {batched:.3f}"
    )
    assert (done, done + worked) == (SINGLES, BATCH * BATCHES)
    assert put > 0 and single >= 2 and batched > 0, "they are counted"
    assert (put <= PUT_OF_50, single <= SINGLE, batched <= WORK_OF_50) == (True, True, True)


def test_threads_of_a_process_do_not_get_into_each_others_way(costs: Costs) -> None:
    costs.queue.put_many([b"x"] * THREADS * SINGLES)
    costs.per_message(1)
    done = [0] * THREADS

    def work(place: int) -> None:
        while found := costs.work(1):
            done[place] += found

    threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    single = costs.per_message(sum(done))
    print(f"LWTs a message: reserve + complete of {THREADS} threads {single:.3f}")
    assert sum(done) == THREADS * SINGLES and single <= SINGLE


def test_the_bench_measures_a_cluster_by_the_same_count(cassandra: Address, tmp_path: Path) -> None:
    found = quick("bucket", tmp_path, "--url", f"{cassandra.url}bench")
    (table,) = found["tables"]
    assert table["title"].startswith("cassandra: ") and "LWTs a message" in table["columns"]
    place = table["columns"].index("LWTs a message")
    by_verb = {row[0]: row[place] for row in table["rows"]}
    assert by_verb["put"] >= 1 / 10 and by_verb["reserve+complete"] >= 2 / 10, "batches of ten"
