"""One file and queue has one host: shared inside a process and with others, gone with the process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import fairway

HOLDER = """
    import sys, time, fairway
    q = fairway.open(sys.argv[1])
    q.put(b"from the other process")
    lease = q.reserve(lease_seconds=3600)[0] if "lease" in sys.argv else None
    print("open", flush=True)
    sys.stdin.read()
    q.close()
"""


def holder(path: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_opening_twice_shares_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "work.db"
    one = fairway.open(path)
    monkeypatch.chdir(tmp_path)
    two = fairway.open("work.db")
    (tmp_path / "link.db").symlink_to(path)
    three = fairway.open(f"file:{tmp_path}/link.db")
    one.put(b"x")
    assert two.stats().chunks_waiting == three.stats().chunks_waiting == 1
    one.close()
    one.close()
    with pytest.raises(fairway.Closed):
        one.put(b"y")
    lease = two.reserve()[0]
    two.close()
    assert three.complete(lease) == "done"
    three.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]


def test_every_queue_in_memory_is_its_own() -> None:
    with fairway.open(":memory:") as one, fairway.open(":memory:") as two:
        one.put(b"x")
        assert two.reserve() == []


def test_opening_while_another_thread_closes(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                with fairway.open(tmp_path / "work.db") as q:
                    q.put(b"x")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with fairway.open(tmp_path / "work.db") as q:
        assert q.stats().chunks_waiting == 60


@pytest.mark.real
def test_a_second_process_shares_the_queue_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    other = holder(path)
    with fairway.open(path) as q:
        assert q.reserve()[0].payload == b"from the other process"
        with fairway.open(path, queue="another") as another:
            assert another.reserve() == []
        other.communicate("")
        assert other.returncode == 0
        assert q.stats().chunks_leased == 1
    lock = Path(f"{path}-default.lock")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


@pytest.mark.real
def test_the_lock_dies_with_a_killed_process_and_its_leases_do_not(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    other = holder(path, "lease")
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with fairway.open(path) as q:
        assert q.stats().chunks_leased == 1
        assert q.reserve() == []
    with fairway.open(path, forget_leases=True) as q:
        assert q.reserve()[0].attempt == 1


@pytest.mark.real
def test_a_process_that_ends_without_close_has_stored_everything(tmp_path: Path) -> None:
    code = "import sys, fairway; q = fairway.open(sys.argv[1]); q.put_many([b'x'] * 500); sys.exit(3)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "w.db")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (3, "")
    with fairway.open(tmp_path / "w.db") as q:
        assert q.stats().chunks_waiting == 500
        assert q._port._member.way.engine.state.clients == {}  # type: ignore[attr-defined] # it even said goodbye


@pytest.mark.real
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_cannot_use_its_parents_queue_in_memory() -> None:
    with fairway.open(":memory:") as q:
        q.put(b"x")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover
            try:
                q.put(b"from the child")
                said = "no error"
            except fairway.QueueHeld as error:
                said = str(error)
            q.close()
            os.write(write, said.encode())
            os._exit(0)
        os.close(write)
        said = os.read(read, 1000).decode()
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
        assert f"process {os.getpid()} opened this queue" in said
        q.put(b"y")
        assert q.stats().chunks_waiting == 2


@pytest.mark.real
def test_a_forked_child_may_open_another_queue_and_end_as_it_likes(tmp_path: Path) -> None:
    code = """
        import os, sys, fairway
        q = fairway.open(sys.argv[1])
        q.put_many([b"x"] * 10)
        child = os.fork()
        if child == 0:
            with fairway.open(sys.argv[2]) as own:
                own.put(b"y")
                sys.exit(0 if own.stats().chunks_waiting == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        q.put(b"z")
        print(q.stats().chunks_waiting)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "a.db"), str(tmp_path / "b.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("11\n", "")


def test_create_false_refuses_a_file_and_a_queue_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(fairway.NotFound, match=r"nothing\.db"):
        fairway.open(tmp_path / "nothing.db", create=False)
    assert list(tmp_path.iterdir()) == []
    fairway.open(tmp_path / "w.db").close()
    fairway.open(tmp_path / "w.db", create=False).close()
    fairway.delete(tmp_path / "w.db", "default")
    for name in ("default", "never"):
        with pytest.raises(fairway.NotFound, match="no queue"):
            fairway.open(tmp_path / "w.db", name, create=False)
    fairway.open(tmp_path / "w.db", "messages", kind="bucket").close()
    with pytest.raises(fairway.BadArgument, match="is a bucket queue"):
        fairway.open(tmp_path / "w.db", "messages", create=False)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://x/y", "url must be"),
        ("file://host/x", "url must be"),
        ("", "url must be"),
        (7, "url must be"),
        (b"work.db", "url must be"),
        ("a\x00b", "url must be"),
        ("/no/such/folder/work.db", "folder"),
    ],
)
def test_urls_that_are_none(url: object, message: str) -> None:
    with pytest.raises(fairway.BadArgument, match=message):
        fairway.open(url)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"queue": "a/b"}, {"create": 1}, {"forget_leases": None}])
def test_options_that_are_none(option: dict) -> None:
    with pytest.raises(fairway.BadArgument):
        fairway.open(":memory:", **option)


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    with pytest.raises(fairway.NotFairway):
        fairway.open(path)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]


def test_a_fenced_host_takes_the_queue_back_if_nobody_hosts_it(tmp_path: Path) -> None:
    from fairway.store.sqlite import SqliteStore

    path = tmp_path / "work.db"
    with fairway.open(path) as q:
        q.put(b"x")
        rival = SqliteStore.open(path, "default")
        rival.take_over()
        rival.close()
        q.put(b"y")
        assert q.stats().chunks_waiting == 2
