"""Seals: a value that turned into another one that reads as well is refused, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from fairway.errors import StoreCorrupt
from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore
from fairway.store.sqlite.looking import Look
from fairway.testing.conformance import Owner

Read = Callable[[SqliteStore], object]


def active(store: SqliteStore) -> object:
    return list(store.active())


def ended(store: SqliteStore) -> object:
    return store.ended("", None, {}, 0, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with something of everything in it."""
    owner = Owner(SqliteStore.open(tmp_path / "work.db", "q"))
    owner.write(
        rows=[owner.row(1, 5), owner.row(2, 6)],
        puts=[Put(Kind.PROGRESS, owner.id(1), 0, b"half"), Put(Kind.TENANT, "acme", 0, b"weight")],
        journal=b"journal",
        events=b"events",
        meta=b"meta",
    )
    owner.write(ends=[owner.end(2, 6)], meta=b"meta")
    owner.store.close()
    return tmp_path / "work.db"


def change(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    assert connection.changes() == 1
    assert connection.pragma("integrity_check") == "ok", "SQLite sees nothing"
    connection.close()


BODY = "body = CAST(substr(body, 1, length(body) - 1) || x'00' AS BLOB)"


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        (f"UPDATE runs SET {BODY} WHERE pass = 5", active),
        ("UPDATE runs SET tenant = 'else' WHERE pass = 5", active),
        ("UPDATE runs SET tenant = 'else' WHERE pass = 5", lambda store: store.run(1 << 22)),
        ("UPDATE runs SET pass = 4 WHERE pass = 5", active),
        ("UPDATE runs SET id = id + 9 WHERE pass = 5", active),
        ("UPDATE runs SET id = id + 9 WHERE pass = 5", lambda store: store.above((0, 0), 9)),
        ("UPDATE levels SET tenant = 'else'", active),
        (f"UPDATE ends SET {BODY}", ended),
        ("UPDATE ends SET state = 'failed'", ended),
        (f"UPDATE objects SET {BODY} WHERE kind = 3", lambda store: store.above((0, 0), 9)),
        (f"UPDATE objects SET {BODY} WHERE kind <> 3", lambda store: list(store.objects(Kind.TENANT))),
        ("UPDATE objects SET key = 'else' WHERE kind <> 3", lambda store: list(store.objects(Kind.TENANT))),
        (f"UPDATE journal SET {BODY}", lambda store: list(store.journal())),
        ("UPDATE journal SET place = place + 1", lambda store: list(store.journal())),
        (f"UPDATE events SET {BODY}", lambda store: store.events(0, 9)),
        ("UPDATE queues SET meta = CAST(meta || x'00' AS BLOB)", SqliteStore.take_over),
    ],
)
def test_a_value_that_turned_into_another_is_refused(path: Path, sql: str, read: Read) -> None:
    store = SqliteStore.open(path, "q")
    assert read(store), "there is something to be read"
    store.close()
    change(path, sql)
    store = SqliteStore.open(path, "q")
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        read(store)
    store.close()


def test_a_look_refuses_it_too(path: Path) -> None:
    change(path, "UPDATE queues SET meta = CAST(meta || x'00' AS BLOB)")
    with pytest.raises(StoreCorrupt):
        Look(str(path), "q")


def test_bodies_of_older_files_have_no_seal_and_are_read(path: Path) -> None:
    connection = apsw.Connection(str(path))
    for table in ("runs", "ends", "objects", "journal", "events"):
        connection.execute(f"UPDATE {table} SET body = substr(body, 6)")
    connection.execute("UPDATE queues SET meta = substr(meta, 6)")
    connection.close()
    store = SqliteStore.open(path, "q")
    assert store.take_over().body == b"meta"
    assert [run.progress for run in store.above((0, 0), 9)] == [b"half"]
    assert [body for _, body in store.journal()] == [b"journal"]
    assert ended(store)
    store.close()
