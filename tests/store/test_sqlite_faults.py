"""A SQLite file on a disk that fails: typed errors, nothing half-written, service as soon as the disk is back."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from fairway.errors import Fenced, GroupUnknown, ReadOnly, StoreCorrupt, StoreFailed, StoreFull
from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore, opening
from fairway.testing.conformance import Owner, everything
from tests.store.faulty_disk import FaultyDisk, full, sync_fails


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.unregister()


@pytest.fixture
def store(tmp_path: Path, disk: FaultyDisk) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path / "work.db", "q", vfs=disk.name)
    yield store
    disk.fault = None
    store.close()


@pytest.fixture
def owner(store: SqliteStore) -> Owner:
    owner = Owner(store)
    owner.write(rows=[owner.row(1)], meta=b"before")
    return owner


def _crashed(tmp_path: Path) -> Owner:
    """The file and its log as a crash at this moment would leave them, opened by the next owner."""
    for suffix in ("", "-wal"):
        (tmp_path / f"copy.db{suffix}").write_bytes((tmp_path / f"work.db{suffix}").read_bytes())
    return Owner(SqliteStore.open(tmp_path / "copy.db", "q"))


def _big(owner: Owner, first: int) -> list[object]:
    return [owner.row(n, pages=(b"x" * 50_000,)) for n in range(first, first + 20)]


@pytest.mark.parametrize("sync", [False, True])
def test_a_full_disk_refuses_the_group_and_the_next_one_works_once_there_is_space(
    owner: Owner, disk: FaultyDisk, sync: bool
) -> None:
    before = everything(owner.store, [owner.id(1), owner.id(2)])
    with disk.failing(full):
        for _ in range(3):
            with pytest.raises(StoreFull):
                owner.write(sync=sync, rows=_big(owner, 2), puts=[Put(Kind.HOLD, 1, 0, b"o")])
        assert everything(owner.store, [owner.id(1), owner.id(2)]) == before, "reads go on"
    assert owner.store.last_number() == 1
    owner.write(sync=sync, rows=_big(owner, 2))
    assert owner.active() == list(range(1, 22))


def test_a_disk_that_fills_up_anywhere_in_a_group_keeps_nothing_of_it(
    owner: Owner, disk: FaultyDisk, tmp_path: Path
) -> None:
    before = everything(owner.store, [owner.id(2)])
    rows = [owner.row(n, pages=(b"x" * 5000,)) for n in range(2, 5)]
    for allowed in range(1000):
        left = iter(range(allowed))

        def fault(operation: str, file: str, left: Iterator[int] = left) -> None:
            if operation == "write" and next(left, None) is None:
                raise apsw.FullError("no space left")

        try:
            with disk.failing(fault):
                owner.write(rows=rows)
            break
        except StoreFull:
            assert everything(owner.store, [owner.id(2)]) == before
        after = _crashed(tmp_path)
        assert after.active() == [1], "what was refused does not come back"
        after.store.close()
    assert allowed > 10, "the group was large enough to be cut in many places"
    assert owner.active() == [1, 2, 3, 4]


def test_a_file_that_may_not_grow_is_a_full_disk(owner: Owner, store: SqliteStore) -> None:
    writer = store._writer
    assert writer is not None
    pages = writer.pragma("page_count")
    writer.pragma("max_page_count", pages + 2)
    with pytest.raises(StoreFull):
        owner.write(rows=_big(owner, 2))
    assert owner.active() == [1]
    writer.pragma("max_page_count", pages + 1000)
    owner.write(rows=_big(owner, 2))
    assert len(owner.active()) == 21


@pytest.mark.parametrize("others", [False, True])
def test_a_commit_that_fails_to_sync_is_unknown_until_it_is_settled(
    owner: Owner, disk: FaultyDisk, others: bool
) -> None:
    store = owner.store
    assert isinstance(store, SqliteStore) and store._checkpointer is not None
    if not others:  # they keep the log open; without them it is recovered when the next connection comes
        store._checkpointer.close()
        store._checkpointer = None
    group = owner.group(sync=True, rows=[owner.row(2)])
    with disk.failing(sync_fails):
        with pytest.raises(GroupUnknown):
            owner.store.commit(group)
        with pytest.raises(GroupUnknown):
            owner.store.settle(group)
    stored = owner.store.settle(group)
    assert stored is not others
    assert owner.store.last_number() == group.number
    assert owner.active() == ([1, 2] if stored else [1])
    assert owner.store.settle(group) is stored
    with pytest.raises(Fenced):
        owner.store.commit(group)
    owner.number = group.number
    owner.write(sync=True, rows=[owner.row(3)])
    assert 3 in owner.active()


def test_a_burnt_group_does_not_come_back_after_a_crash(
    owner: Owner, disk: FaultyDisk, tmp_path: Path
) -> None:
    """The commit frame of the failed group is in the log; the burn must have written over it."""
    assert owner.active() == [1]  # a reader keeps the log open, else closing the failed writer ends it
    group = owner.group(sync=True, rows=[owner.row(2)])
    with disk.failing(sync_fails), pytest.raises(GroupUnknown):
        owner.store.commit(group)
    assert owner.store.settle(group) is False
    after = _crashed(tmp_path)
    assert (after.meta.number, after.active()) == (group.number, [1])
    after.store.close()


def test_an_unsettled_group_may_come_back_after_a_crash(
    owner: Owner, disk: FaultyDisk, tmp_path: Path
) -> None:
    """Why a failed sync is unknown and not failed: without the burn the same copy holds the group."""
    assert owner.active() == [1]
    with disk.failing(sync_fails), pytest.raises(GroupUnknown):
        owner.store.commit(owner.group(sync=True, rows=[owner.row(2)]))
    after = _crashed(tmp_path)
    assert after.active() == [1, 2]
    after.store.close()


def test_a_takeover_that_cannot_be_stored_is_refused_and_may_be_repeated(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    with disk.failing(full), pytest.raises(StoreFull):
        store.take_over()
    with disk.failing(sync_fails), pytest.raises(StoreFailed):
        store.take_over()
    first = store.take_over()
    assert first.range_id >= 1
    assert store.take_over().range_id == first.range_id + 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [(apsw.ReadOnlyError, ReadOnly), (apsw.CorruptError, StoreCorrupt), (apsw.NotADBError, StoreCorrupt)],
)
def test_other_failures_of_a_statement_have_their_own_errors(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error], expected: type[Exception]
) -> None:
    def fails(*_: object) -> None:
        raise error("as told")

    with monkeypatch.context() as patch:
        patch.setattr("fairway.store.sqlite.store.apply", fails)
        with pytest.raises(expected):
            owner.write(rows=[owner.row(2)])
    owner.write(rows=[owner.row(2)])
    assert owner.active() == [1, 2]


def test_a_lock_that_is_never_let_go_is_a_failure_and_not_a_hang(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = owner.store
    assert isinstance(store, SqliteStore) and store._writer is not None
    store._writer.set_busy_timeout(50)
    other = apsw.Connection(str(tmp_path / "work.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="lock"):
        owner.write(rows=[owner.row(2)])
    assert owner.active() == [1], "readers do not wait for the writer"
    other.execute("ROLLBACK")
    other.close()
    owner.write(rows=[owner.row(2)])
    assert owner.active() == [1, 2]


def _damaged_behind_the_schema(path: Path) -> None:
    owner = Owner(SqliteStore.open(path, "q"))
    owner.write(rows=[owner.row(n, pages=(b"x" * 900,)) for n in range(1, 500)], sync=True)
    owner.store.close()
    content = bytearray(path.read_bytes())
    for page in range(80, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)


def test_damage_of_a_small_file_is_reported_when_it_is_opened(tmp_path: Path) -> None:
    _damaged_behind_the_schema(tmp_path / "work.db")
    before = (tmp_path / "work.db").read_bytes()
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        SqliteStore.open(tmp_path / "work.db", "q")
    assert (tmp_path / "work.db").read_bytes() == before


def test_damage_in_the_middle_of_a_large_file_is_reported_by_the_read_that_meets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "CHECKED_FILE_BYTES_MAX", 0)
    _damaged_behind_the_schema(tmp_path / "work.db")
    store = SqliteStore.open(tmp_path / "work.db", "q")
    with pytest.raises(StoreCorrupt):
        list(store.active())
    store.close()
