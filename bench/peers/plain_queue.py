"""The peer of the embedded benches: the plainest durable queue one would write on SQLite by hand.

One row per chunk, a state column, one transaction per call, fsync at put and complete: no fairness, no receipts,
no retries, no events, no results. What Fairway does beyond it, it does inside the ratio that is printed.
"""

from __future__ import annotations

from pathlib import Path

import apsw


class PlainQueue:
    """A table of chunks, handed out oldest first."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))
        for line in ("journal_mode=wal", "synchronous=full"):
            self._db.execute(f"PRAGMA {line}")
        self._db.execute(
            "CREATE TABLE chunk (id INTEGER PRIMARY KEY, tenant TEXT, payload BLOB, leased REAL)"
        )
        self._db.execute("CREATE INDEX waiting ON chunk (id) WHERE leased IS NULL")

    def put_many(self, items: list[tuple[str, bytes]]) -> None:
        with self._db:
            self._db.executemany("INSERT INTO chunk (tenant, payload) VALUES (?, ?)", items)

    def reserve(self, many: int) -> list[tuple[int, bytes]]:
        with self._db:
            found = list(
                self._db.execute(
                    "SELECT id, payload FROM chunk WHERE leased IS NULL ORDER BY id LIMIT ?", (many,)
                )
            )
            self._db.executemany("UPDATE chunk SET leased = 1 WHERE id = ?", [(id,) for id, _ in found])
        return found

    def complete(self, ids: list[int]) -> None:
        with self._db:
            self._db.executemany("DELETE FROM chunk WHERE id = ?", [(id,) for id in ids])

    def close(self) -> None:
        self._db.close()
