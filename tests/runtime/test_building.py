"""A new strategy over many submissions: the queue goes on working while its plan is made."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

import pytest

import fairway
from fairway import limits
from fairway.runtime.collecting import Pause
from fairway.runtime.reader import Reader

MANY = 10_000
STRATEGY = 'PreferDistinct("region", 2, MaxSimultaneous("tenant", 5, Fair))'


def fill(q: fairway.Queue) -> None:
    q.submit_many(
        [{"chunks": 5, "tenant": f"t{i % 100}", "metadata": {"region": i % 7}} for i in range(MANY)]
    )


def test_calls_are_answered_while_a_plan_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asks for a new strategy waits; a put of another thread is done before it, however slow all is."""
    assert MANY > 10 * limits.PLAN_STEPS
    half_made, done = threading.Event(), threading.Event()
    make_some = Reader._round

    def watched(reader: Reader) -> bool:
        more = make_some(reader)
        engine = reader._host.engine
        if more and engine is not None and engine.builds:
            half_made.set()
            assert done.wait(60), "nobody's put is done before the plan is made"
        return more

    monkeypatch.setattr(Reader, "_round", watched)
    with fairway.open(tmp_path / "w.db") as q:
        fill(q)
        got: list[fairway.Lease] = []
        asking = threading.Thread(target=lambda: got.extend(q.reserve(max=5, strategy=STRATEGY)))
        before = q.stats().submissions_active
        asking.start()
        put = 0
        assert half_made.wait(60)
        while asking.is_alive():
            q.put(b"meanwhile")
            done.set()
            put += 1
        asking.join()
        assert len(got) == 5 and put > 0
        assert q.stats().submissions_active == before + put
        q.complete(got)
        assert gc.isenabled()


def test_plans_are_made_again_after_a_restart_and_hand_out_the_same(tmp_path: Path) -> None:
    with fairway.open(tmp_path / "w.db") as q:
        fill(q)
        held = q.reserve(max=100, strategy='MaxSimultaneous("tenant", 2, OldestFirst)')
    with fairway.open(tmp_path / "w.db") as q:
        # Counts of what is out are taken in with the slices, so a limit holds from the first pick on.
        more = q.reserve(max=1000, strategy='MaxSimultaneous("tenant", 2, OldestFirst)')
        tenants = [lease.tenant for lease in (*held, *more)]
        assert len(tenants) == 200 and all(tenants.count(tenant) == 2 for tenant in set(tenants))


def test_loops_and_attached_callers_get_plans_too(tmp_path: Path) -> None:
    async def ask() -> int:
        async with fairway.aio.open(tmp_path / "w.db") as q:
            asked = [q.reserve(max=3, strategy=strategy) for strategy in ("NewestFirst", "Random", STRATEGY)]
            return sum(len(leases) for leases in await asyncio.gather(*asked))

    with fairway.open(tmp_path / "w.db") as q:
        fill(q)
    assert asyncio.run(ask()) == 9


def test_a_queue_closes_while_a_plan_is_made(tmp_path: Path) -> None:
    refused: list[fairway.FairwayError] = []

    def ask(q: fairway.Queue) -> None:
        try:
            q.reserve(max=3, strategy=STRATEGY, wait_seconds=60)
        except fairway.Closed as error:
            refused.append(error)

    with fairway.open(tmp_path / "w.db") as q:
        fill(q)
        q.pause()  # so that it waits for ever
        asking = threading.Thread(target=ask, args=(q,))
        asking.start()
        q.put(b"x")
    asking.join(60)
    assert not asking.is_alive() and len(refused) == 1 and gc.isenabled()


def test_the_collector_is_left_as_it_was() -> None:
    pause, inner = Pause(), Pause()
    pause.begin()
    pause.begin()
    inner.begin()  # it was off already
    inner.end()
    assert not gc.isenabled()
    pause.end()
    pause.end()
    assert gc.isenabled()
