"""Closing: what was executed is stored, those who wait are told, nothing is left running."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import pytest

import fairway
from fairway.engine.lookups import Found, Lookups
from fairway.store.memory.shelf import Fault, Shelf
from fairway.store.port import Store
from tests.runtime.running import running


def test_close_ends_waits_with_closed(url: str) -> None:
    q = fairway.open(url)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            q.reserve(wait_seconds=600)
        except fairway.FairwayError as error:
            errors.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    while q.stats().waiters < 3:
        time.sleep(0.01)
    q.close()
    for thread in threads:
        thread.join(30)
    assert [type(error) for error in errors] == [fairway.Closed] * 3
    for call in (q.stats, lambda: q.put(b"x"), lambda: next(q.events())):
        with pytest.raises(fairway.Closed):
            call()
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]


def test_calls_under_way_are_stored_or_told(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    q = fairway.open(path)
    stored: list[int] = []
    closed: list[int] = []

    def work() -> None:
        while True:
            try:
                stored.append(q.put(b"x").id)
            except fairway.Closed:
                closed.append(1)
                return

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    q.close()
    for thread in threads:
        thread.join(30)
    assert len(closed) == 6
    with fairway.open(path) as again:
        assert [sub.id for sub in again.submissions()] == sorted(stored)


@pytest.mark.parametrize("failed", [False, True], ids=["an engine is there", "the engine was thrown away"])
def test_a_call_that_looks_something_up_while_the_queue_closes_is_told(
    monkeypatch: pytest.MonkeyPatch, failed: bool
) -> None:
    looks, go_on, told = threading.Event(), threading.Event(), list[BaseException]()
    real = Lookups.read

    def read(wanted: Lookups, store: Store) -> Found:
        found = real(wanted, store)
        looks.set()
        assert go_on.wait(30)
        return found

    def put(q: fairway.Queue) -> None:
        try:
            q.put(b"x", key="looked up in the store")
        except fairway.FairwayError as error:
            told.append(error)

    with running(Shelf()) as (q, run):
        q.put(b"x")
        monkeypatch.setattr(Lookups, "read", read)
        thread = threading.Thread(target=put, args=(q,), daemon=True)
        thread.start()
        assert looks.wait(30)
        if failed:
            with run.host.lock:
                run.host.abandon_engine(None)
        q.close()
        go_on.set()
        thread.join(30)
        assert [type(error) for error in told] == [fairway.Closed]


def test_a_closed_client_says_goodbye() -> None:
    shelf = Shelf()
    with running(shelf) as (q, _):
        q.put(b"x")
    with running(shelf) as (q, run):
        assert run.host.engine.state.clients == {}  # type: ignore[union-attr]
        q.put(b"x")
        assert len(run.host.engine.state.clients) == 1  # type: ignore[union-attr]


def test_an_iterator_that_is_left_does_no_harm(q: fairway.Queue) -> None:
    q.put_many([b"x"] * 10)
    events = q.events()
    next(events)
    del events
    gc.collect()
    assert len(q.reserve(10)) == 10


def test_close_while_the_store_fails() -> None:
    shelf = Shelf()
    q_failed = []
    with running(shelf) as (q, _):
        q.put(b"x")
        shelf.faults = lambda group: Fault.FAIL
        with pytest.raises(fairway.StoreFailed) as caught:
            q.put(b"y")
        q_failed.append(caught.value)
    shelf.faults = lambda group: Fault.OK
    with running(shelf) as (q, _):
        assert q.stats().chunks_waiting == 1


def test_an_exception_in_the_with_block_closes_the_queue(url: str) -> None:
    with pytest.raises(ZeroDivisionError), fairway.open(url) as q:
        q.put(b"x")
        raise ZeroDivisionError
    with pytest.raises(fairway.Closed):
        q.stats()


def test_a_big_queue_is_frozen_for_the_collector_while_it_is_open(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "w.db") as q:
        q.submit_many([{"chunks": 1}] * 10_000)
        assert gc.get_freeze_count() == 0
    with fairway.open(tmp_path / "w.db") as q:
        assert gc.get_freeze_count() > 10_000
        assert q.stats().submissions_active == 10_000
    assert gc.get_freeze_count() == 0
    assert gc.isenabled()
