"""An opsqueue and Fairway's server under the same consumers: threads of one program, each with the queue's own client.

Both have the same backlog, submissions of 1,000 chunks for each tenant with payloads inline, and each chunk gets a
result. Each is asked for its fair strategy and for its cheapest. An opsqueue does not sync what it acknowledges
(SQLite's `synchronous` is `NORMAL` there), and takes completions one by one; Fairway syncs, and takes them at once.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from peers.servers import FairwayServer, Opsqueue

import fairway

TENANTS, CONSUMERS, RESULT, PAYLOAD = 100, 8, b"done", b"x" * 200
EACH = 1000  # chunks of a submission: with more of them, inline, its body is larger than an opsqueue takes
BATCHES = (1, 64)
Step = Callable[[], int]


class OfFairway:
    """Fairway's server, with a client for each consumer."""

    name = "Fairway"

    def __init__(self, folder: Path, each: list[int]) -> None:
        self.strategies = {"Fair": "Fair", "OldestFirst": "OldestFirst"}
        self.server = FairwayServer(folder)
        self._clients = [fairway.open(self.server.url) for _ in range(CONSUMERS)]
        for tenant in range(TENANTS):
            for chunks in each:
                self._clients[0].submit([PAYLOAD] * chunks, tenant=f"t{tenant}")

    def steps(self, strategy: Any, batch: int) -> list[Step]:
        def step(queue: Any) -> Step:
            def one() -> int:
                leases = queue.reserve(max=batch, strategy=strategy)
                for lease in leases:
                    assert lease.payload == PAYLOAD
                queue.complete(leases, results=[RESULT] * len(leases))
                return len(leases)

            return one

        return [step(queue) for queue in self._clients]

    def close(self) -> None:
        for queue in self._clients:
            queue.close()
        self.server.close()


class OfOpsqueue:
    """An opsqueue, with a client for each consumer."""

    name = "opsqueue"

    def __init__(self, folder: Path, each: list[int]) -> None:
        from opsqueue.consumer import ConsumerClient, Strategy

        self.server = server = Opsqueue(folder)
        for tenant in range(TENANTS):
            for chunks in each:
                self._submit(server.port, tenant, chunks)
        fair = Strategy.PreferDistinct(meta_key="tenant", underlying=Strategy.Random())
        self.strategies = {"PreferDistinct over Random": fair, "Oldest": Strategy.Oldest()}
        place = f"file://{folder}/objects"
        self._clients = [ConsumerClient(f"localhost:{server.port}", place) for _ in range(CONSUMERS)]

    @staticmethod
    def _submit(port: int, tenant: int, chunks: int) -> None:
        """As a client does that gives the contents with the submission."""
        contents = {"Direct": {"contents": [list(PAYLOAD)] * chunks}}
        body = {"chunk_contents": contents, "metadata": None, "chunk_size": 1}
        body["strategic_metadata"] = {"tenant": tenant}
        url, kind = f"http://127.0.0.1:{port}/producer/submissions", {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode(), kind), timeout=60
        ).close()

    def steps(self, strategy: Any, batch: int) -> list[Step]:
        def step(consumer: Any) -> Step:
            def one() -> int:
                chunks = consumer.reserve_chunks(batch, strategy)
                for chunk in chunks:
                    assert chunk.input_content == PAYLOAD
                    where = (chunk.submission_id, chunk.submission_prefix, chunk.chunk_index)
                    consumer.complete_chunk(*where, RESULT)
                return len(chunks)

            return one

        return [step(consumer) for consumer in self._clients]

    def close(self) -> None:
        self.server.close()


def timed(server: Any, steps: list[Step], seconds: float) -> tuple[float, float, float]:
    """Chunks a second, and microseconds of the server's and of the client's CPU for each."""
    until = time.perf_counter() + seconds

    def repeat(step: Step) -> int:
        done = 0
        while time.perf_counter() < until:
            done += step()
        return done

    served, mine, began = server.server_cpu_seconds(), time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(len(steps)) as threads:
        done = sum(threads.map(repeat, steps))
    spent = time.perf_counter() - began
    served, mine = server.server_cpu_seconds() - served, time.process_time() - mine
    many = max(1, done)
    return done / spent, served / many * 1e6, mine / many * 1e6


def measure_beside(
    folder: Path, backlog: int, seconds: float, rounds: int
) -> dict[tuple[str, str, int], Any]:
    """By queue, strategy and how many at a time: chunks a second, the server's and the client's CPU a chunk."""
    found = {}
    for kind in (OfFairway, OfOpsqueue):
        print(f"  {kind.name} with a backlog of {backlog:,}", file=sys.stderr, flush=True)
        (place := folder / kind.name).mkdir()
        whole, rest = divmod(backlog // TENANTS, EACH)
        queue = kind(place, [EACH] * whole + [rest] * bool(rest))
        try:
            for title, strategy in queue.strategies.items():
                for batch in BATCHES:
                    steps = queue.steps(strategy, batch)
                    timed(queue.server, steps, seconds / 10)  # what is made at the first call is not measured
                    told = [timed(queue.server, steps, seconds) for _ in range(rounds)]
                    found[kind.name, title, batch] = tuple(map(statistics.median, zip(*told, strict=True)))
        finally:
            queue.close()
            shutil.rmtree(place)
    return found
