"""Files of every older schema with a fair and a bucket queue in them, and what is to be found there after an upgrade.

Guards: an old file holds the same rows as a new one, in the columns that its schema had.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import apsw

import fairway
from fairway.store.sqlite.opening import open_file
from fairway.store.sqlite.queues import bucket_names
from fairway.store.sqlite.statements import steps

KEYED: dict[str, Any] = {
    "payloads": [b"one", b"two"],
    "tenant": "acme",
    "metadata": {"mode": "preview"},
    "key": "k1",
}


class Present(NamedTuple):
    """A file of the present schema, and what only those know who made it."""

    path: Path
    keyed: int  # the submission that has a key
    lease: str  # receipts of leases that are out, of each queue
    message: str


def make_present(path: Path) -> Present:
    """A queue with submissions in every state, results, keys, dead letters, a weight and leases."""
    with fairway.open(path) as q:
        done = q.submit(**KEYED)
        q.complete(q.reserve(2), results=[b"ONE", b"TWO"])
        assert q.submission(done.id).state == "completed"
        q.put(b"bad", tenant="whale", attempts_max=1)
        q.fail(q.reserve(1), "no good", retry=False)
        for n in range(30):
            q.put(b"%d" % n * 40, tenant=f"t{n % 4}", metadata={"n": n})
        q.put(bytes(20_000), tenant="t5")  # a page that is not inside its run
        q.cancel(q.submit(chunks=1000, objects="file:///nowhere/x", tenant="acme").id)
        q.set_weight("t1", 3)
        held = q.reserve(5, lease_seconds=3600)
    with fairway.open(path, "events", kind="bucket") as q:
        q.configure(bucket_rows=20)
        for n in range(0, 50, 10):
            q.put_many([{"payload": b"%d" % k * 40, "headers": {"n": k}} for k in range(n, n + 10)])
        q.put(b"later", delay_seconds=3000)
        leases = q.reserve(max=20, lease_seconds=3600)
        q.complete(leases[:5])
        q.fail(leases[5:9], "no good", retry=False)
        q.fail(leases[9:12], "not yet", delay_seconds=0.0)
        q.purge([leases[5].id])
    return Present(path, done.id, held[0].receipt, leases[-1].receipt)


def make_old(present: Path, path: Path, version: int) -> None:
    """The same rows in a file of an older schema."""
    _, connection = open_file(path, None, steps()[:version])
    connection.execute("ATTACH ? AS now", (str(present),))
    tables = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    with connection:
        for (table,) in connection.execute(tables).fetchall():
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM now.{table}")
        if 3 <= version < 7:
            connection.execute("UPDATE main.bucket_dead SET died = created + 1 WHERE dropped = 1")
    connection.execute("DETACH now")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)  # what is copied of it is the file alone
    connection.close()


def picture(path: Path, present: Present) -> dict[str, Any]:
    """What a queue says of itself, what it hands out, and what it answers those who were there before."""
    with fairway.open(path) as q:
        shown = [
            (one.id, one.state, one.done, one.failed, one.total, one.tenant, dict(one.metadata))
            for one in q.submissions()
        ]
        results = [[result.data for result in q.results(one[0])] for one in shown if one[1] == "completed"]
        stats = q.stats()
        return {
            "shown": sorted(shown),
            "results": results,
            "dead": [(one.submission, one.index) for one in q.dead()],
            "leased": stats.chunks_leased,
            "by metadata": [
                [one.id for one in q.submissions(metadata=of)] for of in ({"n": 3}, KEYED["metadata"])
            ],
            "weights": [(one.name, one.weight) for one in q.tenants()],
            "events": list(q.events()),
            "given": [lease.payload for lease in q.reserve(100)],
            "counts": q.complete([present.lease]),
            "known by its key": q.submit(**KEYED).id == present.keyed,
            "messages": messages(path, present),
        }


def messages(path: Path, present: Present) -> Any:
    """What the bucket queue says, hands out and answers, if there is one."""
    if "events" not in bucket_names(str(path)):
        return None
    with fairway.open(path, "events", kind="bucket", create=False) as q:
        stats, dead = q.stats(), list(q.dead())
        leases: list[fairway.BucketLease] = []
        while some := q.reserve(max=100):
            leases += some
        counts = q.complete([present.message])
    given = sorted((lease.id, lease.payload, lease.headers["n"], lease.attempt) for lease in leases)
    return (stats.ready, stats.delayed, stats.leased, stats.dead), dead, given, counts


def schema(path: Path) -> tuple[int, list[Any], str]:
    connection = apsw.Connection(str(path))
    try:
        tables = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
        return (
            int(connection.pragma("user_version")),
            tables,
            str(connection.pragma("integrity_check")),
        )
    finally:
        connection.close()
