"""What a storm looks for at its end is seen where it lies: messages in no index, rows that nobody put."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import fairway
from fairway.bucket import statements as s
from fairway.bucket import taking
from fairway.bucket.places import LOWEST
from fairway.bucket.statements import APPLIED, UNKNOWN
from fairway.testing.bucket.checker import check_history
from tests.bucket.keeping import ghosts, kept
from tests.bucket.planted import take_blindly
from tests.bucket.storming import Storm, at_rest, end_of
from tests.bucket.worker_script import Recorded


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
        # The queue itself would say that its file is damaged.
        desk = queue._verbs._desk
        assert ghosts(kept(desk._storage, desk.queue.generation))


@pytest.mark.parametrize("blindly", [False, True], ids=["right", "broken"])
def test_a_lease_that_nobody_is_told_of_is_seen(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blindly: bool
) -> None:
    """A take of unknown outcome that was carried out; one that is repeated without a look is refused then."""
    if blindly:
        monkeypatch.setattr(taking, "take", take_blindly)
    with fairway.open(path, "q", kind="bucket") as queue:
        storage = queue._verbs._desk._storage
        execute, lose = storage.execute, [1]

        def lossy(statement: s.Statement) -> object:
            outcome = execute(statement)
            if isinstance(statement, s.Take) and outcome is APPLIED and lose:
                lose.pop()
                return UNKNOWN
            return outcome

        monkeypatch.setattr(storage, "execute", lossy)
        recorded = Recorded(queue, str(tmp_path / "history-1.jsonl"), "consume-1")
        recorded.put([b"one"], 0.0)
        leases = recorded.take(1, 0.0, 600.0)
        assert len(leases) == (not blindly)
        recorded.close()
        history = Storm(path, tmp_path, 1, "q")._history(end_of(queue), 20)
    burnt = [one for one in check_history(history) if one.check == "no_lease_is_burnt"]
    assert len(burnt) == blindly
