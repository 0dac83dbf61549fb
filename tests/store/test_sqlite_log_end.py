"""A log that was damaged in its middle is told from one that ended there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from fairway.store.sqlite import SqliteStore, log_end

HEADER_BYTES, FRAME_BYTES = 32, 24 + 4096


class Left:
    """A file whose process is gone, with all that it wrote still in the log."""

    def __init__(self, folder: Path) -> None:
        SqliteStore.open(folder / "first.db", "q").close()
        shutil.copy(folder / "first.db", folder / "work.db")
        self._connection = apsw.Connection(str(folder / "work.db"))
        self._connection.wal_autocheckpoint(0)
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._folder, self.path = folder, folder / "left" / "work.db"

    def write(self, transactions: int) -> None:
        for n in range(transactions):
            with self._connection:
                self._connection.execute(
                    "INSERT INTO events SELECT max(place, 0) + 1, 0, ?1, zeroblob(9000)"
                    " FROM (SELECT max(place) AS place FROM events)",
                    (n,),
                )

    def roll_back(self) -> None:
        """Pages that were put into the log before their transaction was given up."""
        self._connection.pragma("cache_size", 2)
        self._connection.execute("BEGIN")
        self.write(10)
        self._connection.execute("ROLLBACK")

    def be_killed(self, rows: int) -> None:
        """Leave in the log what another process wrote, all of its commit, before it could tell those that live."""
        twin = self._folder / "twin.db"
        for end in ("", "-wal"):
            shutil.copy(f"{self._folder / 'work.db'}{end}", f"{twin}{end}")
        other = apsw.Connection(str(twin))
        other.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO events SELECT 1000 + i, 0, i, zeroblob(9000) FROM n",
            (rows,),
        )
        shutil.copyfile(f"{twin}-wal", self._folder / "work.db-wal")
        other.close()

    def leave(self) -> Path:
        (self._folder / "left").mkdir()
        for name in ("work.db", "work.db-wal"):
            shutil.copy(self._folder / name, self._folder / "left" / name)
        self._connection.close()
        return Path(f"{self.path}-wal")

    def warnings(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        caplog.clear()
        SqliteStore.open(self.path, "q").close()
        return [record.getMessage() for record in caplog.records]


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Left]:
    yield Left(tmp_path)


def turn_over(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (0, "at its first byte"),
        (13, "at its first byte"),
        (HEADER_BYTES + 2, "before 5 of its commits"),  # the number of a page
        (HEADER_BYTES + 9, "before 5 of its commits"),  # a salt
        (HEADER_BYTES + 17, "before 5 of its commits"),  # a checksum
        (HEADER_BYTES + 700, "before 5 of its commits"),  # a page
    ],
)
def test_commits_behind_a_damaged_place_of_the_log_are_told_of_once(
    left: Left, caplog: pytest.LogCaptureFixture, place: int, words: str
) -> None:
    left.write(5)
    turn_over(left.leave(), place)
    (told,) = left.warnings(caplog)
    assert f"work.db: its log breaks off {words}." in told
    assert left.warnings(caplog) == []


def test_a_log_that_ends_in_a_part_of_a_commit_is_no_damage(
    left: Left, caplog: pytest.LogCaptureFixture
) -> None:
    left.write(5)
    log = left.leave()
    os.truncate(log, log.stat().st_size - FRAME_BYTES - 100)
    assert left.warnings(caplog) == []


def test_pages_of_a_transaction_that_was_rolled_back_are_no_damage(
    left: Left, caplog: pytest.LogCaptureFixture
) -> None:
    left.write(2)
    left.roll_back()
    left.write(1)
    log = left.leave()
    assert log.stat().st_size > HEADER_BYTES + 20 * FRAME_BYTES, "they were in the log"
    assert left.warnings(caplog) == []


def test_a_log_that_was_begun_anew_in_its_old_place_is_no_damage(
    left: Left, caplog: pytest.LogCaptureFixture
) -> None:
    left.write(20)
    left._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    left.write(2)
    assert left.leave().stat().st_size > HEADER_BYTES + 20 * FRAME_BYTES
    assert left.warnings(caplog) == []


def test_what_is_left_of_the_commit_of_a_killed_process_need_not_be_damage(
    left: Left, caplog: pytest.LogCaptureFixture
) -> None:
    left.write(2)
    left.be_killed(10)
    left.write(1)  # over the first of its pages
    assert left.leave().stat().st_size > HEADER_BYTES + 20 * FRAME_BYTES
    (told,) = left.warnings(caplog)
    assert (
        "breaks off before 1 of its commits. If a process was killed while others had the file open" in told
    )


def test_commits_of_others_meanwhile_are_no_damage(
    left: Left, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    left.write(2)
    left.leave()
    other, mine = (apsw.Connection(str(left.path)) for _ in range(2))
    look = log_end._frames_seen

    def meanwhile(connection: apsw.Connection) -> int:
        seen = look(connection)
        other.execute("INSERT INTO events VALUES (99, 0, 1, zeroblob(9000))")
        return seen

    monkeypatch.setattr(log_end, "_frames_seen", meanwhile)
    assert not log_end.warn_of_a_lost_end(mine, str(left.path), None)
    assert caplog.records == []
    other.close()
    mine.close()


def test_a_file_without_a_log_is_no_damage(left: Left, caplog: pytest.LogCaptureFixture) -> None:
    left.write(1)
    left.leave().unlink()
    assert left.warnings(caplog) == []
    Path(f"{left.path}-wal").write_bytes(bytes(5000))
    assert left.warnings(caplog) == []
