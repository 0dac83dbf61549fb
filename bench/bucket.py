"""Messages per second through a bucket queue, by store, batch size and threads, and what each costs its store.

    python bench/bucket.py [--seconds 2] [--nodes 0 1 3] [--url URL] [--quick] [--json FILE]

Put alone, then reserve + complete alone, each by batches of 1, 10 and 50 and by 1 and 4 threads: on a SQLite file
(0 nodes), and on a Cassandra of one node and of three, started for the run. On a file it gives synced transactions per
message, on Cassandra conditional writes (LWTs) per message, as the store itself counts them, refused ones and those of
the repairer included. It beats once a second, so on a machine too busy to move messages its share shows.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figures import Figures, parser
from figures.versions import of_cassandra, of_java

# bench/cassandra.py is called like the driver's package, which must be found and not that file.
sys.path.remove(str(Path(__file__).resolve().parent))

import fairway
from fairway.bucket import statements as s
from fairway.errors import NeedMissing
from fairway.store.sqlite.bucket_writing import UNSYNCED

PAYLOAD = b"x" * 200
STORES = {
    0: "SQLite, one file",
    1: "Cassandra, one node",
    3: "Cassandra, three nodes with three copies, all on this machine",
}
PUT, WORK = "put", "reserve+complete"
# LWTs a message that are promised, by verb and messages at a time, however many threads.
PROMISED = {(PUT, 50): 0.05, (WORK, 1): 2.1, (WORK, 50): 0.1}


class Costs:
    """What a queue costs its store from now on."""

    def __init__(self, queue: fairway.BucketQueue) -> None:
        self._storage: Any = queue._verbs._desk._storage  # pyright: ignore
        self._execute = self._storage.execute
        self._storage.execute = self._count
        self.cluster = hasattr(self._storage, "conditional_writes")
        self.clear()

    def clear(self) -> None:
        self.reads = self._synced = 0
        self._sent = self._storage.conditional_writes if self.cluster else 0

    def _count(self, statement: s.Statement) -> Any:
        if isinstance(statement, s.Read):
            self.reads += 1
        elif not isinstance(statement, UNSYNCED):
            self._synced += 1
        return self._execute(statement)

    @property
    def writes(self) -> int:
        """LWTs on Cassandra, synced transactions in a file, where each write is one."""
        return self._storage.conditional_writes - self._sent if self.cluster else self._synced


def timed(threads: int, seconds: float, work: Callable[[], int]) -> tuple[int, float, float]:
    """So many threads repeat some work for a time: messages, seconds by the clock, seconds of CPU."""
    done = [0] * threads
    end = time.monotonic() + seconds

    def repeat(place: int) -> None:
        while time.monotonic() < end:
            made = work()
            if not made:
                return
            done[place] += made

    began, cpu = time.monotonic(), time.process_time()
    workers = [threading.Thread(target=repeat, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done), time.monotonic() - began, time.process_time() - cpu


def measure(url: str, batch: int, threads: int, seconds: float) -> dict[str, dict[str, float]]:
    with fairway.open(url, f"bench-{batch}-{threads}", kind="bucket") as queue:
        queue.configure(lease_seconds=600.0)
        costs = Costs(queue)

        def put() -> int:
            return len(queue.put_many([PAYLOAD] * batch))

        def work() -> int:
            leases = queue.reserve(max=batch)
            queue.complete(leases)
            return len(leases)

        told: dict[str, dict[str, float]] = {}
        for verb, step in ((PUT, put), (WORK, work)):
            costs.clear()
            messages, clock, cpu = timed(threads, seconds, step)
            many = max(messages, 1)
            told[verb] = {
                "per_second": round(messages / clock),
                "cpu_micros": round(cpu / many * 1e6),
                "writes": round(costs.writes / many, 4),
                "reads": round(costs.reads / many, 4),
            }
        queue.delete()
        return told


def run(figures: Figures, store: str, url: str, seconds: float, batches: tuple[int, ...]) -> None:
    lwts = url.startswith("cassandra:")
    if lwts:
        from fairway.store.cassandra import Address, Connection

        connection = Connection.open(Address.parse(url))
        figures.versions |= of_cassandra(connection.session)
        connection.close()
    table = figures.table(
        f"{store}: messages of {len(PAYLOAD)} bytes, {seconds:g} s each",
        *("what", "at a time", "threads", "messages/s", "CPU us"),
        "LWTs a message" if lwts else "synced transactions a message",
        "reads a message",
    )
    held: list[str] = []
    for batch in batches:
        for threads in (1, 4):
            found = measure(url, batch, threads, seconds)
            for verb, one in found.items():
                counts = (one["writes"], one["reads"])
                table.add(verb, batch, threads, one["per_second"], one["cpu_micros"], *counts)
                most = PROMISED.get((verb, batch))
                if lwts and most is not None:
                    missed = "" if one["writes"] <= most else ", missed"
                    held.append(
                        f"{verb} of {batch}, {threads} threads: {one['writes']:g} (at most {most:g}{missed})"
                    )
    if held:
        figures.note(f"{store}, LWTs a message and what is promised: {'; '.join(held)}.")


@contextlib.contextmanager
def store_of(nodes: int) -> Iterator[str]:
    """The URL of a store that lives as long as this. Raises NeedMissing."""
    with tempfile.TemporaryDirectory() as folder:
        if not nodes:
            yield str(Path(folder) / "bench.db")
            return
        from fairway.testing.cassandra import Cluster

        with Cluster(Path(folder), nodes) as cluster:
            hosts = ",".join(f"{host}:{cluster.port}" for host in cluster.hosts)
            yield f"cassandra://{hosts}/bench"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument(
        "--url", default="", help="a store that is there already, in the place of all others"
    )
    options.add_argument("--nodes", type=int, nargs="+", choices=tuple(STORES), metavar="N")
    given = options.parse_args()
    seconds, batches = (0.05, (10,)) if given.quick else (given.seconds, (1, 10, 50))
    wanted = given.nodes or ([0] if given.quick else [*STORES])
    figures = Figures("bucket", given)
    if given.url:
        run(figures, given.url.partition(":")[0], given.url, seconds, batches)
        wanted = []
    for nodes in wanted:
        try:
            with store_of(nodes) as url:
                figures.versions |= of_java() if nodes else {}
                run(figures, STORES[nodes], url, seconds, batches)
        except NeedMissing as error:
            figures.leave_out(STORES[nodes], str(error))
    figures.end()


if __name__ == "__main__":
    main()
