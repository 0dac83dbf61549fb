"""The write-ahead log: what is synced, checkpoints beside the writer, the bound, readers beside the writer."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore
from fairway.store.sqlite import store as sqlite_store
from fairway.store.sqlite.connections import IDLE_READERS_MAX
from fairway.testing.conformance import Owner
from tests.store.faulty_disk import FaultyDisk


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.unregister()


@pytest.fixture
def store(tmp_path: Path, disk: FaultyDisk) -> Iterator[SqliteStore]:
    store = SqliteStore.open(tmp_path / "work.db", "q", vfs=disk.name)
    yield store
    store.close()


@pytest.fixture
def owner(store: SqliteStore) -> Owner:
    return Owner(store)


def test_only_groups_that_ask_for_it_wait_for_the_disk(owner: Owner, disk: FaultyDisk) -> None:
    owner.write()
    for sync in (True, False, False, True, True, False):
        disk.counts.clear()
        owner.write(sync=sync, rows=[owner.row(owner.number + 1)])
        assert disk.counts["write", "-wal"] > 0
        assert disk.counts["sync", "-wal"] == (1 if sync else 0)
        assert disk.counts["write", ""] == 0, "the file itself is written by checkpoints alone"


def test_taking_over_and_settling_wait_for_the_disk(owner: Owner, disk: FaultyDisk) -> None:
    assert owner.active() == []  # a reader keeps the log open, so that every sync of it is one of a commit
    stored, lost = owner.write(), owner.group()
    for group in (stored, lost):
        disk.counts.clear()
        assert owner.store.settle(group) is (group is stored)
        assert disk.counts["sync", "-wal"] == 2, "of the log, which is written again first, and of the commit"
    disk.counts.clear()
    owner.store.take_over()
    assert disk.counts["sync", "-wal"] == 1


def test_a_checkpoint_moves_the_log_into_the_file_while_the_writer_goes_on(
    owner: Owner, store: SqliteStore
) -> None:
    failures: list[BaseException] = []
    done = threading.Event()
    checkpoints = 0

    def checkpoint() -> None:
        nonlocal checkpoints
        try:
            while not done.is_set():
                store.checkpoint()
                checkpoints += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=checkpoint)
    thread.start()
    for n in range(300):
        owner.write(rows=[owner.row(n + 1)], sync=n % 10 == 0)
    until = time.monotonic() + 60
    while not checkpoints and not failures and time.monotonic() < until:
        time.sleep(0.001)
    done.set()
    thread.join()
    assert not failures
    assert checkpoints > 0
    assert store.checkpoint() is True
    assert store.wal_bytes > 0
    assert owner.active() == list(range(1, 301))


def test_an_open_read_holds_the_log_back_and_nothing_else(owner: Owner, store: SqliteStore) -> None:
    owner.write(rows=[owner.row(1), owner.row(2)])
    reading = store.active()
    assert next(reading).id == owner.id(1)
    owner.write(rows=[owner.row(3)])
    assert store.checkpoint() is False
    assert [run.id for run in reading] == [owner.id(2)], "a read sees one moment"
    assert store.checkpoint() is True


def test_the_log_is_bounded_without_any_checkpoint_beside_the_writer(
    owner: Owner, store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 1024 * 1024
    monkeypatch.setattr("fairway.store.sqlite.store.WAL_BYTES_MAX", bound)
    largest = 0
    for n in range(100):
        owner.write(rows=[owner.row(n + 1, pages=(b"x" * 100_000,))])
        largest = max(largest, (tmp_path / "work.db-wal").stat().st_size)
    assert bound < largest < 2 * bound
    assert (tmp_path / "work.db").stat().st_size > 8_000_000


def test_a_read_that_holds_the_log_back_does_not_make_the_writer_checkpoint_every_time(
    owner: Owner, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.sqlite.store.WAL_BYTES_MAX", 80 * 4096)
    tries = 0
    real = store._shorten_wal

    def counted() -> None:
        nonlocal tries
        tries += 1
        real()

    monkeypatch.setattr(store, "_shorten_wal", counted)
    owner.write(rows=[owner.row(1), owner.row(2)])
    reading = store.active()
    next(reading)
    for n in range(100):
        owner.write(puts=[Put(Kind.HOLD, n, 0, b"x" * 3000)])
    assert 2 <= tries <= 40
    del reading
    for n in range(100):
        owner.write(puts=[Put(Kind.HOLD, n, 0, b"x" * 3000)])
    assert store.wal_bytes <= 100 * 4096


def test_a_read_that_is_given_up_gives_its_connection_back(owner: Owner, store: SqliteStore) -> None:
    owner.write(rows=[owner.row(n) for n in range(1, 50)])
    for _ in range(20):
        next(store.active())
    assert len(store._readers._idle) == 1
    at_once = [store.active() for _ in range(10)]
    assert {next(reading).id for reading in at_once} == {owner.id(1)}
    del at_once
    assert len(store._readers._idle) == IDLE_READERS_MAX, "the others are closed"
    owner.write(rows=[owner.row(60)])
    assert store.checkpoint() is True, "no snapshot was left open"


def test_many_threads_read_while_one_writes(owner: Owner, store: SqliteStore) -> None:
    owner.write(rows=[owner.row(n, pages=(b"p",)) for n in range(1, 101)])
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                # Ends and levels change in one group: a read never finds a run in both or in neither.
                assert len(list(store.active())) % 10 == 0
                assert store.run(owner.id(1)) is not None
                assert len(store.pages([(owner.id(n), 0) for n in range(1, 101)])) == 100
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for first in range(1, 101, 10):
        owner.write(ends=[owner.end(n) for n in range(first, first + 10)])
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert (owner.active(), len(owner.ended())) == ([], 100)
    assert len(store._readers._idle) <= 4


def test_closing_beside_readers_lets_them_end(owner: Owner, store: SqliteStore, tmp_path: Path) -> None:
    owner.write(rows=[owner.row(n) for n in range(1, 50)])
    reading = store.active()
    next(reading)
    store.close()
    assert len(list(reading)) == 48
    assert [file.name for file in tmp_path.iterdir()] == ["work.db"], (
        "the writer copied the log, the last removed it"
    )


def test_queues_of_one_file_are_written_from_their_own_threads(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    owners = [Owner(SqliteStore.open(tmp_path / "work.db", f"q{n}")) for n in range(3)]

    def write(owner: Owner) -> None:
        try:
            for n in range(1, 101):
                owner.write(rows=[owner.row(n)], sync=n % 20 == 0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for owner in owners:
        assert (owner.active(), owner.store.last_number()) == (list(range(1, 101)), 100)
        owner.store.close()


def test_the_writer_copies_the_rest_of_a_checkpoint_and_begins_the_log_anew(
    owner: Owner, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever copies beside a busy writer is never done, and a log that grows is synced slowly."""
    passes = 0

    def busy(connection: apsw.Connection) -> bool:
        nonlocal passes
        whole = passive(connection)
        if connection is store._checkpointer:
            passes += 1
            owner.write(puts=[Put(Kind.HOLD, 1, 0, b"x" * 3000)])
        return whole

    passive = sqlite_store._passive
    monkeypatch.setattr(sqlite_store, "_passive", busy)
    for n in range(50):
        owner.write(puts=[Put(Kind.HOLD, n, 0, b"x" * 3000)])
    longest = store.wal_bytes
    assert store.checkpoint() is True and 1 < passes < 10
    for n in range(2):
        owner.write(puts=[Put(Kind.HOLD, n, 0, b"x" * 3000)])
    assert store.wal_bytes < longest / 4


def test_a_checkpoint_that_a_read_holds_back_does_not_keep_the_writer(
    owner: Owner, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def counted() -> None:
        nonlocal tries
        tries += 1

    monkeypatch.setattr(store, "_shorten_wal", counted)
    owner.write(rows=[owner.row(1), owner.row(2)])
    reading = store.active()
    next(reading)
    for n in range(20):
        owner.write(puts=[Put(Kind.HOLD, n, 0, b"x" * 3000)])
        assert store.checkpoint() is False
    assert tries == 0
    del reading
