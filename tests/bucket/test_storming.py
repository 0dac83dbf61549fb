"""What a storm looks for at its end is seen where it lies: messages in no index, rows that nobody put."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import fairway
from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST
from tests.bucket.storming import at_rest, end_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "work.db")


def test_a_message_that_waits_is_told_by_its_payload(path: str) -> None:
    with fairway.open(path, "q", kind="bucket") as queue:
        assert at_rest(queue)
        queue.put_many([b"one", b"two"])
        assert not at_rest(queue)
        end = end_of(queue)
        assert sorted(end["waiting"]) == ["one", "two"]
        assert [end[what] for what in ("unnamed", "ghosts", "above_floor", "below_floor")] == [0, 0, 1, 0]


def test_a_bucket_that_no_index_names_is_seen(path: str) -> None:
    with fairway.open(path, "q", kind="bucket") as queue:
        queue.put(b"one")
        desk = queue._verbs._desk
        (entry,) = desk.run(s.read(s.ReadIndex(desk.queue.generation, LOWEST, b"\xff" * 16, 9)))
        desk._storage.execute(s.DropIndex(desk.queue.generation, entry.bucket))
        assert (end_of(queue)["unnamed"], end_of(queue)["ghosts"]) == (1, 0)


@pytest.mark.parametrize(
    "broken",
    [
        "DELETE FROM bucket_bodies",  # it waits, and has nothing to deliver
        "DELETE FROM buckets",  # rows without a bucket
        "UPDATE buckets SET state = 'odd'",
    ],
)
def test_what_nobody_made_is_seen(path: str, broken: str) -> None:
    with fairway.open(path, "q", kind="bucket") as queue:
        queue.put(b"one")
        connection = apsw.Connection(path)
        connection.execute(broken)
        connection.close()
        assert end_of(queue)["ghosts"]
