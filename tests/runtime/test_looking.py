"""A look at a file that nobody hosts: every verb that looks works, nothing is taken over, nothing is changed."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import fairway
from fairway.engine.state import Start
from fairway.runtime import looking
from fairway.runtime.looking import look
from fairway.store.sqlite.looking import queue_names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with fairway.open(tmp_path / "work.db") as q:
        q.configure(attempts_max=1)
        q.set_weight("whale", 5)
        done = q.submit([b"one", b"two"], tenant="small")
        q.complete(q.reserve(max=2), results=[b"ONE", b"TWO"])
        assert q.submission(done.id).state == "completed"
        q.submit(chunks=9, tenant="whale")
        q.put(b"bad", tenant="small")
        for lease in q.reserve(max=9):
            if lease.payload == b"bad":
                q.fail(lease, "broken")
        q.reserve(consumer="nightly", seq=1)
    return tmp_path / "work.db"


def fence(file: Path) -> list[tuple]:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute("SELECT name, range_id, number, meta FROM queues"))
    finally:
        connection.close()


def shown(q: fairway.Queue) -> dict[str, object]:
    stats = q.stats()
    return {
        "counts": (stats.submissions_active, stats.chunks_waiting, stats.chunks_leased, stats.paused),
        "tenants": [(t.name, t.weight, t.waiting, t.leased, t.oldest) for t in q.tenants()],
        "submissions": list(q.submissions()),
        "results": [list(q.results(s.id)) for s in q.submissions()],
        "dead": list(q.dead()),
        "consumers": [(c.name, c.seqs) for c in q.consumers()],
        "config": q.configure(),
        "events": [event.what for event in q.events()],
    }


def test_a_look_shows_what_a_host_shows_and_changes_nothing(file: Path) -> None:
    before = fence(file)
    with look(file) as q:
        seen = shown(q)
        assert "whale" in q.explain("Fair")
    assert fence(file) == before, "it took nothing over and stored nothing"
    with fairway.open(file) as q:
        assert shown(q) == seen
    assert seen["dead"] and seen["consumers"] == [("nightly", [1])]


def test_a_look_at_more_than_memory_holds_asks_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fairway.open(tmp_path / "work.db") as q:
        q.submit_many([{"chunks": 1, "metadata": {"mode": "slow"}} for _ in range(9)])
        q.submit(chunks=1, tenant="fast", metadata={"mode": "fast"})
    monkeypatch.setattr(looking, "Start", lambda *given: Start(*given, window_rows=2))
    with look(tmp_path / "work.db") as q:
        assert "1. tenant 'fast'" in q.explain('SelectOnly("mode", "fast", Fair)')
        assert "nothing can be handed out" in q.explain('SelectOnly("mode", "none", Fair)')


def test_a_look_is_one_moment_whatever_a_host_does_meanwhile(file: Path) -> None:
    with look(file) as q:
        seen = shown(q)
        with fairway.open(file) as host:
            host.put(b"later", tenant="late")
            host.cancel(next(host.submissions(state="active", tenant="whale")).id)
        assert shown(q) == seen
    with look(file) as q:
        assert shown(q) != seen


@pytest.mark.parametrize(
    "change",
    [
        lambda q: q.put(b"x"),
        lambda q: q.submit(chunks=1),
        lambda q: q.reserve(),
        lambda q: q.pause(),
        lambda q: q.set_weight("whale", 1),
        lambda q: q.configure(attempts_max=3),
        lambda q: q.cancel(1),
        lambda q: q.redrive(1),
        lambda q: q.wait(next(q.submissions(state="active")).id, 1),
    ],
)
def test_what_would_change_the_queue_or_wait_for_it_is_refused(file: Path, change) -> None:
    before = fence(file)
    with look(file) as q, pytest.raises(fairway.NoHost):
        change(q)
    assert fence(file) == before


def test_a_look_that_is_closed_says_so(file: Path) -> None:
    q = look(file)
    q.close()
    q.close()
    with pytest.raises(fairway.Closed):
        q.stats()


def test_a_file_tells_its_queues_and_a_queue_that_is_not_there_is_not_made(file: Path) -> None:
    with fairway.open(file, "other"):
        assert queue_names(file) == ["default", "other"]
    with pytest.raises(fairway.NotFound):
        look(file, "third")
    assert queue_names(file) == ["default", "other"]


def test_what_is_no_queue_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(fairway.NotFound):
        look(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("not a queue, but as long as a header of SQLite, or even longer: " * 3)
    with pytest.raises(fairway.NotFairway):
        look(tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(fairway.NoHost, match="empty"):
        look(tmp_path / "empty.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.db", "text.db"]
