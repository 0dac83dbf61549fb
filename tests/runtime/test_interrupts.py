"""KeyboardInterrupt at any moment: nothing half done, no lease that nobody has, and the queue goes on."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fairway
from fairway.engine.commands import Submit
from fairway.engine.engine import Engine
from fairway.face import leasing
from fairway.face.offers import offer
from fairway.runtime.pending import Pending
from tests.runtime.running import acknowledges_all, running

# An interrupt may fall into a callback of the collector, where nobody can raise it.
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@pytest.fixture(autouse=True)
def interrupts_raise() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def interrupt_when(ready: Callable[[], bool]) -> threading.Thread:
    def work() -> None:
        while not ready():
            time.sleep(0.005)
        interrupt()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_wait_that_is_interrupted_vanishes(url: str) -> None:
    with fairway.open(url) as q:
        thread = interrupt_when(lambda: q.stats().waiters == 1)
        with pytest.raises(KeyboardInterrupt):
            q.reserve(wait_seconds=600)
        thread.join()
        assert q.stats().waiters == 0
        q.put(b"x")
        assert q.stats().chunks_leased == 0


def test_a_reserve_that_is_interrupted_before_it_leaves_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running() as (q, run):
        q.put(b"x")
        stored = run.store.commit
        go_on = threading.Event()

        def slow(group: object) -> None:
            assert go_on.wait(60)
            stored(group)  # type: ignore[arg-type]

        monkeypatch.setattr(run.store, "commit", slow)
        thread = interrupt_when(lambda: run.host.storing)
        with pytest.raises(KeyboardInterrupt):
            q.reserve()
        thread.join()
        go_on.set()
        (lease,) = q.reserve(wait_seconds=30)
        assert (lease.payload, lease.attempt) == (b"x", 1)


def test_a_reserve_that_is_interrupted_after_it_left_is_given_back(
    q: fairway.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    q.put(b"x")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(leasing, "_opened", interrupted)
        with pytest.raises(KeyboardInterrupt):
            q.reserve()
    (lease,) = q.reserve(wait_seconds=30)
    assert lease.attempt == 1


def test_an_engine_that_is_interrupted_is_rebuilt(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may come between any two steps of the engine, which then knows half of a call."""
    with fairway.open(url) as q:
        q.put_many([b"x"] * 10, tenant="a")
        (held,) = q.reserve()
        found: list[str] = []
        waiter = threading.Thread(target=lambda: found.append(q.wait(held.submission, 60).state))
        waiter.start()
        while q.stats().waiters == 0:
            time.sleep(0.01)
        real = Engine.execute

        def interrupted(self: Engine, *args: object) -> object:
            real(self, *args)  # type: ignore[arg-type]
            self.state.leased = 12345
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "execute", interrupted)
            with pytest.raises(KeyboardInterrupt):
                q.reserve(5)
        stats = q.stats()
        assert (stats.chunks_leased, stats.chunks_waiting) == (1, 9)
        assert q.complete(held) == "done"
        waiter.join(30)
        assert found == ["completed"]


def test_calls_of_others_are_executed_again_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, run):
        q.put(b"first")
        stored = run.store.commit
        go_on = threading.Event()

        def commit(group: object) -> None:
            assert go_on.wait(60)
            stored(group)  # type: ignore[arg-type]

        monkeypatch.setattr(run.store, "commit", commit)
        made: list[int] = []
        one = threading.Thread(target=lambda: made.append(q.put(b"one").id))
        one.start()
        while not run.host.storing:
            time.sleep(0.001)
        two = threading.Thread(target=lambda: made.append(q.put(b"two").id))  # in the filling group
        two.start()
        while len(run.host.open) < 2:
            time.sleep(0.001)
        real = Engine.execute

        def interrupted(self: Engine, *args: object) -> object:
            real(self, *args)  # type: ignore[arg-type]
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "execute", interrupted)
            with pytest.raises(KeyboardInterrupt):
                q.put(b"three")
        go_on.set()
        one.join(30)
        two.join(30)
        assert len(made) == 2
        assert {lease.payload for lease in q.reserve(10)} == {b"first", b"one", b"two"}


def test_a_storm_of_interrupts(tmp_path: Path) -> None:
    """Interrupts at random moments of real work; every acknowledged message is there, and none twice."""
    path = tmp_path / "w.db"
    stored: set[bytes] = set()
    tried: set[bytes] = set()
    ending = threading.Event()
    here = inspect.currentframe()
    calm: list[bool] = []

    def strike(number: int, frame: FrameType | None) -> None:
        if (
            frame is not here and not calm
        ):  # in what is called from here; who counts the interrupts is left alone
            raise KeyboardInterrupt

    def storm() -> None:
        while not ending.wait(0.013):
            interrupt()

    signal.signal(signal.SIGINT, strike)
    with fairway.open(path) as q:
        thread = threading.Thread(target=storm)
        thread.start()
        interrupts = 0
        i = 0
        while interrupts < 60:
            try:
                while True:
                    i += 1
                    payloads = [b"%d-%d" % (i, k) for k in range(5)]
                    tried.update(payloads)
                    q.put_many(payloads)
                    stored.update(payloads)
            except KeyboardInterrupt:
                interrupts += 1
        calm.append(True)
        ending.set()
        thread.join()
        taken: list[bytes] = []
        while leases := q.reserve(100, wait_seconds=0.5):
            q.complete(leases)
            taken += [lease.payload or b"" for lease in leases]
    assert len(taken) == len(set(taken))
    assert stored <= set(taken) <= tried


class Strike:
    """Interrupts at the nth moment at which a signal may: a function of Fairway's is entered, or one in C returns."""

    def __init__(self, moment: int) -> None:
        self.left = moment
        self.struck = False

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if event in ("call", "c_return") and ("fairway/runtime" in file or file.endswith("engine/engine.py")):
            if not self.left and not self.struck:
                self.struck = True
                raise KeyboardInterrupt
            self.left -= 1


@pytest.mark.parametrize("verb", ["put", "submit_with_a_key", "complete", "reserve"])
def test_an_interrupt_at_any_moment_of_a_call_holds_no_number_and_no_lookup_back(verb: str) -> None:
    """One number that is never acknowledged would keep every outcome after it, until all calls are refused."""
    with running() as (q, run):
        moment, struck = 0, True
        while struck:
            q.put(b"x")
            leases = q.reserve(1)
            calls: dict[str, Callable[[], Any]] = {
                "put": lambda: q.put(b"y"),
                "submit_with_a_key": lambda n=moment: q.submit([b"z"], key=f"k{n}"),
                "complete": lambda held=leases: q.complete(held),
                "reserve": lambda: q.reserve(1),
            }
            strike = Strike(moment)
            sys.setprofile(strike)
            try:
                calls[verb]()
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            q.set_weight("a", 2)
            q.set_weight("a", 1)
            assert acknowledges_all(run.host.numbers), f"interrupted at moment {moment}"
            assert run.host.engine is not None
            assert not run.host.engine.state.aside.tickets.open, f"interrupted at moment {moment}"
            moment, struck = moment + 1, strike.struck
    assert moment > 50


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_caller_that_is_interrupted_while_it_stores_its_group(
    url: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that executes a call may store it too; a signal there leaves its group to the store thread."""
    with fairway.open(url) as q:
        q.put(b"first")
        store = q._port._member.way.store  # type: ignore[attr-defined]
        real = store.commit

        def interrupted(group: object) -> None:
            if moment == "after":
                real(group)
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            q.put(b"second")
        q.put(b"third")
        found = [lease.payload for lease in q.reserve(10)]
        # An interrupted call may have been carried out or not; it is never carried out twice.
        assert found == ([b"first", b"second", b"third"] if moment == "after" else [b"first", b"third"])


def test_a_caller_that_is_interrupted_while_answers_leave(
    q: fairway.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    sub = q.submit(chunks=1)
    (held,) = q.reserve()
    waiter = threading.Thread(target=lambda: states.append(q.wait(sub.id, 60).state))
    waiter.start()
    while q.stats().waiters == 0:
        time.sleep(0.005)

    def interrupted(self: Engine, closed: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "stored", interrupted)
    with pytest.raises(KeyboardInterrupt):
        q.complete(held)
    waiter.join(30)
    assert states == ["completed"]
    assert q.complete(held) == "already"


def test_others_in_an_interrupted_group_are_stored_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, run):
        sub = q.submit(chunks=1)
        (held,) = q.reserve()
        found: list[str] = []
        waiter = threading.Thread(target=lambda: found.append(q.wait(sub.id, 60).state))
        waiter.start()
        while q.stats().waiters == 0:
            time.sleep(0.005)

        def interrupted(group: object) -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(run.store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            q.complete(held)
        assert waiter.is_alive()
        assert q.complete(held) == "done"
        waiter.join(30)
        assert found == ["completed"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_call_beside_an_interrupted_one_is_carried_out_once(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls in one group; the thread that stores it is interrupted before it is stored, or after."""
    with running() as (q, run):
        q.put(b"first")
        real = run.store.commit
        left: list[Pending] = []
        beside = Pending(Submit([offer([b"beside"])]), left.append)
        while not run.host.sleeping_until:  # else the store thread, still awake, would store it
            time.sleep(0.001)
        with monkeypatch.context() as patch:
            patch.setattr(run.host, "ring", lambda: None)  # the store thread sleeps on
            run.host.send(beside)

        def interrupted(group: object) -> None:
            if moment == "after":
                real(group)  # type: ignore[arg-type]
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(run.store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            q.put(b"interrupted")
        q.put(b"last")
        assert [pending.error for pending in left] == [None]
        found = [lease.payload for lease in q.reserve(10)]
        assert found.count(b"beside") == 1
        assert found.count(b"interrupted") == (moment == "after")
        assert len(found) == len(set(found))
