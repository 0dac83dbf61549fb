"""Fork, spawn and pickled queues: a child is a process like any other."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import fairway
from fairway.runtime import member as member_module
from fairway.store.sqlite import SqliteStore
from tests.attach.member_script import Child

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]


def in_a_child(do: Callable[[], object]) -> str:
    """What a function says in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            said = repr(do())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


def work(q: fairway.Queue, name: str) -> tuple[str, bytes, int]:
    way = type(q._port._member.way).__name__  # type: ignore[attr-defined]
    q.put(name.encode())
    lease = q.reserve(wait_seconds=20)[0]
    q.complete(lease)
    return way, lease.payload, q.stats().chunks_waiting


def test_a_forked_child_attaches_to_its_parent(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        q.put(b"of the parent")
        assert in_a_child(lambda: work(q, "of the child")) == repr(("Between", b"of the parent", 1))
        q.put(b"x")
        assert type(q._port._member.way).__name__ == "Host"  # type: ignore[attr-defined]
        assert [lease.payload for lease in q.reserve(max=9)] == [b"of the child", b"x"]


def test_a_forked_child_of_an_attached_process_attaches_to_the_host(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Child.opened(path) as host, fairway.open(path) as q:
        q.put(b"of the parent")
        assert in_a_child(lambda: work(q, "of the child")) == repr(("Between", b"of the parent", 1))
        q.put(b"x")
        assert host.do("len(q.reserve(max=9))") == 2


def test_a_child_forked_while_other_threads_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_module, "_FORK_SECONDS", 60.0)  # a commit may take long on a busy disk
    with fairway.open(tmp_path / "work.db") as q:
        ending = threading.Event()
        done: list[int] = []

        def busy() -> None:
            while not ending.is_set():
                done.append(q.put(b"x").id)
                q.stats()
                list(q.events())[:1]

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for i in range(10):
                said = in_a_child(lambda i=i: q.put(b"child", metadata={"i": i}).state)
                assert said == "'active'"
        finally:
            ending.set()
            for thread in threads:
                thread.join()
        assert q.stats().chunks_waiting == len(done) + 10


def test_a_forked_child_outlives_its_parent_and_hosts(tmp_path: Path) -> None:
    code = """
        import os, sys, time, fairway
        q = fairway.open(sys.argv[1])
        q.put_many([b"parent"] * 10)
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(write)
            q.put(b"attached")
            assert list(q.events())  # it has the file open when the parent leaves
            os.read(read, 1)  # until the parent has ended
            for i in range(200):
                q.put(b"child")
            print(type(q._port._member.way).__name__, flush=True)
            os._exit(0)  # as if it were killed: what is acknowledged is in the log that others read
        time.sleep(1)
        q.put(b"parent")
        q.close()
        os._exit(0)
    """
    path = tmp_path / "work.db"
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("Host\n", "")
    with fairway.open(path) as q:
        assert q.stats().chunks_waiting == 212
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"


def test_a_fork_leaves_a_transaction_of_its_parent_alone(tmp_path: Path) -> None:
    """A child that forked in the middle of a commit must not undo what its parent is writing."""
    path = tmp_path / "work.db"
    with fairway.open(path) as q:
        ending = threading.Event()
        put: list[int] = []

        def busy() -> None:
            while not ending.is_set():
                put.extend(sub.id for sub in q.put_many([b"y" * 5000] * 50))

        thread = threading.Thread(target=busy)
        thread.start()
        for _ in range(20):
            in_a_child(lambda: None)
        ending.set()
        thread.join()
        assert q.stats().chunks_waiting == len(put)
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    with fairway.open(path) as q:
        assert q.stats().chunks_waiting == len(put)


def test_a_child_forked_in_the_middle_of_a_transaction_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "work.db"
    monkeypatch.setattr(member_module, "_FORK_SECONDS", 0.1)

    def again() -> str:
        try:
            q.put(b"x")
        except fairway.QueueHeld:
            q.close()
            fairway.open(path)
        return "both worked"

    with fairway.open(path) as q:
        q.put(b"x")
        with q._port._member.store._lock:  # type: ignore[attr-defined]
            said = in_a_child(again)
        assert said.startswith("QueueHeld: this process was forked")
        q.put(b"y")
        assert q.stats().chunks_waiting == 2


def test_a_child_that_closes_late_leaves_the_log_of_others_alone(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = SqliteStore.open(path, "default")
    store.take_over()
    read, write = os.pipe()
    done, tell = os.pipe()
    assert store.hold_still(5)
    if os.fork() == 0:  # pragma: no cover
        os.close(write)
        os.read(read, 1)  # until the others have written
        store.leave_to_parent()
        os.write(tell, b"x")
        os._exit(0)
    store.go_on()
    store.close()
    with Child.opened(path) as other:
        assert len(other.do("put_many('x', 50)")) == 50
        other.kill()  # its log is not yet copied into the file
    os.close(write)
    assert os.read(done, 1) == b"x"
    os.wait()
    for fd in (read, done, tell):
        os.close(fd)
    with fairway.open(path) as q:
        assert q.stats().chunks_waiting == 50


def test_a_child_may_close_and_open_what_its_parent_has_open(tmp_path: Path) -> None:
    path = tmp_path / "work.db"

    def again() -> int:
        q.close()
        with fairway.open(path) as own:
            own.put(b"x")
            return own.stats().chunks_waiting

    with fairway.open(path) as q:
        q.put(b"x")
        assert in_a_child(again) == "2"
        assert q.stats().chunks_waiting == 2


def _spawned(q: fairway.Queue, name: str) -> None:  # pragma: no cover
    with q:
        for i in range(20):
            q.put(f"{name}-{i}".encode())


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_queues_are_given_to_processes_of_multiprocessing(tmp_path: Path, method: str) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        context = multiprocessing.get_context(method)
        processes = [context.Process(target=_spawned, args=(q, f"p{i}")) for i in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        assert len({lease.payload for lease in q.reserve(max=100)}) == 40


def test_a_pickled_queue_keeps_its_name_and_whether_it_may_host(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with fairway.open(path, queue="mine") as q, fairway.open(path, queue="mine", host=False) as guest:
        with pickle.loads(pickle.dumps(q)) as copy:
            copy.put(b"x")
            assert (copy.name, q.stats().chunks_waiting) == ("mine", 1)
        never_hosts = pickle.dumps(guest)
    with pytest.raises(fairway.NoHost):
        pickle.loads(never_hosts)


def test_what_cannot_be_pickled_says_so() -> None:
    with fairway.open(":memory:") as q, pytest.raises(fairway.BadArgument, match="memory"):
        pickle.dumps(q)

    async def awaiting() -> None:
        async with fairway.aio.open(":memory:") as q:
            with pytest.raises(fairway.BadArgument, match="event loop"):
                pickle.dumps(q)

    import asyncio

    asyncio.run(awaiting())
