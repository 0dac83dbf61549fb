"""Opening a file: new, ours, another program's, newer, damaged, read-only; each a typed error and no change."""

import fcntl
import hashlib
import os
import random
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from fairway.errors import (
    BadArgument,
    FairwayError,
    NotFairway,
    ReadOnly,
    SchemaNewer,
    StoreCorrupt,
    StoreFailed,
)
from fairway.store.sqlite import SqliteStore, opening
from fairway.store.sqlite.opening import APPLICATION_ID, migrate, open_file, share_log
from fairway.store.sqlite.seals import teach
from fairway.store.sqlite.statements import steps
from fairway.testing.conformance import Owner

STEPS = [
    "CREATE TABLE one (x); CREATE TABLE uno (x);",
    "CREATE TABLE two (x);",
    "INSERT INTO two VALUES (3);",
]


def _pictured(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file of a folder with the hash of its content and its time of change."""
    return {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in folder.iterdir()
    }


def _other_program(path: Path, *, application_id: int = 0, wal: bool = False) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", application_id)
    if wal:
        connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    connection.close()


# -- a new file
def test_a_new_file_is_private_and_says_whose_it_is(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "work.db", "q")
    assert store.take_over().range_id == 1
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["work.db", "work.db-shm", "work.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["work.db"], "closing folds the log into the file"
    header = (tmp_path / "work.db").read_bytes()[:100]
    assert int.from_bytes(header[68:72]) == APPLICATION_ID
    assert int.from_bytes(header[60:64]) == len(steps())


def test_an_empty_file_becomes_a_queue(tmp_path: Path) -> None:
    (tmp_path / "work.db").touch()
    store = SqliteStore.open(tmp_path / "work.db", "q")
    assert store.take_over().range_id == 1
    store.close()


def test_many_threads_may_make_one_file_at_once(tmp_path: Path) -> None:
    opened: list[SqliteStore | BaseException] = []
    together = threading.Barrier(12)

    def run(queue: str) -> None:
        together.wait()
        try:
            opened.append(SqliteStore.open(tmp_path / "work.db", queue))
        except BaseException as error:
            opened.append(error)

    threads = [threading.Thread(target=run, args=(f"q{n % 4}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stores = [store for store in opened if isinstance(store, SqliteStore)]
    assert len(stores) == 12, opened
    assert sorted({store.take_over().queue_number for store in stores}) == [0, 1, 2, 3]
    for store in stores:
        store.close()


class _Changing:
    """A connection to a file whose mode somebody else is changing for a while."""

    def __init__(self, busy: int) -> None:
        self.busy = busy

    def pragma(self, name: str, value: str) -> str:
        assert (name, value) == ("journal_mode", "wal")
        self.busy -= 1
        if self.busy >= 0:
            raise apsw.BusyError
        return value


def test_an_opener_waits_while_another_turns_the_log_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert share_log(_Changing(3)) == "wal"  # type: ignore[arg-type]
    monkeypatch.setattr("fairway.store.sqlite.opening.BUSY_MILLISECONDS_MAX", 20)
    with pytest.raises(apsw.BusyError):
        share_log(_Changing(10**9))  # type: ignore[arg-type]


def test_there_is_a_last_queue_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.store.sqlite.store.QUEUES_PER_FILE_MAX", 2)
    for queue in ("a", "b", "a"):
        SqliteStore.open(tmp_path / "work.db", queue).close()
    with pytest.raises(BadArgument, match="2 queues"):
        SqliteStore.open(tmp_path / "work.db", "c")


@pytest.mark.parametrize("queue", ["", "x" * 129, "é" * 65])
def test_a_queue_name_has_bounds(tmp_path: Path, queue: str) -> None:
    with pytest.raises(BadArgument):
        SqliteStore.open(tmp_path / "work.db", queue)
    assert list(tmp_path.iterdir()) == []


# -- paths that cannot be
def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="none") as caught:
        SqliteStore.open(tmp_path / "none" / "work.db", "q")
    assert str(tmp_path / "none") in str(caught.value)


@pytest.mark.parametrize("path", [":memory:", "", "a\x00b"])
def test_what_is_no_file_name_is_refused(path: str) -> None:
    with pytest.raises(BadArgument):
        SqliteStore.open(path, "q")


def test_a_folder_or_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / ("x" * 300)):
        with pytest.raises(BadArgument):
            SqliteStore.open(path, "q")


# -- files that are not ours
@pytest.mark.parametrize("wal", [False, True])
@pytest.mark.parametrize("application_id", [0, 0x0F055112])
def test_another_programs_database_is_left_alone(tmp_path: Path, application_id: int, wal: bool) -> None:
    _other_program(tmp_path / "theirs.db", application_id=application_id, wal=wal)
    before = _pictured(tmp_path)
    with pytest.raises(NotFairway):
        SqliteStore.open(tmp_path / "theirs.db", "q")
    assert _pictured(tmp_path) == before


def test_another_programs_database_in_use_is_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "theirs.db"))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE theirs (x)")
    before = _pictured(tmp_path)
    assert "theirs.db-wal" in before
    with pytest.raises(NotFairway):
        SqliteStore.open(tmp_path / "theirs.db", "q")
    assert _pictured(tmp_path) == before
    connection.close()


@pytest.mark.parametrize("content", [b"x", b"hello world\n" * 1000, b"SQLite format 3\x00", b"\x00" * 4096])
def test_what_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    before = _pictured(tmp_path)
    with pytest.raises(NotFairway):
        SqliteStore.open(tmp_path / "file", "q")
    assert _pictured(tmp_path) == before


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path / "work.db", "q").close()
    connection = apsw.Connection(str(tmp_path / "work.db"))
    connection.pragma("user_version", len(steps()) + 1)
    connection.close()
    before = _pictured(tmp_path)
    with pytest.raises(SchemaNewer):
        SqliteStore.open(tmp_path / "work.db", "q")
    assert _pictured(tmp_path) == before


def test_a_file_whose_log_makes_it_newer_keeps_its_log(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path / "work.db", "q").close()
    connection = apsw.Connection(str(tmp_path / "work.db"))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.pragma("user_version", len(steps()) + 1)
    connection.close()
    before = _pictured(tmp_path)
    assert len(before) > 1
    with pytest.raises(SchemaNewer):
        SqliteStore.open(tmp_path / "work.db", "q")
    after = _pictured(tmp_path)
    assert (after["work.db"], after["work.db-wal"]) == (before["work.db"], before["work.db-wal"])


# -- damage
def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    owner = Owner(SqliteStore.open(path, "q"))
    owner.write(rows=[owner.row(n) for n in range(1, 2000)], sync=True)
    owner.store.close()
    whole = path.read_bytes()
    dice = random.Random(7)
    damaged = {
        "schema": whole[:100] + bytes(4096 - 100) + whole[4096:],
        "cut to its header": whole[:100],
        "cut in a page": whole[:6000],
        "garbage": whole[:100] + dice.randbytes(len(whole) - 100),
    }
    for name, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(StoreCorrupt):
            store = SqliteStore.open(path, "q")
            try:
                list(store.active())
            finally:
                store.close()
        assert path.read_bytes()[:100] == content[:100], name


# -- read-only: the tests may run as root, whom no permission stops
def _as_nobody(check: Callable[[], None]) -> None:
    """Run a check in a child process without privileges."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            check()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _refused(path: Path) -> Callable[[], None]:
    def check() -> None:
        with pytest.raises(ReadOnly):
            SqliteStore.open(path, "q")

    return check


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may enter; pytest's own are for its user alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "folder"
        folder.mkdir()
        Path(name).chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_a_read_only_file_is_refused(open_folder: Path) -> None:
    SqliteStore.open(open_folder / "work.db", "q").close()
    (open_folder / "work.db").chmod(0o444)
    open_folder.chmod(0o777)
    before = _pictured(open_folder)
    _as_nobody(_refused(open_folder / "work.db"))
    assert _pictured(open_folder) == before


def test_an_unreadable_file_is_refused(open_folder: Path) -> None:
    SqliteStore.open(open_folder / "work.db", "q").close()
    (open_folder / "work.db").chmod(0o000)
    open_folder.chmod(0o777)
    before = _pictured(open_folder)
    _as_nobody(_refused(open_folder / "work.db"))
    assert _pictured(open_folder) == before


@pytest.mark.parametrize("exists", [False, True])
def test_a_read_only_folder_is_refused(open_folder: Path, exists: bool) -> None:
    if exists:
        SqliteStore.open(open_folder / "work.db", "q").close()
        (open_folder / "work.db").chmod(0o666)
    open_folder.chmod(0o555)
    before = _pictured(open_folder)
    _as_nobody(_refused(open_folder / "work.db"))
    assert _pictured(open_folder) == before


# -- the schema
def test_the_missing_steps_are_taken_in_order() -> None:
    connection = apsw.Connection(":memory:")
    for version in range(len(STEPS) + 1):
        migrate(connection, STEPS[:version])
        assert connection.pragma("user_version") == version
    tables = connection.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall()
    assert [name for (name,) in tables] == ["one", "two", "uno"]
    assert connection.execute("SELECT x FROM two").fetchall() == [(3,)]
    assert connection.pragma("application_id") == APPLICATION_ID


def test_places_of_an_older_file_learn_their_tenants() -> None:
    connection = apsw.Connection(":memory:")
    teach(connection)
    migrate(connection, steps()[:1])
    for id, tenant in ((1, "a"), (2, "b")):
        connection.execute(
            "INSERT INTO runs (id, pass, tenant, due, body) VALUES (?, 5, ?, 0.0, x'')", (id, tenant)
        )
        connection.execute("INSERT INTO levels (queue, pass, id) VALUES (0, 5, ?)", (id,))
    migrate(connection, steps())
    assert connection.execute("SELECT id, tenant FROM levels ORDER BY id").fetchall() == [(1, "a"), (2, "b")]
    connection.close()


def test_a_step_that_fails_leaves_the_version_before_it() -> None:
    connection = apsw.Connection(":memory:")
    with pytest.raises(StoreFailed):
        migrate(connection, [STEPS[0], "CREATE TABLE two (x); CREATE TABLE one (again)", STEPS[2]])
    assert connection.pragma("user_version") == 1
    tables = connection.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall()
    assert [name for (name,) in tables] == ["one", "uno"]
    migrate(connection, STEPS)
    assert connection.pragma("user_version") == 3


def test_a_step_that_another_process_took_meanwhile_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (apsw.Connection(str(tmp_path / "work.db")) for _ in range(2))
    real = opening._version

    def overtaken(connection: apsw.Connection) -> int:
        version = real(connection)
        monkeypatch.setattr(opening, "_version", real)
        migrate(other, STEPS)
        return version

    monkeypatch.setattr(opening, "_version", overtaken)
    migrate(one, STEPS)
    assert one.pragma("user_version") == 3
    assert one.execute("SELECT x FROM two").fetchall() == [(3,)]
    one.close()
    other.close()


def test_an_old_file_is_brought_up_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    open_file(path, None, STEPS[:1])[1].close()
    connection = open_file(path, None, STEPS)[1]
    assert connection.execute("SELECT x FROM two").fetchall() == [(3,)]
    connection.close()
    with pytest.raises(SchemaNewer):
        open_file(path, None, STEPS[:2])


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(FairwayError, match="too old"):
        SqliteStore.open(tmp_path / "work.db", "q")
    assert list(tmp_path.iterdir()) == []


# -- locks
def test_opening_a_file_again_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    """A plain open and close of the file would drop them, and another process would end our log."""
    first = SqliteStore.open(tmp_path / "work.db", "q")
    first.take_over()
    SqliteStore.open(tmp_path / "work.db", "other").close()
    with pytest.raises(BadArgument):
        SqliteStore.open(tmp_path / "work.db", "")
    probe = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)\n"
        "except OSError: sys.exit(7)\n"
    )
    assert fcntl.LOCK_EX  # SQLite's shared lock on its database, seen from outside
    done = subprocess.run([sys.executable, "-c", probe, str(tmp_path / "work.db")], timeout=60, check=False)
    assert done.returncode == 7
    first.close()
    done = subprocess.run([sys.executable, "-c", probe, str(tmp_path / "work.db")], timeout=60, check=False)
    assert done.returncode == 0
