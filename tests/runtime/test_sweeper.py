"""What is over leaves: submissions, keys, events, and the objects of those who asked for it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import fairway
from fairway.runtime import objects
from fairway.runtime.sweeper import Sweeper, remove_objects
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
        remove = Sweeper._remove_objects

        def slowly(sweeper: Sweeper, id: int, ended_before: float) -> bool:
            removed = remove(sweeper, id, ended_before)
            with pytest.raises(fairway.NotFound):
                q.redrive(id)
            return removed

        listed = run.store.ended_before

        def late(at: float, limit: int) -> list[int]:
            ids = listed(at, limit)
            if second.id in ids:
                q.redrive(second.id)
            return ids

        monkeypatch.setattr(Sweeper, "_remove_objects", slowly)
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
        assert f"the objects of submission {stuck.id} cannot be removed now" in caplog.text
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
