"""What the SQLite store costs: microseconds per row, per end, per purge, per empty group; listings and opening.

Run: python bench/store.py [folder]. Guards: nothing; it prints figures of the machine it runs on.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import Owner

ROWS = 100_000
TENANTS = 50
STRIDE = 10_000


def _timed(what: str, times: int, call: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{what:72} {wall / times * 1e6:9.2f} us, {cpu / times * 1e6:8.2f} us of processor", flush=True)
    return result


def _messages(owner: Owner, metadata: dict[str, str | int]) -> list[Any]:
    page = (b"p" * 100,)
    return [
        owner.row(n, n // TENANTS * STRIDE, f"tenant-{n % TENANTS}", metadata=metadata, pages=page)
        for n in range(1, ROWS + 1)
    ]


def _groups(owner: Owner, field: str, items: list[Any], size: int) -> Callable[[], None]:
    """Store the items in groups of a size, unsynced, with a checkpoint's work left to the writer."""

    def run() -> None:
        for start in range(0, len(items), size):
            owner.write(**{field: items[start : start + size]})

    return run


def _life(folder: Path, size: int, metadata: dict[str, str | int], name: str) -> None:
    path = folder / f"{name}-{size}.db"
    owner = Owner(SqliteStore.open(path, "q"))
    rows = _messages(owner, metadata)
    label = f"{name}, groups of {size}: "
    _timed(label + "put", ROWS, _groups(owner, "rows", rows, size))
    wanted = [(row.id, 0) for row in rows[:10_000]]
    batches = [wanted[start : start + 100] for start in range(0, len(wanted), 100)]
    _timed(
        label + "read of a payload, 100 at once", len(wanted), lambda: [owner.store.pages(b) for b in batches]
    )
    owner.store.close()
    owner = Owner(_timed(label + "open", 1, lambda: SqliteStore.open(path, "q")))
    _timed(label + "read of an active row at a start", ROWS, lambda: list(owner.store.active()))
    ends = [owner.end(n, n // TENANTS * STRIDE, at=float(n)) for n in range(1, ROWS + 1)]
    _timed(label + "end", ROWS, _groups(owner, "ends", ends, size))
    store = owner.store
    _timed(label + "listing of 100 by tenant", 1, lambda: store.ended("", "tenant-7", {}, 0, 100))
    _timed(
        label + "listing by a tenant that has none, per row", ROWS, lambda: store.ended("", "none", {}, 0, 1)
    )
    _timed(label + "purge", ROWS, _groups(owner, "purge", [row.id for row in rows], size))
    print(f"{label}{store.size_bytes() / 1e6:.1f} MB of file and log")
    owner.store.close()


def _small(folder: Path) -> None:
    owner = Owner(SqliteStore.open(folder / "small.db", "q"))
    meta = b"m" * 100
    _timed("empty group, unsynced", 5000, lambda: [owner.write(meta=meta) for _ in range(5000)])
    _timed("empty group, synced", 500, lambda: [owner.write(meta=meta, sync=True) for _ in range(500)])
    logs = {"meta": meta, "journal": b"j" * 500, "events": b"e" * 500}
    _timed(
        "group with journal and events, unsynced", 5000, lambda: [owner.write(**logs) for _ in range(5000)]
    )
    puts = [[Put(Kind.TENANT, f"tenant-{n}", 0, b"%d" % k * 20) for n in range(100)] for k in range(300)]
    _timed("object replaced, 100 in a group", 30_000, lambda: [owner.write(puts=group) for group in puts])
    owner.store.close()


def main(folder: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for size in (100, 1000):
            _life(Path(name), size, {}, "messages")
        _life(Path(name), 1000, {"mode": "preview", "day": 7}, "with two metadata pairs")
        _small(Path(name))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
