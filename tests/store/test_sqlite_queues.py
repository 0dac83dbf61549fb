"""The queues of a file as a whole: their names, and how one is deleted."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import fairway
from fairway.store.sqlite import SqliteStore, queues
from fairway.store.sqlite.copying import copy
from fairway.store.sqlite.seals import teach
from fairway.store.sqlite.statements import load, steps
from fairway.testing.conformance import Owner


def test_a_file_that_is_not_there_has_no_queues(tmp_path: Path) -> None:
    assert queues.names(str(tmp_path / "w.db")) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_queue_leaves_nothing_and_its_number_is_never_given_again(tmp_path: Path) -> None:
    path = str(tmp_path / "w.db")
    for name in ("kept", "gone"):
        with fairway.open(path, name) as q:
            q.submit([b"x" * 70_000] * 3, tenant="a", metadata={"k": 1}, key="k")
            done = q.put(b"done")
            q.complete(q.reserve(10, strategy="NewestFirst"), results=[b"r"] * 4)
            assert q.submission(done).state == "completed"
            q.submit(chunks=5)
    before = queues.names(path)
    assert queues.bury(path, "gone") and not queues.bury(path, "gone") and not queues.bury(path, "never")
    assert queues.names(path) == {"kept": before["kept"]}
    assert queues.sweep(path) == 3 and queues.sweep(path) == 0
    with fairway.open(path, "kept") as q:
        assert len(list(q.submissions())) == 3 and list(q.events())
    with fairway.open(path, "gone") as q:
        assert list(q.submissions()) == [] and list(q.events()) == []
        assert q.submit([b"new"], tenant="a", key="k").state == "active"
    assert queues.names(path)["gone"] not in before.values()
    connection = apsw.Connection(path)
    for table in ("levels", "ends", "metadata", "objects", "keys", "events"):
        sql = f"SELECT count(*) FROM {table} WHERE queue = ?"
        assert connection.execute(sql, (before["gone"],)).fetchall() == [(0,)], table
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_an_owner_of_a_deleted_queue_is_fenced_out(tmp_path: Path) -> None:
    path = str(tmp_path / "w.db")
    with fairway.open(path, "gone") as q:
        q.put(b"x")
        queues.bury(path, "gone")
        with pytest.raises(fairway.NotFound, match="deleted"):
            q.put(b"y")


@pytest.mark.parametrize(("name", "sql"), load("queues.sql").items())
def test_every_statement_fits_the_schema(name: str, sql: str) -> None:
    connection = apsw.Connection(":memory:")
    teach(connection)
    for step in steps():
        connection.execute(step)
    values = [1] * max((int(digit) for digit in "12" if f"?{digit}" in sql), default=0)
    connection.execute(f"EXPLAIN {sql}", values).fetchall()
    connection.close()


def test_whoever_leaves_last_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    host = Owner(SqliteStore.open(path, "q"))
    reader = SqliteStore.open(path, "q")  # one that is attached to the host and never writes
    host.write(rows=[host.row(n) for n in range(1, 50)])
    assert len(list(reader.active())) == 49
    host.store.close()
    assert len(list(reader.active())) == 49
    reader.close()
    assert [file.name for file in tmp_path.iterdir()] == ["work.db"], (
        "a copy of the file alone has everything"
    )
    assert queues.bury(str(path), "q") and queues.sweep(str(path)) == 49
    assert [file.name for file in tmp_path.iterdir()] == ["work.db"]


def test_a_queue_of_a_backup_that_nobody_opened_is_deleted(tmp_path: Path) -> None:
    Owner(SqliteStore.open(tmp_path / "work.db", "q")).store.close()
    (tmp_path / "backup.db").touch()
    copy(str(tmp_path / "work.db"), str(tmp_path / "backup.db"), lambda done, of: None)
    assert queues.bury(str(tmp_path / "backup.db"), "q") and queues.names(str(tmp_path / "backup.db")) == {}
