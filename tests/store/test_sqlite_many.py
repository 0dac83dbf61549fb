"""Many rows by one statement, and places by a range of ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from fairway.store.sqlite import SqliteStore
from fairway.store.sqlite.many import run_many
from fairway.testing.conformance import Owner


@pytest.fixture
def table() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (place INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
    yield connection
    connection.close()


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 49, 50, 61, 123])
def test_many_rows_are_what_each_of_them_would_be_in_their_order(table: apsw.Connection, n: int) -> None:
    rows = [(i * i, f"row {i}") for i in range(n)]
    assert run_many(table, "INSERT INTO t (a, b) VALUES (?, ?)", rows) == n
    assert table.execute("SELECT a, b FROM t ORDER BY place").fetchall() == rows
    gone = [(a, b) for a, b in rows if a % 3]
    assert run_many(table, "DELETE FROM t WHERE (a, b) IN (VALUES (?, ?))", [*gone, (-1, "no")]) == len(gone)
    assert run_many(table, "DELETE FROM t WHERE a = ?", [(a,) for a, _ in rows]) == n - len(gone)


def test_a_group_of_many_rows_compiles_nothing_anew(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "work.db", "q")
    owner = Owner(store)

    def write(first: int) -> None:
        rows = [owner.row(n, n) for n in range(first, first + 300)]
        owner.write(rows=rows, journal=b"j", events=b"e", event_time=1.0)
        owner.write(ends=[owner.end(n, n) for n in range(first, first + 300)], journal=b"j")

    write(1)
    assert store._writer is not None
    before = store._writer.cache_stats()["misses"]
    write(301)
    assert store._writer.cache_stats()["misses"] == before
    store.close()


def test_runs_find_their_places_whatever_lies_between_their_ids(tmp_path: Path) -> None:
    one, other = (SqliteStore.open(tmp_path / "work.db", name) for name in ("one", "other"))
    here, there = Owner(one), Owner(other)
    there.write(rows=[there.row(n, 7) for n in (2, 4)])
    here.write(rows=[here.row(n, 10 - n) for n in (1, 3, 5)])  # ids of the other queue lie between them
    here.write(rows=[here.row(n, 20 - n) for n in (2, 9)])  # and of its own
    here.write(rows=[here.row(n, 30) for n in (11, 12)])
    assert here.active() == [5, 3, 1, 9, 2, 11, 12]
    assert there.active() == [2, 4]
    one.close()
    other.close()
