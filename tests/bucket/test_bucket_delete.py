"""A delete that somebody left in the middle, of a queue that nobody opens again, is finished by whoever works there."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import fairway
from fairway.bucket import statements as s
from fairway.errors import StoreFailed

MESSAGES = 30


class Killed(BaseException):
    """The process is gone: whatever it asks for after this is never carried out."""


def filled(path: Path, name: str) -> fairway.BucketQueue:
    queue = fairway.open(path, name, kind="bucket")
    queue.configure(bucket_rows=10)
    queue.put_many([b"x"] * MESSAGES)
    return queue


def deleted_until(queue: fairway.BucketQueue, statements: int) -> bool:
    """Delete a queue in a process that is killed after so many statements; whether it was killed before the end."""
    desk: Any = queue._verbs._desk
    desk._closed.set()  # its repairer takes no part
    desk._thread.join()
    desk._closed.clear()
    execute, left = desk._storage.execute, [statements]

    def execute_until(statement: s.Statement) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return execute(statement)

    desk._storage.execute = execute_until
    with suppress(Killed):
        queue.delete()
    desk._storage.close()
    return left[0] < 0


def left_in(path: Path) -> tuple[int, int, set[str]]:
    """Rows, buckets, and the states of every queue but the one that is open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)
    try:
        ((rows,),) = connection.execute("SELECT count(*) FROM bucket_rows").fetchall()
        ((buckets,),) = connection.execute("SELECT count(*) FROM buckets").fetchall()
        states = connection.execute("SELECT state FROM bucket_queues WHERE name != 'other'").fetchall()
        return rows, buckets, {state for (state,) in states}
    finally:
        connection.close()


def test_a_delete_killed_between_any_two_steps_is_finished_by_the_repairer_of_another_queue(
    tmp_path: Path,
) -> None:
    path, stop = tmp_path / "work.db", 3  # it looked for the queue, and again: the third one marks it
    while deleted_until(filled(path, f"gone-{stop}"), stop):
        stop += 1
    assert stop > 12, "it was killed at every step"
    assert left_in(path)[0] > MESSAGES
    end = time.monotonic() + 60.0
    with fairway.open(path, "other", kind="bucket") as other:
        while left_in(path) != (0, 0, {"deleted"}):
            assert time.monotonic() < end, left_in(path)
            time.sleep(0.1)
        assert other.put(b"m")


def test_a_delete_is_done_when_the_name_is_free_though_removing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "work.db"
    with filled(path, "gone") as queue:
        storage = queue._verbs._desk._storage
        execute = storage.execute

        def failing(statement: s.Statement) -> Any:
            if isinstance(statement, s.RemoveBucket):
                raise StoreFailed("the disk is full")
            return execute(statement)

        monkeypatch.setattr(storage, "execute", failing)
        queue.delete()
        with pytest.raises(fairway.QueueDeleted):
            queue.put(b"m")
