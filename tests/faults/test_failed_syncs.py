"""A sync that failed, and a power cut later: what was acknowledged after it is there all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.bucket import statements as s
from fairway.errors import GroupUnknown, StoreFailed
from fairway.store.sqlite import SqliteStore
from fairway.store.sqlite.buckets import SqliteBuckets
from fairway.testing.conformance import Owner
from fairway.testing.disk.faults import failed_sync
from fairway.testing.disk.vfs import Disk
from tests.faults.places import place

pytestmark = pytest.mark.real


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "before"
    folder.mkdir()
    disk = Disk(folder)
    yield disk
    disk.unregister()


@pytest.fixture
def owner(tmp_path: Path, disk: Disk) -> Iterator[Owner]:
    owner = Owner(SqliteStore.open(tmp_path / "before" / "work.db", "q", vfs=disk.name))
    owner.write(rows=[owner.row(1)], sync=True)
    yield owner
    disk.plan = None
    owner.store.close()


def after_the_cut(tmp_path: Path, disk: Disk) -> list[int]:
    """Which rows are there when nothing that was owed got to the platter."""
    again = Owner(SqliteStore.open(place(disk.platter.cut(disk.dice, 0.0), tmp_path / "after"), "q"))
    try:
        return again.active()
    finally:
        again.store.close()


@pytest.mark.parametrize("readers", [False, True])
def test_what_is_acknowledged_after_a_commit_that_failed_to_sync_survives_power_loss(
    owner: Owner, disk: Disk, tmp_path: Path, readers: bool
) -> None:
    if readers:
        assert owner.active() == [1]
    # Not synced: the kernel owes them; and more than SQLite's file layer takes at a time.
    owner.write(rows=[owner.row(n, pages=(b"x" * 50_000,)) for n in range(2, 40)])
    group = owner.group(sync=True, rows=[owner.row(50)])
    disk.plan = failed_sync()
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    disk.plan = None
    stored = owner.store.settle(group)
    owner.number = group.number
    owner.write(rows=[owner.row(60)], sync=True)
    assert after_the_cut(tmp_path, disk) == [*range(1, 40), *([50] if stored else []), 60]
    assert disk.retried == [], "the handle that was told of the failure is not used again"


def test_what_is_acknowledged_after_a_checkpoint_that_failed_to_sync_survives_power_loss(
    owner: Owner, disk: Disk, tmp_path: Path
) -> None:
    owner.write(rows=[owner.row(n) for n in range(2, 40)])
    disk.plan = failed_sync()
    store = owner.store
    assert isinstance(store, SqliteStore)
    with pytest.raises(StoreFailed):
        store.checkpoint()
    disk.plan = None
    owner.write(rows=[owner.row(60)], sync=True)
    assert after_the_cut(tmp_path, disk) == [*range(1, 40), 60]
    assert disk.retried == []


def test_the_writers_own_checkpoint_that_failed_is_not_forgotten(
    owner: Owner, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.sqlite.store.WAL_BYTES_MAX", 4096)
    disk.plan = failed_sync()
    store = owner.store
    assert isinstance(store, SqliteStore)
    store._wal_bytes_next = 4096
    owner.write(rows=[owner.row(n) for n in range(2, 40)])  # and then checkpoints, in vain
    assert disk.faults
    disk.plan = None
    owner.write(rows=[owner.row(60)], sync=True)
    assert after_the_cut(tmp_path, disk) == [*range(1, 40), 60]
    assert disk.retried == []


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_what_is_acknowledged_by_the_next_process_survives_power_loss(
    owner: Owner, disk: Disk, tmp_path: Path, end: str
) -> None:
    """Who opens the file after a sync failed is not told of it, and sees a log that is not on the disk."""
    owner.write(rows=[owner.row(n, pages=(b"x" * 50_000,)) for n in range(2, 40)])  # the kernel owes them
    group = owner.group(sync=True, rows=[owner.row(50)])
    disk.plan = failed_sync()
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    if end == "closed":
        owner.store.close()
    disk.plan = None  # killed: its connections are left as they are, and nobody hears of them again
    later = Owner(SqliteStore.open(tmp_path / "before" / "work.db", "q", vfs=disk.name))
    later.write(rows=[later.row(60)], sync=True)
    assert [n for n in after_the_cut(tmp_path, disk) if n != 50] == [*range(1, 40), 60]
    assert disk.retried == []
    later.store.close()


def test_a_log_that_is_doubtful_is_not_copied_into_the_file(owner: Owner, disk: Disk, tmp_path: Path) -> None:
    """Else a power cut leaves pages in the file that are newer than the log beside it."""
    owner.write(rows=[owner.row(n, pages=(b"x" * 50_000,)) for n in range(2, 40)])
    path = tmp_path / "before" / "work.db"
    disk.plan = failed_sync()
    with pytest.raises(GroupUnknown):
        owner.store.commit(owner.group(sync=True, rows=[owner.row(50)]))
    disk.plan = None
    later = SqliteStore.open(path, "q", vfs=disk.name)
    before = disk.changes
    assert not later.checkpoint()
    assert len(list(later.active())) > 1
    later.close()
    assert disk.changes == before, (
        "neither a checkpoint nor a reader that leaves has written or synced anything"
    )
    assert after_the_cut(tmp_path, disk)[0] == 1


def test_a_checkpoint_of_another_queue_hears_of_the_failed_sync(
    owner: Owner, disk: Disk, tmp_path: Path
) -> None:
    """Its own handle is as old as its belief in the log; one that was opened for the checkpoint would not be told."""
    other = Owner(SqliteStore.open(tmp_path / "before" / "work.db", "other", vfs=disk.name))
    other.write(rows=[other.row(1)], sync=True)
    owner.write(rows=[owner.row(n, pages=(b"x" * 50_000,)) for n in range(2, 40)])
    disk.plan = failed_sync()
    with pytest.raises(GroupUnknown):
        owner.store.commit(owner.group(sync=True, rows=[owner.row(50)]))
    disk.plan = None
    assert isinstance(other.store, SqliteStore)
    with pytest.raises(StoreFailed):
        other.store.checkpoint()
    assert after_the_cut(tmp_path, disk)[0] == 1
    other.store.close()


def test_a_file_whose_own_sync_failed_keeps_its_log_until_it_is_opened_anew(
    owner: Owner, disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was copied in part before is not on the disk, and SQLite does not copy it twice."""
    store = owner.store
    assert isinstance(store, SqliteStore)
    owner.write(rows=[owner.row(n, pages=(b"x" * 50_000,)) for n in range(2, 10)], sync=True)
    with store._readers.borrow() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchall()
        owner.write(rows=[owner.row(n, pages=(b"y" * 50_000,)) for n in range(10, 40)], sync=True)
        assert not store.checkpoint(), "a reader holds a part of it back"
        reader.execute("ROLLBACK")
    disk.plan = failed_sync("work.db")
    with pytest.raises(StoreFailed):
        store.checkpoint()
    disk.plan = None
    assert "a sync failed while its log was copied" in caplog.text
    for n in (60, 61, 62):
        owner.write(rows=[owner.row(n)], sync=True)
        assert not store.checkpoint()
    assert after_the_cut(tmp_path, disk) == [*range(1, 40), 60, 61, 62]
    store.close()
    again = Owner(SqliteStore.open(tmp_path / "before" / "work.db", "q", vfs=disk.name))
    again.write(rows=[again.row(70)], sync=True)
    assert isinstance(again.store, SqliteStore) and again.store.checkpoint()
    again.write(rows=[again.row(71)], sync=True)  # the log begins anew
    (tmp_path / "later").mkdir()
    assert after_the_cut(tmp_path / "later", disk) == [*range(1, 40), 60, 61, 62, 70, 71]
    assert disk.retried == []
    again.store.close()


def test_a_bucket_queues_messages_survive_the_failed_sync_of_another_process(
    disk: Disk, tmp_path: Path
) -> None:
    path = tmp_path / "before" / "work.db"
    first = SqliteBuckets.open(path, vfs=disk.name)
    assert first.execute(s.Beat("q", "me", "", 0)) is s.APPLIED
    assert first.execute(s.Beat("q", "me", "me", 1)) is s.APPLIED  # not synced: the kernel owes it
    disk.plan = failed_sync()
    assert first.execute(s.CreateQueue("other", 0, b"h" * 16, b"{}", b"secret")) is s.UNKNOWN
    disk.plan = None
    second = SqliteBuckets.open(path, vfs=disk.name)
    assert second.execute(s.CreateQueue("q", 0, b"g" * 16, b"{}", b"secret")) is s.APPLIED
    after = SqliteBuckets.open(place(disk.platter.cut(disk.dice, 0.0), tmp_path / "after"))
    assert after.execute(s.ReadName("q")).current == b"g" * 16
    assert disk.retried == []
    for one in (after, second, first):
        one.close()


def test_a_bucket_queues_checkpoint_that_failed_to_sync_is_not_forgotten(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own checkpoint after a commit keeps a failure to itself."""
    buckets = SqliteBuckets.open(tmp_path / "before" / "work.db", vfs=disk.name)
    assert buckets.execute(s.Beat("q", "me", "", 0)) is s.APPLIED  # the first one of a log is always synced
    disk.plan = failed_sync()
    with monkeypatch.context() as patch:
        patch.setattr("fairway.store.sqlite.buckets.WAL_CHECKPOINT_PAGES", 1)
        assert (
            buckets.execute(s.Beat("q", "me", "me", 1)) is s.APPLIED
        )  # not synced, then a checkpoint in vain
    assert disk.faults
    disk.plan = None
    assert buckets.execute(s.CreateQueue("q", 0, b"g" * 16, b"{}", b"secret")) is s.APPLIED
    after = SqliteBuckets.open(place(disk.platter.cut(disk.dice, 0.0), tmp_path / "after"))
    assert after.execute(s.ReadName("q")).current == b"g" * 16
    assert disk.retried == []
    after.close()
    buckets.close()
