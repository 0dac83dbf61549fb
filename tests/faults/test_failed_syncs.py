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
