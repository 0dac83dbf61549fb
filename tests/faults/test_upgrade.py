"""An upgrade that is cut off anywhere: the next one to open the file goes on, and everything is there."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import fairway
from fairway.store.sqlite import SqliteStore
from fairway.store.sqlite.statements import steps
from fairway.testing.disk.vfs import Disk
from tests.faults.old_files import Present, make_old, make_present, picture, schema
from tests.faults.places import place

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent.parent
VERSIONS = range(len(steps()))


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Present:
    return make_present(tmp_path_factory.mktemp("present") / "work.db")


def old_file(present: Present, folder: Path, version: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "work.db"
    if version:
        make_old(present.path, path, version)
    else:
        path.touch()  # a file that was made and got nothing yet
    return path


def wanted(present: Present, tmp_path: Path, version: int) -> tuple[dict, tuple]:
    """What an upgrade that nobody disturbs leaves: all that the file with the same rows tells that needs none."""
    path = old_file(present, tmp_path / "undisturbed", version)
    told = picture(path, present)
    if version:
        same = picture(Path(shutil.copy(present.path, tmp_path / "same.db")), present)
        if version < 3:  # there were no bucket queues
            same["messages"] = None
        assert told == same, "an upgrade takes nothing away"
        assert told["counts"] == ["done"] and told["known by its key"] and told["events"]
        assert version < 3 or told["messages"][-1] == ["done"]
    return told, schema(path)


def test_an_upgrade_that_takes_something_away_is_found_out(
    present: Present, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = VERSIONS[-1]

    def found_out(loss: str, folder: Path) -> bool:
        spoilt = [*steps()[:version], f"{steps()[version]}{loss}"]
        monkeypatch.setattr("fairway.store.sqlite.store.steps", lambda: spoilt)
        try:
            wanted(present, folder, version)
        except (
            AssertionError,
            fairway.FairwayError,
        ):  # a file that everybody finds damaged is found out as well
            return True
        return False

    assert not found_out("", tmp_path / "sound")
    for what, loss in losses(present.path):
        assert found_out(loss, tmp_path / what), f"nobody misses {what}"


def losses(path: Path) -> Iterator[tuple[str, str]]:
    """What an upgrade could take away: all of a table, of every one that has something, and one submission."""
    with closing(apsw.Connection(str(path))) as connection:
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        tables = {name for (name,) in found}
        filled = {name for name in tables if connection.execute(f"SELECT 1 FROM {name}").fetchone()}
    assert tables - filled == {"bucket_index_dropped", "bucket_repairers"}
    yield from ((name, f"DELETE FROM {name};") for name in sorted(filled))
    last = "WHERE id = (SELECT max(id) FROM runs)"
    yield "the last submission", f"DELETE FROM levels {last}; DELETE FROM runs {last};"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kill_before_and_after_every_statement_of_an_upgrade_resumes(
    present: Present, tmp_path: Path, version: int
) -> None:
    told, tables = wanted(present, tmp_path, version)
    assert tables[0] == len(steps()) and tables[2] == "ok"
    assert bool(told["given"]) is (version > 0)
    assert (told["messages"] and told["messages"][0]) == ((33, 1, 8, 3) if version >= 3 else None)
    old, folder = old_file(present, tmp_path / "old", version), tmp_path / "killed"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.faults.upgrading", str(old), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    kills = int(done.stdout)
    statements = sum(step.count(";") for step in steps()[version:])
    assert kills > statements, done.stderr
    seen: set[bytes] = set()
    for statement in range(1, kills + 1):
        path = folder / f"{statement}.db"
        if fresh(path, seen):
            assert picture(path, present) == told, f"killed before statement {statement}"
            assert schema(path) == tables
    print(f"from version {version}: {kills} kills left {len(seen)} different files")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_power_cut_before_a_change_of_the_disk_in_an_upgrade_resumes(
    present: Present, tmp_path: Path, version: int, record_proof: Callable[..., None]
) -> None:
    upgrades_through_cuts(present, tmp_path, version, 4, record_proof)


@pytest.mark.proof
@pytest.mark.parametrize("version", VERSIONS)
def test_a_power_cut_before_every_change_of_the_disk_in_an_upgrade_resumes(
    present: Present, tmp_path: Path, version: int, record_proof: Callable[..., None]
) -> None:
    upgrades_through_cuts(present, tmp_path, version, 1, record_proof)


def upgrades_through_cuts(
    present: Present, tmp_path: Path, version: int, step: int, record: Callable[..., None]
) -> None:
    told, tables = wanted(present, tmp_path, version)
    content = old_file(present, tmp_path / "old", version).read_bytes()
    cuts, change = 0, 1
    while after := cut_off(content, tmp_path, change):
        assert picture(after, present) == told, f"cut before change {change}"
        assert schema(after) == tables
        cuts, change = cuts + 1, change + step
    print(f"from version {version}: {cuts} cuts")
    assert change > 10
    record(
        f"power cut while a file of schema {version} is opened or upgraded",
        operations=cuts,
        faults=cuts,
        lost=0,  # a file that tells something else would have ended the test
        note="before every write and sync",
    )


def test_a_new_file_whose_first_transaction_lost_power_is_no_other_programs(tmp_path: Path) -> None:
    """Its header may be missing while its journal, which makes it empty again, is there."""
    headless = 0
    change = 0
    while after := cut_off(b"", tmp_path, change := change + 1):
        content = after.read_bytes() if after.exists() else b""
        if content and not content.startswith(b"SQLite format 3"):
            headless += 1
            SqliteStore.open(after, "default").close()
            assert schema(after)[0] == len(steps())
    assert headless


def cut_off(content: bytes, folder: Path, change: int) -> Path | None:
    """What is left of a file that is opened when the power goes before this change; None: it was open by then."""
    path = place({"work.db": content}, folder / f"before {change}")
    disk = Disk(path.parent, change)
    disk.cut_at = change
    try:
        store = SqliteStore.open(path, "default", vfs=disk.name)
        try:
            store.take_over()  # who has written copies the log when it closes
        finally:
            store.close()
    except fairway.FairwayError:
        assert disk.off
    disk.unregister()
    if not disk.off:
        return None
    return place(disk.platter.cut(random.Random(change)), folder / f"after {change}")


def fresh(path: Path, seen: set[bytes]) -> bool:
    """Whether no other file and its companions had the same content: most statements leave nothing on the disk."""
    companions = (path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal"))
    picture = b"|".join(file.read_bytes() if file.exists() else b"-" for file in companions)
    if picture in seen:
        return False
    seen.add(picture)
    return True
