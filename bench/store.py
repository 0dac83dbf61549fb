"""What the SQLite store costs: microseconds per row, per end, per purge, per empty group; listings and opening.

    python bench/store.py [--folder FOLDER] [--rows 100000] [--quick] [--json FILE]

Microseconds by the clock and of the processor, on the disk of the folder; groups are not synced unless it says so.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Figures, Table, parser

from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import Owner

TENANTS = 50
STRIDE = 10_000


def _timed(table: Table, what: str, times: int, call: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    table.add(what, wall / times * 1e6, cpu / times * 1e6)
    return result


def _messages(owner: Owner, rows: int, metadata: dict[str, str | int]) -> list[Any]:
    page = (b"p" * 100,)
    return [
        owner.row(n, n // TENANTS * STRIDE, f"tenant-{n % TENANTS}", metadata=metadata, pages=page)
        for n in range(1, rows + 1)
    ]


def _groups(owner: Owner, field: str, items: list[Any], size: int) -> Callable[[], None]:
    """Store the items in groups of a size, unsynced, with a checkpoint's work left to the writer."""

    def run() -> None:
        for start in range(0, len(items), size):
            owner.write(**{field: items[start : start + size]})

    return run


def _life(
    table: Table, folder: Path, many: int, size: int, metadata: dict[str, str | int], name: str
) -> None:
    path = folder / f"{name}-{size}.db"
    owner = Owner(SqliteStore.open(path, "q"))
    rows = _messages(owner, many, metadata)
    label = f"{name}, groups of {size}: "
    _timed(table, label + "put", many, _groups(owner, "rows", rows, size))
    wanted = [(row.id, 0) for row in rows[: many // 10]]
    batches = [wanted[start : start + 100] for start in range(0, len(wanted), 100)]
    _timed(
        table,
        label + "read of a payload, 100 at once",
        len(wanted),
        lambda: [owner.store.pages(b) for b in batches],
    )
    owner.store.close()
    owner = Owner(_timed(table, label + "open", 1, lambda: SqliteStore.open(path, "q")))
    _timed(table, label + "read of an active row at a start", many, lambda: list(owner.store.active()))
    ends = [owner.end(n, n // TENANTS * STRIDE, at=float(n)) for n in range(1, many + 1)]
    _timed(table, label + "end", many, _groups(owner, "ends", ends, size))
    store = owner.store
    _timed(table, label + "listing of 100 by tenant", 1, lambda: store.ended("", "tenant-7", {}, 0, 100))
    none = label + "listing by a tenant that has none, per row"
    _timed(table, none, many, lambda: store.ended("", "none", {}, 0, 1))
    _timed(table, label + "purge", many, _groups(owner, "purge", [row.id for row in rows], size))
    owner.store.close()


def _small(table: Table, folder: Path, many: int) -> None:
    owner = Owner(SqliteStore.open(folder / "small.db", "q"))
    meta = b"m" * 100
    few = max(1, many // 10)
    _timed(table, "empty group, unsynced", many, lambda: [owner.write(meta=meta) for _ in range(many)])
    _timed(table, "empty group, synced", few, lambda: [owner.write(meta=meta, sync=True) for _ in range(few)])
    logs = {"meta": meta, "journal": b"j" * 500, "events": b"e" * 500}
    _timed(
        table,
        "group with journal and events, unsynced",
        many,
        lambda: [owner.write(**logs) for _ in range(many)],
    )
    puts = [[Put(Kind.TENANT, f"tenant-{n}", 0, b"%d" % k * 20) for n in range(100)] for k in range(few)]
    _timed(
        table,
        "object replaced, 100 in a group",
        100 * few,
        lambda: [owner.write(puts=group) for group in puts],
    )
    owner.store.close()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--folder", type=Path, help="on which disk")
    options.add_argument("--rows", type=int, default=100_000)
    given = options.parse_args()
    if given.quick:
        given.rows = 1_000
    figures = Figures("store", given)
    table = figures.table("Microseconds each", "what", "by the clock", "of CPU")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        for size in (100, 1000):
            _life(table, folder, given.rows, size, {}, "messages")
        _life(table, folder, given.rows, 1000, {"mode": "preview", "day": 7}, "with two metadata pairs")
        _small(table, folder, max(20, given.rows // 20))
    figures.end()


if __name__ == "__main__":
    main()
