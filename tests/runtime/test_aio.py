"""The queue in an event loop: no thread per wait, and a cancelled call leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.engine.commands import Reserve
from fairway.engine.lookups import Found, Lookups
from fairway.runtime.host import Host
from tests.runtime.running import acknowledges_all


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 120))


async def until(condition: Any) -> None:
    """Wait for a condition that needs a look at the queue."""
    for _ in range(2000):
        if await condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def test_the_verbs_with_await(url: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(url) as q:
            sub = await q.submit([b"one", b"two"], tenant="acme", key="k")
            assert (await q.submit([b"one", b"two"], tenant="acme", key="k")).id == sub.id
            leases = await q.reserve(max=10)
            assert [lease.payload for lease in leases] == [b"one", b"two"]
            assert await q.complete(leases[0], result=b"1") == "done"
            assert await q.complete(leases[1:], results=[b"2"]) == ["done"]
            assert (await q.wait(sub.id, 10)).state == "completed"
            assert [r.data async for r in q.results(sub.id)] == [b"1", b"2"]
            assert [s.id async for s in q.submissions()] == [sub.id]
            assert "submitted" in [e.what async for e in q.events()]
            assert (await q.stats()).submissions_active == 0
            with pytest.raises(fairway.NotFound):
                await q.submission(5)
        with pytest.raises(fairway.Closed):
            await q.put(b"x")

    run(work())


def test_awaiting_the_opening(tmp_path: Path) -> None:
    async def work() -> None:
        q = await fairway.aio.open(tmp_path / "w.db")
        await q.put(b"x")
        await q.close()
        await q.close()
        with pytest.raises(fairway.NotFound):
            await fairway.aio.open(tmp_path / "none.db", create=False)

    run(work())


def test_threads_and_loops_share_a_host(tmp_path: Path) -> None:
    async def work() -> None:
        with fairway.open(tmp_path / "w.db") as blocking:
            async with fairway.aio.open(tmp_path / "w.db") as q:
                waiting = asyncio.create_task(q.reserve(wait_seconds=60))
                await until(lambda: waits(q, 1))
                await asyncio.to_thread(blocking.put, b"x")
                assert [lease.payload for lease in await waiting] == [b"x"]

    run(work())


async def waits(q: fairway.AsyncQueue, n: int) -> bool:
    return (await q.stats()).waiters == n


def test_ten_thousand_waiting_reserves_are_cheap(url: str) -> None:
    many = 10_000

    async def work() -> None:
        async with fairway.aio.open(url) as q:
            await q.stats()
            threads = threading.active_count()
            tasks = [asyncio.create_task(q.reserve(wait_seconds=600)) for _ in range(many)]
            await until(lambda: waits(q, many))
            assert threading.active_count() == threads
            await q.put_many([b"%d" % i for i in range(many)])
            found = await asyncio.gather(*tasks)
            assert sorted(int(leases[0].payload) for leases in found) == list(range(many))
            assert await waits(q, 0)

    run(work())


def test_a_cancelled_wait_vanishes(url: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(url) as q:
            tasks = [asyncio.create_task(q.reserve(wait_seconds=600)) for _ in range(3)]
            await until(lambda: waits(q, 3))
            tasks[0].cancel()
            tasks[1].cancel()
            await asyncio.gather(*tasks[:2], return_exceptions=True)
            assert (await q.stats()).waiters == 1
            await q.put(b"x")
            assert [lease.payload for lease in await tasks[2]] == [b"x"]
            assert (await q.stats()).chunks_leased == 1

    run(work())


def test_calls_that_are_cancelled_before_their_lookup_ends_leave_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are being looked up, the others wait for a thread that will not come for them any more."""
    real, go_on = Lookups.read, threading.Event()

    def slow(self: Lookups, source: Any) -> Found:
        assert go_on.wait(60)
        return real(self, source)

    async def work() -> None:
        async with fairway.aio.open(url) as q:
            await q.put(b"before")
            host = q._port._member.way  # type: ignore[attr-defined]
            assert isinstance(host, Host)
            monkeypatch.setattr(Lookups, "read", slow)
            calls = [asyncio.create_task(q.put(b"never", key=str(n))) for n in range(20)]
            calls += [asyncio.create_task(q.wait(1 << 40 | n, 60)) for n in range(20)]
            await asyncio.sleep(0.1)
            for call in calls:
                call.cancel()
            assert all(
                isinstance(error, asyncio.CancelledError)
                for error in await asyncio.gather(*calls, return_exceptions=True)
            )
            go_on.set()
            await q.put(b"after", key="last")
            await q.set_weight("a", 2)
            assert acknowledges_all(host.numbers)
            assert host.engine is not None and not host.engine.state.aside.tickets.open
            assert [lease.payload for lease in await q.reserve(99)] == [b"before", b"after"]

    run(work())


def test_a_lease_that_reached_nobody_does_not_count(url: str) -> None:
    """The answer is made, but its caller is cancelled before it can take it."""

    async def work() -> None:
        async with fairway.aio.open(url) as q:
            for put_first in (True, False):
                if put_first:
                    await q.put(b"x")
                task = asyncio.create_task(q.reserve(wait_seconds=600))
                if put_first:
                    await asyncio.sleep(0)  # it has executed; its group is not stored yet
                else:
                    await until(lambda: waits(q, 1))
                    await q.put(b"x")  # it is answered and stored; the task has not run yet
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await until(lambda: waiting_chunks(q, 1))
                (lease,) = await q.reserve()
                assert lease.attempt == 1
                await q.complete(lease)

    run(work())


async def waiting_chunks(q: fairway.AsyncQueue, n: int) -> bool:
    return (await q.stats()).chunks_waiting == n


def test_a_named_reservation_that_reached_nobody_is_handed_back_to_its_name(url: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(url) as q:
            assert await q.reserve(consumer="c", seq=1) == []
            task = asyncio.create_task(q.reserve(consumer="c", seq=1, wait_seconds=600))
            await until(lambda: waits(q, 1))
            await q.put(b"x")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.1)
            assert (await q.stats()).chunks_leased == 1
            (lease,) = await q.reserve(consumer="c", seq=1)
            assert await q.complete(lease) == "done"

    run(work())


async def _awaited(opening: Any) -> Any:
    return await opening


@pytest.mark.parametrize("late", [False, True])
def test_an_opening_that_is_cancelled_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """A thread opens the file meanwhile; it is cancelled before the file is open, or just after."""
    entered, go_on = threading.Event(), threading.Event()
    real = fairway.aio.enter

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        entered.set()
        assert go_on.wait(30)
        return found

    async def work() -> None:
        opening = asyncio.ensure_future(_awaited(fairway.aio.open(tmp_path / "w.db")))
        await asyncio.to_thread(entered.wait, 30)
        if late:
            go_on.set()
            for thread in threading.enumerate():
                if "asyncio" in thread.name:
                    thread.join(0.2)  # the loop stands still, so the answer cannot be received
        opening.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await opening

    monkeypatch.setattr(fairway.aio, "enter", slow)
    run(work())
    assert not [t for t in threading.enumerate() if t.name.startswith("fairway ")]


def test_closing_ends_the_waits_of_others(url: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(url) as q:
            task = asyncio.create_task(q.reserve(wait_seconds=600))
            await until(lambda: waits(q, 1))
        with pytest.raises(fairway.Closed):
            await task

    run(work())


def test_a_loop_that_ends_with_calls_under_way_harms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with fairway.open(path) as blocking:

        async def work() -> fairway.AsyncQueue:
            q = await fairway.aio.open(path)
            host = q._port._member.way  # type: ignore[attr-defined]
            # Answers that leave after the loop has closed: nobody is there to cancel them either.
            from fairway.runtime.pending import Pending

            host.send(Pending(Reserve(1, wait_seconds=600.0), q._port._notify))  # type: ignore[attr-defined]

            return q

        left = asyncio.run(work())
        assert blocking.stats().waiters == 1
        blocking.put(b"x")
        (lease,) = blocking.reserve(wait_seconds=30)
        assert (lease.payload, lease.attempt) == (b"x", 1)
        left._port._let_go()  # type: ignore[attr-defined]


def test_polling_an_empty_queue_lets_others_run(url: str) -> None:
    async def work() -> None:
        async with fairway.aio.open(url) as q:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            for _ in range(50):
                assert await q.reserve() == []
            ticking.cancel()
            assert ticks >= 25

    run(work())


def test_payloads_after_a_restart_are_read_beside_the_loop(tmp_path: Path) -> None:
    async def work() -> None:
        async with fairway.aio.open(tmp_path / "w.db") as q:
            await q.submit([b"x" * 5000] * 100)
        async with fairway.aio.open(tmp_path / "w.db") as q:
            leases = await q.reserve(100)
            assert {lease.payload for lease in leases} == {b"x" * 5000}

    run(work())
