"""Groups that fail: the callers get the typed error, nothing is lost or half done, and the queue goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

import fairway
from fairway.engine.engine import Engine
from fairway.face.verbs import Verbs
from fairway.model.stored import Group
from fairway.runtime.clock import Clock
from fairway.runtime.looping import LoopPort
from fairway.store.memory import MemoryStore
from fairway.store.memory.shelf import Fault, Shelf
from tests.runtime.running import acknowledges_all, running


class Plan:
    """Faults by turn: the n-th commit from now on."""

    def __init__(self, shelf: Shelf) -> None:
        self.next: list[Fault] = []
        self.seen: list[Group] = []
        shelf.faults = self

    def __call__(self, group: Group) -> Fault:
        self.seen.append(group)
        return self.next.pop(0) if self.next else Fault.OK


def test_an_id_of_a_failed_group_is_never_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Clock, "now", lambda self: 1_800_000_000.0
    )  # a clock that stands still would repeat it
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        q.put(b"kept")
        plan.next = [Fault.FAIL]
        with pytest.raises(fairway.StoreFailed):
            q.put(b"lost")
        (lost,) = [row.id for row in plan.seen[-1].rows]
        assert q.put(b"again").id > lost


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.UNKNOWN_LOST, Fault.LATE])
def test_a_group_that_was_not_stored_had_no_effect(fault: Fault) -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        kept = q.put(b"kept")
        plan.next = [fault]
        with pytest.raises(fairway.StoreFailed):
            q.put(b"lost")
        if fault is Fault.LATE:
            shelf.deliver_late()
        assert [sub.id for sub in q.submissions()] == [kept.id]
        again = q.put(b"again")
        assert again.id > kept.id
        assert [lease.payload for lease in q.reserve(10)] == [b"kept", b"again"]


def test_a_group_whose_answer_was_lost_is_settled_by_reading() -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        plan.next = [Fault.UNKNOWN_STORED]
        sub = q.put(b"x")
        assert [lease.submission for lease in q.reserve(10)] == [sub.id]


@pytest.mark.parametrize("call", ["reserve", "complete", "fail", "release", "renew", "cancel", "set_weight"])
def test_every_kind_of_call_may_be_repeated_after_a_failure(call: str) -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        sub = q.submit([b"a", b"b"], policy="dead_letter")
        lease = q.reserve(1)[0]
        calls: dict[str, Callable[[], object]] = {
            "reserve": q.reserve,
            "complete": lambda: q.complete(lease, b"r"),
            "fail": lambda: q.fail(lease, "why", delay_seconds=60),
            "release": lambda: q.release(lease),
            "renew": lambda: q.renew(lease, 600),
            "cancel": lambda: q.cancel(sub),
            "set_weight": lambda: q.set_weight("", 2),
        }
        before = q.stats()
        plan.next = [Fault.FAIL]
        with pytest.raises(fairway.StoreFailed):
            calls[call]()
        after = q.stats()
        assert (
            (after.chunks_waiting, after.chunks_leased)
            == (before.chunks_waiting, before.chunks_leased)
            == (1, 1)
        )
        calls[call]()


def test_waits_outlive_a_failed_group() -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        sub = q.submit(chunks=1)
        (held,) = q.reserve()
        found: list[object] = []
        threads = [
            threading.Thread(
                target=lambda: found.extend(lease.payload for lease in q.reserve(wait_seconds=60))
            ),
            threading.Thread(target=lambda: found.append(q.wait(sub.id, 60).state)),
        ]
        for thread in threads:
            thread.start()
        while q.stats().waiters < 2:
            time.sleep(0.01)
        plan.next = [Fault.FAIL]
        with pytest.raises(fairway.StoreFailed):
            q.put(b"x")
        q.put(b"y")
        threads[0].join(30)
        q.complete(held)
        threads[1].join(30)
        assert found == [b"y", "completed"]


def test_everyone_in_the_filling_group_hears_of_the_failure_and_nothing_is_lost() -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, _):
        stored: list[int] = []
        failed: list[int] = []

        def work(i: int) -> None:
            for j in range(30):
                try:
                    stored.append(q.put(b"%d-%d" % (i, j)).id)
                except fairway.StoreFailed:
                    failed.append(i)

        plan.next = [Fault.OK, Fault.FAIL, Fault.OK, Fault.UNKNOWN_LOST, Fault.UNKNOWN_STORED, Fault.FAIL] * 3
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed
        assert len(stored) + len(failed) == 240
        assert sorted(stored) == [sub.id for sub in q.submissions()]


def test_a_store_that_stays_broken_answers_with_its_error_and_comes_back() -> None:
    shelf = Shelf()

    class Breakable(MemoryStore):
        broken = False

        def take_over(self) -> object:  # type: ignore[override]
            if Breakable.broken:
                raise fairway.StoreFull
            return super().take_over()

    plan = Plan(shelf)
    with running(store=Breakable.open("default", shelf)) as (q, _):
        q.put(b"x")
        Breakable.broken = True
        plan.next = [Fault.FAIL]
        with pytest.raises(fairway.StoreFailed):
            q.put(b"y")
        for _ in range(3):
            with pytest.raises(fairway.StoreFull):
                q.stats()
        Breakable.broken = False
        assert q.stats().chunks_waiting == 1
        q.put(b"z")


def test_another_owner_stops_this_one() -> None:
    shelf = Shelf()
    with running(shelf) as (q, _):
        q.put(b"x")
        waiter = Waiting(lambda: q.wait(q.submit(chunks=1).id, 60))
        while q.stats().waiters == 0:
            time.sleep(0.01)
        MemoryStore.open("default", shelf).take_over()
        with pytest.raises(fairway.Fenced):
            q.put(b"y")
        with pytest.raises(fairway.Fenced):
            q.stats()
        waiter.join()
        assert isinstance(waiter.error, fairway.Fenced)


class Waiting(threading.Thread):
    """A call in a thread, with its error."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.call = call
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.call()
        except BaseException as error:
            self.error = error


def test_an_error_in_the_store_thread_reaches_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, _):
        sub = q.submit(chunks=1)
        waiter = Waiting(lambda: q.wait(sub.id, 60))
        while q.stats().waiters == 0:
            time.sleep(0.01)
        monkeypatch.setattr(Engine, "close_group", lambda self, now: 1 / 0)
        for call in (lambda: q.put(b"x"), lambda: q.put(b"y"), q.stats):
            with pytest.raises(fairway.OurError, match="ZeroDivisionError"):
                call()
        waiter.join(30)
        assert isinstance(waiter.error, fairway.OurError)


def test_an_engine_that_fails_in_a_call_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, run):
        q.put(b"x")
        sub = q.submit(chunks=1, tenant="b")
        waiter = Waiting(lambda: q.wait(sub.id, 60))
        while q.stats().waiters == 0:
            time.sleep(0.01)
        life = run.host.life
        real = Engine.execute

        def broken(self: Engine, call: object, *args: object) -> object:
            if type(getattr(call, "command", None)).__name__ == "SetWeight":
                self.state.tenants.clear()  # half done
                raise ZeroDivisionError
            return real(self, call, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(Engine, "execute", broken)
        with pytest.raises(fairway.OurError, match="ZeroDivisionError"):
            q.set_weight("a", 2)
        assert {view.name for view in q.tenants()} == {"", "b"}
        assert run.host.life == life + 1
        q.complete(q.reserve(2))
        waiter.join(30)
        assert waiter.error is None


def test_a_call_that_the_engine_failed_in_holds_no_number_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else no outcome after it were ever acknowledged, and after some thousand calls all were refused."""
    with running() as (q, run):
        q.put(b"x")
        real = Engine.execute

        def broken(self: Engine, *args: object) -> object:
            real(self, *args)  # type: ignore[arg-type]
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "execute", broken)
            with pytest.raises(fairway.OurError, match="ZeroDivisionError"):
                q.put(b"no")
        q.put(b"y")
        assert acknowledges_all(run.host.numbers)
        assert [lease.payload for lease in q.reserve(9)] == [b"x", b"y"]


def test_a_client_that_was_forgotten_registers_again() -> None:
    with running() as (q, run):
        q.put(b"x")
        run.host.engine.state.clients.clear()  # type: ignore[union-attr]
        q.put(b"y")
        assert len(q.reserve(5)) == 2
        assert len(run.host.engine.state.clients) == 1  # type: ignore[union-attr]


def test_outcomes_are_acknowledged_as_calls_go_on() -> None:
    with running() as (q, run):
        for _ in range(50):
            q.put(b"x")
        (client,) = run.host.engine.state.clients.values()  # type: ignore[union-attr]
        assert len(client.outcomes) <= 2
        assert client.received >= 48


def test_failures_reach_event_loops_too() -> None:
    shelf = Shelf()
    plan = Plan(shelf)

    async def work(run: object) -> None:
        port = LoopPort(run.host, lambda: None)  # type: ignore[attr-defined]
        q = fairway.AsyncQueue("default", Verbs(None, lambda: 1, None), port)  # type: ignore[arg-type]
        waiting = asyncio.create_task(q.reserve(wait_seconds=60))
        while not (await q.stats()).waiters:
            await asyncio.sleep(0.01)
        plan.next = [Fault.FAIL]
        with pytest.raises(fairway.StoreFailed):
            await q.put(b"x")
        await q.put(b"y")
        assert [lease.payload for lease in await waiting] == [b"y"]
        await q.close()

    with running(shelf) as (_, run):
        asyncio.run(asyncio.wait_for(work(run), 60))


def test_a_group_that_cannot_be_settled_stops_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    plan = Plan(shelf)
    monkeypatch.setattr("fairway.runtime.committer._SETTLE_SECONDS", (0.0, 0.01))
    with running(shelf) as (q, run):
        kept = q.put(b"x")

        def broken(group: Group) -> bool:
            raise fairway.StoreFailed

        monkeypatch.setattr(run.store, "settle", broken)
        plan.next = [Fault.UNKNOWN_STORED]
        for _ in range(2):
            with pytest.raises(fairway.GroupUnknown):
                q.put(b"y")
    with running(shelf) as (q, _):
        assert next(q.submissions()).id == kept.id


def test_a_lookup_that_fails_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as (q, run):
        first = q.put(b"x", key="k")

        def broken(*args: object) -> None:
            raise fairway.StoreFailed

        with monkeypatch.context() as patch:
            patch.setattr(run.store, "key", broken)
            patch.setattr(run.store, "run", broken)
            for _ in range(3):
                with pytest.raises(fairway.StoreFailed):
                    q.put(b"y", key="other")
                with pytest.raises(fairway.StoreFailed):
                    q.submission(5)
        assert q.put(b"x", key="k").id == first.id
        q.put(b"z")
        q.put(b"z")
        engine = run.host.engine
        assert engine is not None
        assert not engine.state.aside.tickets.items()
        (client,) = engine.state.clients.values()
        assert len(client.outcomes) <= 2


def test_a_rebuild_between_a_lookup_and_its_call_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read for an engine that is gone may not be given to the next one."""
    shelf = Shelf()
    plan = Plan(shelf)
    with running(shelf) as (q, run):
        first = q.put(b"x", key="k")
        real = run.store.key
        looked = []

        def slow(tenant: str, key: str) -> object:
            found = real(tenant, key)
            looked.append(key)
            if len(looked) == 1:
                plan.next = [Fault.FAIL]
                with pytest.raises(fairway.StoreFailed):
                    q.put(b"in between")
                q.stats()
            return found

        monkeypatch.setattr(run.store, "key", slow)
        assert q.put(b"x", key="k").id == first.id
        assert looked == ["k", "k"]
        assert len(run.host.engine.state.clients) == 1  # type: ignore[union-attr]
