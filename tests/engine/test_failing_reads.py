"""Reads of the store that keep failing: nobody waits for them in silence, and sound work goes on."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.engine import commands as c
from fairway.engine.draft import Draft
from fairway.engine.reads import Read
from fairway.errors import FairwayError, StoreCorrupt, StoreFailed
from fairway.limits import READ_FAILS_SECONDS, READ_RETRY_SECONDS_MAX
from tests.engine.desk import Desk, chunks

LONG_SECONDS = READ_FAILS_SECONDS + 2 * READ_RETRY_SECONDS_MAX


class Broken(Desk):
    """A desk whose store cannot be read: not at all, or where a damaged row is among what is read."""

    def __init__(self, **more: Any) -> None:
        self.down = False
        self.damaged: set[int] = set()
        self.failed: list[Read] = []
        super().__init__(audited=False, **more)

    def _read_on(self, engine: Any) -> None:
        for _ in range(5_000):
            if not engine.wants_reads():
                return
            for read in engine.begin_reads(self.now):
                error: FairwayError | None = StoreFailed("the store is down") if self.down else None
                answer = read.read(self.store)
                if any(row.id in self.damaged for row in answer.rows):
                    error = StoreCorrupt("a row is damaged")
                if error is None:
                    engine.delivered(read, answer, self.now)
                else:
                    self.failed.append(read)
                    engine.read_failed(read, self.now, error)
        raise AssertionError("reads never come to rest")

    def until_answered(self, draft: Draft, seconds: float = LONG_SECONDS) -> Draft:
        """Time passes, as long as nobody answers."""
        until = self.now + seconds
        while not draft.answered and self.now < until:
            self.pass_time(max(0.001, min(self.engine.next_due, until) - self.now))
        return draft

    def ask(self, strategy: str = "", wait: float = 0.0) -> Draft:
        return self.send(c.Reserve(1, strategy, wait_seconds=wait))

    def taken(self, strategy: str = "") -> list[tuple[int, int]]:
        """Reserve and complete until there is no work, or an error."""
        got: list[tuple[int, int]] = []
        while (draft := self.until_answered(self.ask(strategy))).error is None:
            assert draft.answered, "a reserve hangs"
            if not draft.reply.spans:  # pyright: ignore
                break
            got += chunks(draft.reply)  # pyright: ignore
            self.complete(draft.reply)  # pyright: ignore
        return got


def test_a_reserve_is_told_why_the_store_cannot_be_read() -> None:
    desk = Broken(window=2)
    ids = [desk.message() for _ in range(10)]
    desk.down = True
    before = desk.taken()
    assert 0 < len(before) < 10, "what is in memory is handed out all the same"
    draft = desk.until_answered(desk.ask())
    assert draft.answered and isinstance(draft.error, StoreFailed) and "down" in str(draft.error)
    desk.down = False
    assert sorted(before + desk.taken()) == [(id, 0) for id in ids]


def test_an_explain_is_told_why_the_store_cannot_be_read() -> None:
    desk = Broken(window=2)
    for _ in range(10):
        desk.message()
    desk.down = True
    desk.taken()
    draft = desk.until_answered(desk.send(c.Explain("Fair")))
    assert isinstance(draft.error, StoreFailed) and "down" in str(draft.error)
    assert not desk.state.askers and desk.state.plans.peek("Fair").pinned == 0  # pyright: ignore
    desk.down = False
    desk.pass_time(READ_RETRY_SECONDS_MAX)
    draft = desk.until_answered(desk.send(c.Explain("Fair")))
    assert draft.error is None and "1. tenant" in str(draft.reply)


def test_a_reserve_is_not_told_of_a_failure_that_passes() -> None:
    desk = Broken(window=2)
    for _ in range(10):
        desk.message()
    desk.down = True
    draft = desk.ask()
    while draft.answered:
        draft = desk.ask()
    desk.until_answered(draft, READ_FAILS_SECONDS / 2)
    assert not draft.answered and desk.failed
    desk.down = False
    assert chunks(desk.until_answered(draft).reply)  # pyright: ignore


def test_who_may_wait_waits_through_failures_and_is_told_at_its_end() -> None:
    desk = Broken(window=2)
    for _ in range(4):
        desk.message()
    desk.down = True
    desk.taken()
    short, long = desk.ask(wait=60.0), desk.ask(wait=600.0)
    desk.until_answered(short, 59.0)
    assert not short.answered
    desk.until_answered(short)
    assert isinstance(short.error, StoreFailed) and not long.answered
    desk.down = False
    assert chunks(desk.until_answered(long).reply), "and its wake-up is not lost"  # pyright: ignore


def test_the_pause_between_two_tries_doubles_and_is_bounded() -> None:
    desk = Broken(window=2)
    for _ in range(10):
        desk.message()
    desk.down = True
    desk.taken()
    desk.failed.clear()
    desk.pass_time(100 * READ_RETRY_SECONDS_MAX)
    assert 90 <= len(desk.failed) <= 110


@pytest.mark.parametrize("at", [0, 3, 29, 30, 77, 99])
def test_what_lies_before_a_damaged_row_is_handed_out(at: int) -> None:
    """However large the reads are: one that failed is made again with fewer rows."""
    desk = Broken(window=40)
    ids = [desk.message() for _ in range(100)]
    in_memory = {run.id for run in desk.state.runs.values()}
    damaged = next(id for id in ids[at:] + ids[::-1] if id not in in_memory)
    desk.damaged = {damaged}
    got = desk.taken()
    assert [id for id, _ in got] == ids[: ids.index(damaged)]
    draft = desk.until_answered(desk.ask())
    assert isinstance(draft.error, StoreCorrupt)
    desk.damaged = set()
    assert [id for id, _ in desk.taken()] == ids[ids.index(damaged) :], "once it is repaired all goes on"


def test_a_damaged_row_of_one_tenant_does_not_hold_up_a_search_for_another() -> None:
    desk = Broken(window=2)
    ids = [desk.message("a") for _ in range(12)]
    others = [desk.message("b", metadata={"lane": "fast"}) for _ in range(3)]
    desk.restart()
    desk.damaged = {id for id in ids if id not in desk.state.runs}
    fast = 'SelectOnly("lane", "fast", Fair)'
    while (draft := desk.until_answered(desk.ask('SelectOnly("tenant", "a", Fair)'))).error is None:
        desk.complete(draft.reply)  # pyright: ignore
    here = [id for id in others if id not in desk.state.runs]
    assert here, "some of them are not in memory"
    assert sorted(id for id, _ in desk.taken(fast)) == others


def test_a_resumed_tenant_with_a_damaged_row_does_not_hold_up_others() -> None:
    desk = Broken(window=4)
    desk.pause(tenant="p")
    ids = [desk.message("p") for _ in range(20)]
    done = [desk.message("a") for _ in range(3)]
    desk.restart()
    assert sorted(id for id, _ in desk.taken()) == done
    damaged = next(id for id in ids if id not in desk.state.runs)
    desk.damaged = {damaged}
    desk.resume(tenant="p")
    new = desk.message("a")
    got = [id for id, _ in desk.taken()]
    assert new in got and damaged not in got
    desk.damaged = set()
    assert sorted(got + [id for id, _ in desk.taken()]) == sorted([*ids, new])


def test_a_run_that_is_due_and_damaged_does_not_hold_up_those_that_are_due_with_it() -> None:
    desk = Broken(window=2)
    for _ in range(6):
        desk.message("a")
    late = [desk.message("b", not_before=desk.now + 100.0) for _ in range(10)]
    desk.restart()
    assert len(desk.taken()) == 6
    desk.damaged = {id for id in late if id not in desk.state.runs and id % 3 == 0} or {late[5]}
    desk.pass_time(101.0)
    got = {id for id, _ in desk.taken()}
    assert got and got.isdisjoint(desk.damaged)
    desk.damaged = set()
    assert got | {id for id, _ in desk.taken()} == set(late)
