"""Seals of bucket queues: a value that turned into another one is refused, and no message is passed over in silence."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import fairway
from fairway.errors import StoreCorrupt
from fairway.store.sqlite.queues import bucket_names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of a bucket queue with messages in every state, in two buckets."""
    with fairway.open(tmp_path / "work.db", "events", kind="bucket") as q:
        q.configure(bucket_rows=10)
        q.put_many([b"%d" % n * 10 for n in range(10)])
        q.put_many([{"payload": b"%d" % n * 10, "headers": {"n": n}} for n in range(10, 20)])
        q.put(b"later", delay_seconds=3000)
        leases = q.reserve(max=8)
        q.complete(leases[:2])
        q.fail(leases[2:4], "no good", retry=False)
        q.fail(leases[4:6], "not yet", delay_seconds=0.0)
    return tmp_path / "work.db"


def drained(path: Path) -> int:
    """Ask a queue everything; how many messages it gave and told of."""
    with fairway.open(path, "events", kind="bucket") as q:
        told = len(list(q.dead())) + q.stats().leased
        while leases := q.reserve(max=50):
            told += len(leases)
    return told


def change(path: Path, sql: str) -> None:
    """As damage does it: SQLite must not compute the mark of a head anew."""
    made = rewrite(
        path, lambda made: re.sub(r"(mark +INTEGER NOT NULL) AS \(.*?\) STORED", r"\1", made, flags=re.S)
    )
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    assert connection.changes() == 1
    connection.close()
    rewrite(path, lambda _: made)
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok", "SQLite sees nothing"
    connection.close()


def rewrite(path: Path, anew: Callable[[str], str]) -> str:
    """Write the definition of the heads anew; gives what it was."""
    connection = apsw.Connection(str(path))
    made = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'bucket_rows'").get
    connection.pragma("writable_schema", True)
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'bucket_rows'", (anew(made),))
    connection.close()
    return made


ONE = "WHERE uid = (SELECT min(uid) FROM bucket_rows WHERE status = 0 AND held = 0)"
DONE = "WHERE uid = (SELECT min(uid) FROM bucket_rows WHERE status = 1)"
DEAD = "WHERE uid = (SELECT max(uid) FROM bucket_dead)"
LAST = "WHERE bucket = (SELECT max(bucket) FROM {})"
TURNED = "{0} = CAST(substr({0}, 1, length({0}) - 1) || x'7f' AS BLOB)"


@pytest.mark.parametrize(
    "sql",
    [
        *(
            f"UPDATE bucket_rows SET {column} = {column} + 1 {ONE}"
            for column in ("number", "created", "not_before", "version", "nonce", "lease", "attempts", "held")
        ),
        *(f"UPDATE bucket_rows SET status = {status} {ONE}" for status in (1, 2, 3, 4)),
        f"UPDATE bucket_rows SET lease = 9e99 {ONE}",
        f"UPDATE bucket_rows SET error = 'another' {ONE}",
        f"UPDATE bucket_rows SET {TURNED.format('uid')} {ONE}",
        f"UPDATE bucket_rows SET status = 0 {DONE}",
        f"DELETE FROM bucket_rows {ONE}",
        f"UPDATE bucket_bodies SET {TURNED.format('body')} {ONE}",
        f"UPDATE bucket_bodies SET headers = x'80' {ONE}",
        f"UPDATE bucket_bodies SET number = number + 1 {ONE}",
        f"UPDATE bucket_bodies SET {TURNED.format('uid')} {ONE}",
        f"DELETE FROM bucket_bodies {ONE}",
        f"UPDATE buckets SET state = 'done' {LAST.format('buckets')}",
        f"UPDATE buckets SET state = 'gone' {LAST.format('buckets')}",
        f"UPDATE buckets SET born = born + 1 {LAST.format('buckets')}",
        f"UPDATE bucket_index SET bucket = x'00' {LAST.format('bucket_index')}",
        f"UPDATE bucket_index SET generation = x'00' {LAST.format('bucket_index')}",
        f"UPDATE bucket_index SET due = 9e99 {LAST.format('bucket_index')}",
        f"DELETE FROM bucket_index {LAST.format('bucket_index')}",
        "UPDATE bucket_queues SET floor = x'ff'",
        "UPDATE bucket_queues SET newest = x'ff'",
        "UPDATE bucket_queues SET config = x'80'",
        "UPDATE bucket_queues SET secret = x'00'",
        "UPDATE bucket_queues SET state = 'dead'",
        "UPDATE bucket_queues SET version = version + 1",
        "UPDATE bucket_queues SET generation = x'00'",
        "UPDATE bucket_queues SET name = 'eventt'",
        "UPDATE bucket_names SET name = 'eventt'",
        "UPDATE bucket_names SET current = x'00'",
        f"UPDATE bucket_dead SET {TURNED.format('body')} {DEAD}",
        f"UPDATE bucket_dead SET error = 'another' {DEAD}",
        f"UPDATE bucket_dead SET dropped = 1 {DEAD}",
        f"UPDATE bucket_dead SET generation = x'00' {DEAD}",
        f"UPDATE bucket_dead SET attempts = 9 {DEAD}",
        "UPDATE bucket_letters SET many = many - 1",
    ],
)
def test_a_bucket_queue_refuses_a_value_that_turned_into_another(path: Path, sql: str) -> None:
    shutil.copy(path, path.with_name("sound.db"))
    assert drained(path.with_name("sound.db")) == 18, "all but two that are completed and one that is delayed"
    change(path, sql)
    with pytest.raises(StoreCorrupt, match="damaged"):
        drained(path)


def test_damage_that_stops_the_repairer_is_told_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    change(path, f"UPDATE buckets SET state = 'gone' {LAST.format('buckets')}")
    end = time.monotonic() + 30.0
    with fairway.open(path, "events", kind="bucket"):
        while not (told := [r.getMessage() for r in caplog.records if "cannot repair" in r.getMessage()]):
            assert time.monotonic() < end, "nothing was said"
            time.sleep(0.02)
    assert len(told) == 1 and "Queue events cannot repair its buckets" in told[0] and "damaged" in told[0]


def test_a_listing_refuses_a_name_that_turned_into_another(path: Path) -> None:
    assert bucket_names(str(path)) == ["events"]
    change(path, "UPDATE bucket_names SET name = 'eventt'")
    with pytest.raises(StoreCorrupt):
        bucket_names(str(path))


def test_an_index_that_would_hide_new_messages_is_refused(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO bucket_index_dropped SELECT generation, x'ff', 0 FROM bucket_queues")
    connection.close()
    with pytest.raises(StoreCorrupt, match="damaged"):
        drained(path)


def test_a_text_that_is_none_any_more_is_damage(path: Path) -> None:
    change(path, f"UPDATE bucket_rows SET error = CAST(x'ff' AS TEXT) {ONE}")
    with pytest.raises(StoreCorrupt, match="damaged"):
        drained(path)
