"""Throughput of a queue on Cassandra through one node, and what is left of messages that went through.

    python bench/cassandra.py [--url cassandra://127.0.0.1/bench] [--batch 1000] [--seconds 10] [--small] [--quick]

Without a URL a node is started for the measurement: one of 2 GiB with what Cassandra gives such a one, or with --small
the one of 512 MiB that tests start, which compiles little and writes its memory to disk all the time. It is made warm
first. Puts, and reserve + complete, in batches, everything on: fairness, receipts, request numbers, events; then the
size of the fenced partition, how many tombstones a reload reads (every phase of them:
tests/cassandra/test_fair_tombstones.py), and the round trips of a group, which its size must not change.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from figures import Figures, Table, parser
from figures.versions import of_cassandra, of_java

# This file is called like the driver's package, which must be found and not this file.
sys.path.remove(str(Path(__file__).resolve().parent))

import fairway
from fairway.limits import CASSANDRA_LEVEL_SHARDS
from fairway.model.stored import Kind
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.store.cassandra.places import DEADLINE, DUE, HIGHEST, LOWEST
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.trips import Trips

PAYLOAD = b"x" * 200
TRACE_SECONDS = 10.0
THREADS = 3
# Cassandra's own: the whole compiler, a quarter of the heap for memtables, 32 MiB segments.
USUAL = ("-Xms2g", "-Xmx2g", "-XX:TieredStopAtLevel=4")
SETTINGS = """
memtable_heap_space: 512MiB
memtable_offheap_space: 512MiB
commitlog_segment_size: 32MiB
commitlog_total_space: 2048MiB
"""
RATES = ("a second", "a second of the client's CPU", "a second of the node's CPU")
SENT = ("round trips", "conditional writes", "reads", "messages of writes", "rows", "rows a second")


@contextlib.contextmanager
def node(url: str, small: bool) -> Iterator[tuple[str, int]]:
    """The URL that was given, or that of a node that lives as long as this, and its process."""
    if url:
        yield url, 0
        return
    size: dict[str, Any] = {} if small else {"settings": SETTINGS, "properties": USUAL}
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), 1, **size) as cluster:
        yield f"cassandra://{cluster.hosts[0]}:{cluster.port}/bench", cluster.nodes[0].pid


def cpu_seconds(pid: int) -> float:
    """What a process has had of the cores."""
    told = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


class Timed:
    """Rows of a table: per second of the wall clock, of this process's own CPU time and of the node's."""

    def __init__(self, table: Table, pid: int, seconds: float) -> None:
        self._table, self._pid, self._seconds = table, pid, seconds

    def until(self, work: Callable[[], int]) -> int:
        """Work until the time is over or nothing is left to do; gives how much was done."""
        done, until = 0, time.perf_counter() + self._seconds
        while time.perf_counter() < until and (some := work()):
            done += some
        return done

    def row(self, what: str, work: Callable[[], int], threads: int = 1) -> None:
        start, client, node = time.perf_counter(), time.process_time(), self._node()
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(self.until, [work] * threads))
        wall, client, node = (
            time.perf_counter() - start, time.process_time() - client, self._node() - node
        )  # fmt: skip
        self._table.add(what, done / wall, done / client, done / node if node else None)

    def _node(self) -> float:
        return cpu_seconds(self._pid) if self._pid else 0.0


def throughput(timed: Timed, q: fairway.Queue, batch: int) -> None:
    messages = [{"payload": PAYLOAD, "tenant": f"t{n % 20}"} for n in range(batch)]

    def put() -> int:
        q.put_many(messages)
        return batch

    def finish() -> int:
        leases = q.reserve(max=batch)
        q.complete(leases)
        return len(leases)

    timed.until(put), timed.until(finish)  # warm: the node compiles what it runs often
    timed.row(f"put_many({batch})", put)
    timed.row(f"reserve({batch}) + complete of messages", finish)
    timed.until(put)
    timed.row(f"reserve({batch}) + complete of messages, {THREADS} threads", finish, THREADS)
    whale = q.submit(chunks=100_000_000, objects="file:///nowhere/x", tenant="whale")
    while True:  # until the messages are gone
        leases = q.reserve(max=batch)
        q.complete(leases)
        if all(lease.tenant == "whale" for lease in leases):
            break
    timed.row(f"reserve({batch}) + complete of chunks", finish)
    q.cancel(whale.id)


def trips(table: Table, q: fairway.Queue, store: CassandraStore, batch: int) -> None:
    """Of groups of puts, and of reserve + complete, which are two groups for each batch."""
    messages = [{"payload": PAYLOAD, "tenant": "t"} for _ in range(batch)]
    rounds = 10
    for what, do in (
        ("put_many", lambda: q.put_many(messages)),
        ("reserve + complete", lambda: q.complete(q.reserve(max=batch))),
    ):
        first, counted, start = store.last_number(), Trips(store), time.perf_counter()
        for _ in range(rounds):
            do()
        took = time.perf_counter() - start
        counted.stop()
        groups = max(1, store.last_number() - first)
        requests, rows = counted.requests, counted.rows.total()
        table.add(
            f"{what} of {batch}", counted.waits / groups, requests["conditional"] / groups,
            requests["read"] / groups, requests["write"] / groups, rows / groups, rows / took,
        )  # fmt: skip


def left(table: Table, q: fairway.Queue, store: CassandraStore, messages: int, batch: int) -> None:
    """Messages go through while one long lease holds the front."""
    connection, queue = store.connection, store.queue
    q.put(b"held", tenant="slow")
    held = q.reserve(max=1, lease_seconds=3600)
    done = 0
    while done < messages:
        done += len(q.put_many([{"payload": PAYLOAD, "tenant": f"t{n % 20}"} for n in range(batch)]))
        while leases := q.reserve(max=batch):
            q.complete(leases)
    ((*_, meta),) = connection.read("fence", (queue,))
    logged = connection.read("logged", (queue, -2))
    fenced = len(meta) + sum(len(body or b"") + 200 for _, _, body, _ in logged)
    low = (LOWEST, LOWEST, HIGHEST, HIGHEST, 100_000)
    met = [_tombstones(connection, "levels_above", (queue, n, *low)) for n in range(CASSANDRA_LEVEL_SHARDS)]
    met += [_tombstones(connection, "objects", (queue, int(kind))) for kind in Kind]
    met += [
        _tombstones(connection, "times_after", (queue, what, 0, 0.0, 0, 1000)) for what in (DUE, DEADLINE)
    ]
    met += [_tombstones(connection, "journal", (queue, 0)), _tombstones(connection, "fence", (queue,))]
    met.append(_tombstones(connection, "logged", (queue, -1)))
    table.add(f"fenced partition after {done:,} messages, KiB", fenced / 1024)
    table.add(f"tombstones that a reload reads after {done:,} messages", sum(met))
    q.release(held)


def _tombstones(connection: Connection, name: str, values: tuple[Any, ...]) -> int:
    """What the node says in the trace of a read; a trace that is not there yet is asked for again."""
    until = time.monotonic() + TRACE_SECONDS
    result = connection.session.execute(connection.prepared(name), values, trace=True)
    list(result)
    while True:
        events = result.get_query_trace(max_wait_sec=TRACE_SECONDS).events
        found = re.findall(r"and (\d+) tombstone", " ".join(event.description for event in events))
        if found:
            return sum(map(int, found))
        if time.monotonic() > until:
            raise SystemExit(f"the trace of {name} says nothing of tombstones")
        time.sleep(0.05)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--url", default="")
    options.add_argument("--batch", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--messages", type=int, default=20_000)
    options.add_argument("--small", action="store_true", help="on a node as tests start it")
    given = options.parse_args()
    if given.quick:
        given.batch, given.seconds, given.messages, given.small = 50, 0.5, 500, True
    figures = Figures("cassandra", given)
    with node(given.url, given.small) as (url, pid):
        figures.versions |= {} if given.url else of_java()
        name = uuid.uuid4().hex
        with fairway.open(url, queue=name) as q:
            connection = Connection.open(Address.parse(url))
            store = CassandraStore.open(connection, name)
            figures.versions |= of_cassandra(connection.session)
            rates = figures.table("One client, one node", "what", *RATES)
            throughput(Timed(rates, pid, given.seconds), q, given.batch)
            counts = figures.table("What it sends and leaves", "what", "figure")
            left(counts, q, store, given.messages, given.batch)
            owner: Any = q._port._member  # type: ignore[attr-defined]
            sent = figures.table("A group", "what", *SENT)
            for batch in (max(1, given.batch // 10), given.batch):
                trips(sent, q, owner.store, batch)
            store.close()
            connection.close()
    figures.end()


if __name__ == "__main__":
    main()
