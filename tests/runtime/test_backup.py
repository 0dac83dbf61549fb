"""A backup is one moment of a file at work, whole or not there; what is restored from it repeats no attempt."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fairway
from fairway.runtime.backup import back_up
from fairway.runtime.looking import look


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_backup_holds_every_queue_as_it_was(tmp_path: Path) -> None:
    file, copy = tmp_path / "work.db", tmp_path / "copy.db"
    with fairway.open(file) as q, fairway.open(file, "other") as other:
        job = q.submit([b"one", b"two" * 5000], tenant="acme")
        q.complete(q.reserve(), results=[b"ONE"])
        other.put(b"hello", tenant="else")
        made = back_up(file, copy)
        q.put(b"too late")
    assert [stats.queue for stats in made.queues] == ["default", "other"]
    assert (made.path, made.bytes) == (str(copy), copy.stat().st_size)
    assert copy.stat().st_mode & 0o777 == 0o600
    with fairway.open(copy) as q, fairway.open(copy, "other") as other:
        assert [result.data for result in q.results(job.id)] == [b"ONE"]
        assert [lease.payload for lease in q.reserve(max=10)] == [b"two" * 5000]
        assert [lease.payload for lease in other.reserve(max=10)] == [b"hello"]


def test_a_backup_beside_a_writer_is_one_moment(tmp_path: Path) -> None:
    file = tmp_path / "work.db"
    acknowledged: list[int] = []
    stop = threading.Event()

    with fairway.open(file) as q:
        q.put_many([os.urandom(2000) for _ in range(3000)])

        def write() -> None:
            while not stop.is_set():
                acknowledged.append(q.put(os.urandom(500)).id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for turn in range(3):
                before = len(acknowledged)
                steps: list[tuple[int, int]] = []
                back_up(
                    file, tmp_path / f"{turn}.db", tell=lambda done, total, to=steps: to.append((done, total))
                )
                assert len(steps) > 1 and steps[-1][0] == steps[-1][1]
                with look(tmp_path / f"{turn}.db") as copy:
                    held = [s.id for s in copy.submissions()][3000:]
                assert len(held) >= before, "what was acknowledged before it began is in it"
                until = time.monotonic() + 60
                while len(acknowledged) < len(held) and time.monotonic() < until:
                    time.sleep(0.001)  # the last one was stored, and its writer does not know it yet
                assert held == acknowledged[: len(held)], "and what came first is there if something later is"
        finally:
            stop.set()
            writer.join()


def test_a_restored_backup_repeats_no_attempt_and_takes_no_result_of_the_other_life(tmp_path: Path) -> None:
    file, copy = tmp_path / "work.db", tmp_path / "copy.db"
    with fairway.open(file) as q:
        q.submit(chunks=4, tenant="acme")
    back_up(file, copy)
    with fairway.open(file) as q:
        (here,) = q.reserve()
    shutil.copy(copy, tmp_path / "restored.db")
    with fairway.open(tmp_path / "restored.db") as q:
        (there,) = q.reserve()
        assert (here.submission, here.index, here.count) == (there.submission, there.index, there.count)
        assert here.epoch >> 32 == there.epoch >> 32, "both owners have the same range id"
        assert here.epoch != there.epoch
        with pytest.raises(fairway.LeaseLost):
            q.complete(here)
        assert q.complete(there) == "done"
    with fairway.open(file) as q, pytest.raises(fairway.LeaseLost):
        q.complete(there)


def test_what_stands_there_is_replaced_only_when_asked(tmp_path: Path) -> None:
    file, copy = tmp_path / "work.db", tmp_path / "copy.db"
    with fairway.open(file) as q:
        q.put(b"one")
        back_up(file, copy)
        q.put(b"two")
        with pytest.raises(fairway.BadArgument, match="there already"):
            back_up(file, copy)
        with look(copy) as seen:
            assert seen.stats().chunks_waiting == 1
        assert back_up(file, copy, replace=True).queues[0].chunks_waiting == 2
    assert names(tmp_path) == ["copy.db", "work.db"]


def test_a_queue_in_use_itself_or_no_folder_is_no_place_for_a_backup(tmp_path: Path) -> None:
    file = tmp_path / "work.db"
    with fairway.open(file), fairway.open(tmp_path / "used.db") as used:
        used.put(b"mine")
        for to, why in [
            ("used.db", "in use"),
            ("work.db", "its own backup"),
            ("none/x.db", "does not exist"),
        ]:
            with pytest.raises(fairway.BadArgument, match=why):
                back_up(file, tmp_path / to, replace=True)
        with pytest.raises(fairway.NotFound):
            back_up(tmp_path / "none.db", tmp_path / "copy.db")
        assert used.stats().chunks_waiting == 1
    assert names(tmp_path) == ["used.db", "work.db"]


def test_a_damaged_file_gives_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "work.db"
    with fairway.open(file) as q:
        q.put_many([b"MARK" * 400 for _ in range(200)])
    raw = bytearray(file.read_bytes())
    for at in range(0, len(raw), 4096):
        if raw[at] in (0x0A, 0x0D) and b"MARKMARK" in raw[at : at + 4096]:
            raw[at + 3 : at + 5] = (
                b"\xff\xff"  # more rows than fit; a load reads no payload and does not see it
            )
    file.write_bytes(raw)
    with look(file) as seen:
        assert seen.stats().chunks_waiting == 200
    with pytest.raises(fairway.StoreCorrupt):
        back_up(file, tmp_path / "copy.db")
    assert names(tmp_path) == ["work.db"]


@pytest.mark.real
def test_a_backup_that_is_killed_leaves_nothing_under_its_name(tmp_path: Path) -> None:
    file, copy = tmp_path / "work.db", tmp_path / "copy.db"
    with fairway.open(file) as q:
        q.put_many([os.urandom(3000) for _ in range(5000)])
    script = (
        "import os, signal, sys\n"
        "from fairway.runtime.backup import back_up\n"
        "back_up(sys.argv[1], sys.argv[2], tell=lambda done, total: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(file), str(copy)], timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert not copy.exists()
    assert any(name.endswith(".part") for name in names(tmp_path)), "it had begun"
    assert back_up(file, copy).queues[0].chunks_waiting == 5000
