"""The door: who hosts is written in the lock file, and locks die with their process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairway
from fairway.errors import BadArgument, HostStuck, QueueHeld, ReadOnly, StoreFull
from fairway.runtime import door as door_module
from fairway.runtime.door import Door, Record
from fairway.runtime.entrance import Claim, Entrance
from tests.attach.member_script import Child

STANDING = """
    import sys
    from fairway.runtime.door import Door, Record
    door = Door(sys.argv[1])
    {todo}
    print("there", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(path: Path, todo: str) -> Iterator[subprocess.Popen[str]]:
    """A process that does something with the door and stays."""
    code = textwrap.dedent(STANDING).replace("{todo}", todo)
    command = [sys.executable, "-c", code, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_is_written_is_read_and_shorter_records_replace_longer_ones(tmp_path: Path) -> None:
    door = Door(str(tmp_path / "x.lock"))
    with door.entered():
        assert door.read() is None
        for record in (Record(1, 7, "a" * 200, 1), Record(256, 8, "b", 0)):
            door.write(record)
            assert door.read() == record
    door.close()
    door.close()
    assert stat.S_IMODE((tmp_path / "x.lock").stat().st_mode) == 0o600


def test_the_lock_file_of_an_older_fairway_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_text("12345\n")
    door = Door(str(path))
    assert door.read() is None
    door.close()


def test_a_generation_is_held_by_one_process_and_free_when_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with another(path, "door.hold(5); door.hold(6); door.free(6)") as other:
        door = Door(str(path))
        assert door.held(5)
        assert not door.hold(5)
        assert not door.held(6)
        assert door.hold(6)
        assert not door.held(6), "held by another process, that is"
        other.kill()
        other.wait()
        assert not door.held(5)
        door.close()


def test_asking_does_not_let_go_of_what_is_held(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    door = Door(str(path))
    assert door.hold(5)
    assert not door.held(5)
    with another(path, "assert door.held(5)"):
        pass
    door.close()


def test_nobody_enters_while_another_stands_in_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "DOOR_SECONDS", 0.2)
    path = tmp_path / "x.lock"
    with another(path, "inside = door.entered(); inside.__enter__()") as other:
        door = Door(str(path))
        with pytest.raises(QueueHeld, match=f"process {other.pid}"), door.entered():
            pass
        other.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(HostStuck, match=f"process {other.pid}"), door.entered():
            pass
        other.kill()
        other.wait()
        with door.entered():
            pass
        door.close()


def test_lock_files_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadArgument, match="folder"):
        Door(str(tmp_path / "none" / "x.lock"))

    for number, kind in ((13, ReadOnly), (28, StoreFull)):

        def failing(*args: object, number: int = number) -> int:
            raise OSError(number, "no")

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", failing)
            with pytest.raises(kind):
                Door(str(tmp_path / "x.lock"))


def test_a_claim_takes_the_next_generation_and_removes_the_socket_of_the_dead(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    entrance = Entrance(str(path), "q")
    first = entrance.enter(True, 0)
    assert isinstance(first, Claim)
    assert first.generation == 1
    (socket,) = tmp_path.glob("*.sock")
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    entrance.door.free(1)
    assert entrance.enter(False, 0) is None
    second = entrance.enter(True, 0)
    assert isinstance(second, Claim)
    assert [p.name for p in tmp_path.glob("*.sock")] == ["work.db-q.2.sock"]
    for claim in (first, second):
        claim.listener.close()
    assert list(tmp_path.glob("*.sock")) == []
    entrance.door.close()


def test_a_held_generation_is_passed_over_only_if_it_is_the_silent_one(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    lock = Path(f"{path}-q.lock")
    with another(lock, "door.write(Record(4, 77, 'x.sock', 1)); door.hold(4)"):
        entrance = Entrance(str(path), "q")
        for replace in (0, 3):
            found = entrance.enter(True, replace)
            assert isinstance(found, Record)
            assert found.pid == 77
        claim = entrance.enter(True, 4)
        assert isinstance(claim, Claim)
        assert claim.generation == 5
        claim.listener.close()
        entrance.door.close()


def test_a_host_of_another_protocol_keeps_the_queue(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    lock = Path(f"{path}-default.lock")
    holding = another(lock, "door.write(Record(4, 77, 'x.sock', 999)); door.hold(4)")
    with holding, pytest.raises(QueueHeld, match="process 77"):
        fairway.open(path)
    with fairway.open(path) as q:
        q.put(b"x")


def test_files_and_sockets_are_private(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db"):
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert set(modes) >= {"work.db", "work.db-default.lock", "work.db-default.1.sock"}
    assert set(modes.values()) == {0o600}


def test_a_path_longer_than_a_socket_address(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    path = folder / "work.db"
    with Child.opened(path), Child.opened(path) as other:
        assert other.way == "Attached"
        other.do("put_many('x', 3)")
    with fairway.open(path) as q:
        assert q.stats().chunks_waiting == 3
