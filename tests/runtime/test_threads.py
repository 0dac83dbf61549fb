"""Threads: they share commits, wake each other, and lose nothing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fairway
from fairway.model.stored import Group
from fairway.store.sqlite import SqliteStore
from tests.runtime.running import running


def in_threads(n: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_sixteen_threads_with_single_calls_share_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes while a group is stored goes into the next one; on this disk that takes a while."""
    commit = SqliteStore.commit
    all_there = threading.Barrier(16, timeout=60)

    def slow(store: SqliteStore, group: Group) -> None:
        time.sleep(0.01)
        commit(store, group)

    def work(i: int) -> None:
        all_there.wait()
        for _ in range(30):
            q.put(b"x", tenant=f"t{i}")

    with fairway.open(tmp_path / "work.db") as q:
        monkeypatch.setattr(SqliteStore, "commit", slow)
        before = q.stats()
        in_threads(16, work)
        after = q.stats()
        calls, groups = after.calls - before.calls, after.groups - before.groups
        assert calls >= 480
        assert groups * 3 < 480, f"{calls} calls in {groups} groups"
        assert after.syncs - before.syncs <= groups
        assert after.chunks_waiting == 480


def test_producers_and_consumers_lose_nothing(q: fairway.Queue) -> None:
    taken: Counter[bytes | None] = Counter()
    lock = threading.Lock()

    def work(i: int) -> None:
        if i < 4:
            for j in range(25):
                q.put_many([b"%d-%d-%d" % (i, j, k) for k in range(4)], tenant=f"t{i}")
            return
        until = time.monotonic() + 120
        while taken.total() < 400 and time.monotonic() < until:
            leases = q.reserve(7, wait_seconds=0.2)
            q.complete(leases)
            with lock:
                taken.update(lease.payload for lease in leases)

    in_threads(8, work)
    assert q.reserve(7) == []
    assert len(taken) == 400
    assert set(taken.values()) == {1}


def test_a_waiting_reserve_is_woken_by_a_put(q: fairway.Queue) -> None:
    found: list[fairway.Lease] = []
    waiter = threading.Thread(target=lambda: found.extend(q.reserve(wait_seconds=60)))
    waiter.start()
    while q.stats().waiters == 0:
        time.sleep(0.01)
    q.put(b"x")
    waiter.join(30)
    assert [lease.payload for lease in found] == [b"x"]


def test_a_waiting_producer_is_woken_by_the_end(q: fairway.Queue) -> None:
    sub = q.submit(chunks=1)
    states: list[str] = []
    waiter = threading.Thread(target=lambda: states.append(q.wait(sub.id, 60).state))
    waiter.start()
    while q.stats().waiters == 0:
        time.sleep(0.01)
    q.complete(q.reserve())
    waiter.join(30)
    assert states == ["completed"]


def test_first_come_first_served(q: fairway.Queue) -> None:
    order: list[int] = []

    def wait(i: int) -> None:
        if q.reserve(wait_seconds=60):
            order.append(i)

    threads = []
    for i in range(5):
        threads.append(threading.Thread(target=wait, args=(i,)))
        threads[-1].start()
        while q.stats().waiters <= i:
            time.sleep(0.005)
    for i in range(5):
        q.put(b"x")
        threads[i].join(30)
        assert not threads[i].is_alive()
    assert order == [0, 1, 2, 3, 4]


def test_a_short_wait_behind_a_long_one_ends_in_time(q: fairway.Queue) -> None:
    long = threading.Thread(target=lambda: q.reserve(wait_seconds=600))
    long.start()
    while q.stats().waiters == 0:
        time.sleep(0.01)
    started = time.monotonic()
    assert q.reserve(wait_seconds=0.2) == []
    assert time.monotonic() - started < 60
    q.put(b"x")
    long.join(30)


def test_a_read_waits_for_what_was_executed_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, run):
        real = run.store.commit
        storing, go_on = threading.Event(), threading.Event()

        def slow(group: object) -> None:
            storing.set()
            assert go_on.wait(60)
            real(group)  # type: ignore[arg-type]

        monkeypatch.setattr(run.store, "commit", slow)
        putting = threading.Thread(target=lambda: q.put(b"x"))
        putting.start()
        assert storing.wait(60)
        later = threading.Timer(0.2, go_on.set)
        later.start()
        assert [event.what for event in q.events()] == ["submitted"]
        putting.join()
        later.join()


def test_reads_see_what_was_answered_before(q: fairway.Queue) -> None:
    def work(i: int) -> None:
        for _ in range(20):
            sub = q.submit([b"x"], tenant=f"t{i}")
            assert q.submission(sub.id).tenant == f"t{i}"
            (lease,) = q.reserve(1, wait_seconds=10)
            q.complete(lease, result=b"r")
            assert [r.data for r in q.results(lease.submission)] == [b"r"]
            assert q.submission(lease.submission).state == "completed"
            assert lease.submission in {s.id for s in q.submissions(state="completed", tenant=lease.tenant)}

    in_threads(4, work)
