"""A process that produces into, or consumes from, a bucket queue until it is killed; every call is recorded.

Usage: worker_script.py URL QUEUE HISTORY SEED ROLE. A message is told by its payload, which no other message has.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from msgspec.structs import replace

import fairway
from fairway.bucket import statements as s
from fairway.bucket.receipts import ticket_of
from fairway.bucket.rows import WAITING, Bucket
from fairway.bucket.statements import REFUSED
from fairway.testing.history import Begin, End, Note, line_bytes


class Recorded:
    """A queue whose calls are written down before they are made and after they are answered."""

    def __init__(self, queue: fairway.BucketQueue, history: str, who: str) -> None:
        self.queue, self.who = queue, who
        self.row = queue._verbs._desk.queue
        self._file = os.open(history, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._calls = int(who.rsplit("-", 1)[1]) * 1_000_000
        self._takes: dict[int, s.Take] = {}  # of the call under way, by nonce
        self._doubtful: set[int] = set()
        self.errors: list[str] = []  # the codes of calls that failed
        self._storage = queue._verbs._desk._storage
        self._execute, self._storage.execute = self._storage.execute, self._listen

    def close(self) -> None:
        os.close(self._file)

    def call(self, op: str, args: dict[str, Any], function: Any, told: Any) -> Any:
        self._calls += 1
        call = self._calls
        self._write(Begin(time.time(), call, self.who, op, {"queue": self.row.generation.hex(), **args}))
        try:
            value = function()
        except fairway.FairwayError as error:
            self._write(End(time.time(), call, error=error.code))
            self.errors.append(error.code)
            return None
        self._write(End(time.time(), call, told(value)))
        return value

    def _listen(self, statement: s.Statement) -> Any:
        """Keep what a reserve tries to take, and of which takes it was not told that others were faster."""
        outcome = self._execute(statement)
        if isinstance(statement, s.Take):
            self._takes[statement.nonce] = statement
            if outcome is not REFUSED:
                self._doubtful.add(statement.nonce)
        return outcome

    def _tried(self, given: set[bytes]) -> list[str]:
        """The nonces that a reserve tried with; what it holds in the storage and was not given is noted as taken."""
        for nonce in self._doubtful:
            take = self._takes[nonce]
            missing = [row.uid for row in take.rows if row.uid not in given]
            held = self._held(take, missing) if missing else []
            if held:
                args = {"uids": held, "nonce": f"{nonce:x}", "until": take.lease}
                self._write(Note(time.time(), "took", args))
        return [f"{nonce:x}" for nonce in self._takes]

    @staticmethod
    def label(uid: bytes, body: bytes) -> str:
        """How a message is told."""
        return body.decode()

    def _held(self, take: s.Take, uids: list[bytes]) -> list[str]:
        """The messages that a take holds now, as far as the storage says."""
        read = s.ReadRows(take.generation, take.bucket, uids)
        with suppress(fairway.FairwayError):
            found = self._execute(read)  # decided first: a take that is half done is done then
            if isinstance(found, Bucket):
                found = self._execute(replace(read, bodies=True))
            if isinstance(found, Bucket):
                rows = (row for row in found.rows if row.nonce == take.nonce and row.status == WAITING)
                return [self.label(row.uid, row.body) for row in rows if row.body is not None]
        return []

    def _write(self, line: Any) -> None:
        os.write(self._file, line_bytes(line))

    def put(self, bodies: list[bytes], delay: float) -> None:
        labels = [body.decode() for body in bodies]
        args = {"uids": labels, "bodies": labels, "due": time.time() + delay}
        items = [{"payload": body, "delay_seconds": delay} for body in bodies]
        self.call("put", args, lambda: self.queue.put_many(items), lambda _: "accepted")

    def take(self, count: int, wait: float, lease: float | None = None) -> list[fairway.BucketLease]:
        def told(leases: list[fairway.BucketLease]) -> Any:
            bodies = [lease.payload.decode() for lease in leases]
            tickets = [self.ticket(lease) for lease in leases]
            given = [
                [self.label(ticket.uid, lease.payload), f"{ticket.nonce:x}", ticket.version, ticket.attempts]
                for lease, ticket in zip(leases, tickets, strict=True)
            ]
            tried = self._tried({ticket.uid for ticket in tickets})
            return {"tried": tried, "skew": 0.0, "leases": given, "bodies": bodies}

        self._takes.clear()
        self._doubtful.clear()
        function = lambda: self.queue.reserve(count, wait_seconds=wait, lease_seconds=lease)  # noqa: E731
        return self.call("take", {}, function, told) or []

    def ticket(self, lease: fairway.BucketLease) -> Any:
        return ticket_of(lease.receipt, self.row.secret)

    def settle(self, op: str, leases: list[fairway.BucketLease]) -> None:
        if not leases:
            return
        args = {
            "uids": [self.label(bytes.fromhex(lease.id), lease.payload) for lease in leases],
            "versions": [self.ticket(lease).version for lease in leases],
        }
        verb = {"give_up": lambda x: self.queue.fail(x, "given up", retry=False)}.get(
            op, getattr(self.queue, "fail" if op == "give_up" else op)
        )
        self.call(op, args, lambda: verb(leases), list)


def always() -> bool:
    return True


def produce(recorded: Recorded, dice: Random, going: Callable[[], bool] = always) -> None:
    n = 0
    while going():
        count = dice.choice((1, 1, 5, 60))
        bodies = [f"{recorded.who}.{n + i}".encode() for i in range(count)]
        n += count
        recorded.put(bodies, dice.choice((0.0, 0.0, 0.5)))
        time.sleep(dice.uniform(0.0, 0.02))


def consume(recorded: Recorded, dice: Random, going: Callable[[], bool] = always) -> None:
    while going():
        leases = recorded.take(dice.choice((1, 10, 100)), 1.0)
        chance = dice.random()
        if chance < 0.05:
            continue  # forgotten: the lease runs out
        first, rest = leases[:1], leases[1:]
        if chance < 0.25:
            recorded.settle(dice.choice(("release", "fail", "give_up")), first)
            recorded.settle("complete", rest)
        else:
            recorded.settle("complete", leases)


def main() -> None:
    url, queue, history, seed, role = sys.argv[1:]
    with fairway.open(url, queue, kind="bucket") as opened:
        recorded = Recorded(opened, history, f"{role}-{seed}")
        print("ready", flush=True)
        (produce if role == "produce" else consume)(recorded, Random(int(seed)))


if __name__ == "__main__":
    main()
