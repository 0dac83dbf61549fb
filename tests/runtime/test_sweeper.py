"""What is over leaves: submissions, keys, events, and the objects of those who asked for it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fairway
from fairway.errors import OurError, StoreCorrupt, StoreFailed
from fairway.runtime import objects
from fairway.runtime.removing import remove_objects
from fairway.runtime.sweeper import Sweeper
from tests.runtime.running import running


def there(prefix: str) -> list[str]:
    return sorted(name for names in objects.under(prefix) for name in names)


def test_ended_submissions_leave_after_their_retention(tmp_path: Path) -> None:
    prefix = f"file://{tmp_path}/data"
    with running() as (q, run):
        asked = q.submit([b"a", b"b"], objects=prefix, delete_objects=True)
        kept = q.submit([b"a"], objects=f"{prefix}-kept")
        for lease in q.reserve(5):
            q.complete(lease, result=b"r")
        active = q.submit(chunks=1)
        objects.ObstoreObjects().write({f"{prefix}/2": b"beyond", f"{prefix}/notes": b"another's"})
        run._sweeper.sweep()
        assert {sub.id for sub in q.submissions()} == {asked.id, kept.id, active.id}
        assert list(q.events())
        q.configure(retention_seconds=0, event_seconds=0)
        time.sleep(0.01)
        run._sweeper.sweep()
        assert {sub.id for sub in q.submissions()} == {active.id}
        assert there(prefix) == ["2", "notes"]
        assert len(there(f"{prefix}-kept")) == 2
        assert [event.what for event in q.events()] == []


def test_objects_of_a_reservation_that_may_be_asked_for_again_stay(tmp_path: Path) -> None:
    """A named consumer is handed the same chunks again, payloads included, though their submission ended."""
    prefix = f"file://{tmp_path}/data"
    with running() as (q, run):
        sub = q.submit([b"a", b"b"], objects=prefix, delete_objects=True)
        q.complete(q.reserve(2, consumer="nightly", seq=1))
        q.configure(retention_seconds=0)
        time.sleep(0.01)
        run._sweeper.sweep()
        assert [lease.payload for lease in q.reserve(2, consumer="nightly", seq=1)] == [b"a", b"b"]
        q.trim("nightly", 1)
        run._sweeper.sweep()
        assert list(q.submissions()) == [] and there(prefix) == []
        with pytest.raises(fairway.NotFound):
            q.submission(sub.id)


def test_a_submission_whose_objects_are_being_removed_does_not_live_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A redrive comes between the two removals: it is refused, or it comes first and everything stays."""
    prefix = f"file://{tmp_path}/data"
    with running() as (q, run):
        first, second = (
            q.submit([b"a"], objects=f"{prefix}/{n}", delete_objects=True) for n in ("first", "second")
        )
        q.cancel(first.id)
        q.cancel(second.id)
        q.configure(retention_seconds=0)
        time.sleep(0.01)

        def slowly(prefix: str, count: int) -> None:
            remove_objects(prefix, count)
            with pytest.raises(fairway.NotFound):
                q.redrive(first.id)

        listed = run.store.ended_before

        def late(*asked: Any) -> list[tuple[float, int]]:
            found = listed(*asked)
            if second.id in [id for _, id in found]:
                q.redrive(second.id)
            return found

        monkeypatch.setattr("fairway.runtime.removing.remove_objects", slowly)
        monkeypatch.setattr(run.store, "ended_before", late)
        run._sweeper.sweep()
        assert [sub.id for sub in q.submissions()] == [second.id]
        assert there(f"{prefix}/first") == []
        assert [lease.payload for lease in q.reserve(2)] == [b"a"]


def test_many_leave_in_several_groups() -> None:
    with running() as (q, run):
        q.put_many([b"x"] * 1200)
        while leases := q.reserve(1000):
            q.complete(leases)
        q.configure(retention_seconds=0)
        time.sleep(0.01)
        run._sweeper.sweep()
        assert list(q.submissions()) == []


def over(q: fairway.Queue) -> None:
    """From now on whatever has ended may go."""
    q.configure(retention_seconds=0, event_seconds=0)
    time.sleep(0.01)


def left(q: fairway.Queue) -> list[int]:
    return [sub.id for sub in q.submissions()]


def test_what_may_not_go_yet_holds_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer may ask for more messages again than are looked at together."""
    monkeypatch.setattr("fairway.runtime.sweeper.SWEEP_ROWS_MAX", 5)
    with running() as (q, run):
        held = q.put_many([b"x"] * 13)
        q.complete(q.reserve(13, consumer="spark", seq=1))
        q.put_many([b"y"] * 40)
        q.complete(q.reserve(40))
        over(q)
        run._sweeper.sweep()
        assert left(q) == [one.id for one in held]
        q.trim("spark", 1)
        run._sweeper.sweep()
        assert left(q) == []


def unreachable(broken: set[str], tried: list[str]) -> Any:
    """`remove_objects` that fails below some prefixes, and notes what it was asked for."""

    def remove(prefix: str, count: int) -> None:
        tried.append(prefix.rpartition("/")[2])
        if tried[-1] in broken:
            raise OurError(f"the object {prefix}/0 cannot be reached: no answer")
        remove_objects(prefix, count)

    return remove


@pytest.mark.parametrize("patience", [0.0, 1e9])
def test_objects_that_cannot_be_removed_hold_no_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, patience: float
) -> None:
    """Those below the same root wait their turn if a failure takes long; nobody else waits at all."""
    tried: list[str] = []
    broken = {str(n) for n in range(7)}
    monkeypatch.setattr("fairway.runtime.sweeper.SWEEP_ROWS_MAX", 2)
    monkeypatch.setattr("fairway.runtime.removing.FAILING_SECONDS", patience)
    monkeypatch.setattr("fairway.runtime.removing.remove_objects", unreachable(broken, tried))
    with running() as (q, run):
        stuck = [q.submit(chunks=1, objects=f"memory://bucket/{n}", delete_objects=True).id for n in range(8)]
        q.submit(chunks=1, objects="memory://other/works", delete_objects=True)
        q.put_many([b"y"] * 9)
        q.complete(q.reserve(18))
        over(q)
        run._sweeper.sweep()
        assert left(q) == stuck[: 7 if patience else 8], "whatever lies elsewhere is gone"
        assert tried == ([*map(str, range(8)), "works"] if patience else ["0", "works"])
        for _ in range(7):
            run._sweeper.sweep()
        assert left(q) == stuck[:7], "the last one came to its turn"
        assert caplog.text.count("cannot remove objects from memory://bucket") == 1
        assert f"submission {stuck[0]}: the object memory://bucket/0/0 cannot be reached" in caplog.text
        broken.clear()
        caplog.set_level("INFO", "fairway")
        run._sweeper.sweep()
        run._sweeper.sweep()
        assert left(q) == []
        assert caplog.text.count("can remove objects from memory://bucket again") == 1


def test_damaged_events_hold_no_submission_and_no_key_and_are_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as (q, run):
        monkeypatch.setattr("fairway.limits.KEY_SECONDS", 0.0)
        q.submit(chunks=1, key="k", tenant="a")
        q.complete(q.reserve())
        over(q)
        with monkeypatch.context() as patch:
            patch.setattr(
                run.store, "events", lambda *_: raising(StoreCorrupt("The file is damaged (row '7')"))
            )
            run._sweeper.sweep()
            run._sweeper.sweep()
            assert left(q) == [] and run.store.key("a", "k") is None
        words = (
            "Queue default cannot remove events that are over and tries again: The file is damaged (row '7')"
        )
        assert caplog.text.count(words) == caplog.text.count("tries again") == 1
        assert list(q.events()) != []
        run._sweeper.sweep()
        assert list(q.events()) == []


def test_a_damaged_submission_holds_no_others_and_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fairway.runtime.sweeper.GIVE_UP_SECONDS", 0.0)
    with running() as (q, run):
        damaged = q.put_many([b"x"] * 9)[3].id
        q.complete(q.reserve(9))
        over(q)
        read = run.store.run
        monkeypatch.setattr(
            run.store, "run", lambda id: raising(StoreCorrupt("damaged")) if id == damaged else read(id)
        )
        run._sweeper.sweep()
        run._sweeper.sweep()
        assert [run.id for run in run.store.ended("", None, {}, 0, 99)] == [damaged]
        assert caplog.text.count("tries again: damaged") == caplog.text.count("tries again") == 1


def test_a_sweep_that_the_store_refuses_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as (q, run):
        q.put(b"x")
        q.complete(q.reserve())
        over(q)
        with monkeypatch.context() as patch:
            patch.setattr(run.store, "ended_before", lambda *_: raising(StoreFailed("no answer")))
            run._sweeper.sweep()
            run._sweeper.sweep()
        assert caplog.text.count("cannot remove submissions that are over and tries again: no answer") == 1
        assert list(q.events()) == [], "events that are over went"
        run._sweeper.sweep()
        assert left(q) == []


def raising(error: Exception) -> Any:
    raise error


def test_the_sweeper_runs_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fairway.runtime.sweeper.SWEEP_SECONDS", 0.05)
    with fairway.open(tmp_path / "w.db") as q:
        q.configure(retention_seconds=0)
        q.put(b"x")
        q.complete(q.reserve())
        deadline = time.monotonic() + 30
        while list(q.submissions()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert list(q.submissions()) == []


def test_what_is_over_leaves_though_the_log_is_copied_all_the_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Under load the log is long again before the sweeper has waited for a while."""
    monkeypatch.setattr("fairway.runtime.sweeper.SWEEP_SECONDS", 0.3)
    monkeypatch.setattr("fairway.runtime.sweeper.CHECKPOINT_BYTES", 0)
    with fairway.open(tmp_path / "w.db") as q:
        q.configure(retention_seconds=0)
        over = q.put(b"x").id
        q.complete(q.reserve())
        deadline = time.monotonic() + 30
        while over in {one.id for one in q.submissions()} and time.monotonic() < deadline:
            q.put(b"y")  # every commit asks for a copy, far more often than it is swept
            q.complete(q.reserve())
        assert over not in {one.id for one in q.submissions()}


def test_a_long_log_is_copied_beside_the_writer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fairway.runtime.sweeper.CHECKPOINT_BYTES", 100_000)
    path = tmp_path / "w.db"
    with fairway.open(path) as q:
        before = path.stat().st_size
        for _ in range(20):
            q.put_many([b"x" * 1000] * 100)  # far less than the log that the writer would copy by itself
        deadline = time.monotonic() + 30
        while path.stat().st_size < before + 200_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_size >= before + 200_000


def test_only_payloads_and_their_results_are_removed(tmp_path: Path) -> None:
    prefix = f"file://{tmp_path}/data"
    names = ["0", "1", "2", "10", "0.out.1f.2.a", "1.out.1.1.0", "2.out.1.1.0", "x", "0.txt", "00x"]
    objects.ObstoreObjects().write({f"{prefix}/{name}": b"" for name in names})
    remove_objects(prefix, 2)
    assert there(prefix) == sorted(["2", "10", "2.out.1.1.0", "x", "0.txt", "00x"])


def test_objects_that_cannot_be_removed_stop_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as (q, run):
        stuck = q.submit(chunks=1, objects="nowhere://bucket/x", delete_objects=True)
        q.submit(chunks=1)
        q.complete(q.reserve(2))
        q.configure(retention_seconds=0)
        time.sleep(0.01)
        run._sweeper.sweep()
        assert [sub.id for sub in q.submissions()] == [stuck.id]
        assert "cannot remove objects from nowhere://bucket and tries again" in caplog.text
        monkeypatch.setattr("fairway.runtime.sweeper.GIVE_UP_SECONDS", 0.0)
        run._sweeper.sweep()
        assert list(q.submissions()) == []


def test_the_log_is_copied_when_it_grew_and_not_with_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.runtime.sweeper.CHECKPOINT_BYTES", 100)
    store = SimpleNamespace(wal_bytes=0)
    sweeper = Sweeper(SimpleNamespace(name="q"), store)  # type: ignore[arg-type]
    told: list[int] = []
    for size in (50, 101, 150, 201, 202, 40, 90, 141, 142):  # it begins anew after 202
        store.wal_bytes = size
        sweeper.after_commit()
        if sweeper._poke.is_set():
            told.append(size)
            sweeper._poke.clear()
    assert told == [101, 202, 141]
