"""Explaining a backlog larger than the window: it looks where a reserve would look before it says anything."""

from __future__ import annotations

import pytest

from fairway import limits
from fairway.engine.commands import Explain
from fairway.errors import StoreFailed
from tests.engine.desk import Desk, answer, chunks


@pytest.mark.parametrize("window", [1, 2, 8])
@pytest.mark.parametrize(
    "strategy",
    [
        'SelectOnly("mode", "fast", Fair)',
        'MaxSimultaneous("mode", 1, Fair)',
        'OrElse(SelectOnly("k", 1, Fair), Fair)',
    ],
)
def test_explain_asks_the_store_before_it_says_nothing(window: int, strategy: str) -> None:
    """What it says is what the next reserve does, wherever the chunk is."""
    desk = Desk(window=window)
    for _ in range(12):
        desk.message(metadata={"mode": "slow"})
    fast = desk.message(metadata={"mode": "fast"})
    if "Max" in strategy:
        assert chunks(desk.reserve(1, 'SelectOnly("mode", "slow", Fair)'))
    told = desk.call(Explain(strategy, 3))
    ((id, _),) = chunks(desk.reserve(1, strategy))
    assert f"1. tenant 'a', submission {id}" in told, told
    assert id == fast or "OrElse" in strategy
    left = desk.state.live - desk.state.aside.here
    assert not desk.state.askers and desk.state.plans.peek(strategy).pinned == 0 and left


@pytest.mark.parametrize("strategy", ["Fair", "OldestFirst", "NewestFirst", "Random", "CustomPriority"])
def test_explain_tells_what_is_in_the_store_by_its_counts(strategy: str) -> None:
    desk = Desk(window=2)
    for i in range(10):
        desk.message(f"p{i}")
    told = desk.call(Explain(strategy, 50))
    here = desk.state.aside.here
    assert here < 10 and f" of the {here} submissions in memory have" in told
    assert f"{10 - here} more are in the store, where {10 - here} chunks wait." in told
    for i in range(10):
        desk.pause(tenant=f"p{i}")
    told = desk.call(Explain(strategy, 50))
    assert "nothing can be handed out by it now" in told
    assert all(f"tenant 'p{i}'" in told for i in range(10)) and told.count("its tenant is paused") == 10
    assert not desk.reserve(1, strategy).spans
    desk.resume(tenant="p7")
    told = desk.call(Explain(strategy, 50))
    assert "nothing can" not in told and "all its" not in told
    assert "tenant 'p7'" in told or strategy == "Random"
    assert desk.tenants_of(desk.reserve(1, strategy)) == "p7"


def test_explain_waits_for_a_read_that_failed_and_is_told_when_the_queue_is_paused() -> None:
    desk = Desk(window=2)
    for _ in range(9):
        desk.message(metadata={"mode": "slow"})
    desk.reads_go_on = False
    asked = desk.send(Explain('SelectOnly("mode", "none", Fair)'))
    for read in desk.engine.begin_reads(desk.now):
        desk.engine.read_failed(read, desk.now, StoreFailed())
    assert not asked.answered and desk.state.askers
    other = desk.send(Explain('SelectOnly("mode", "no", Fair)'))
    desk.pause()
    assert "is paused" in str(answer(asked)) and "is paused" in str(answer(other))
    desk.reads_go_on = True
    desk.resume()
    desk.pass_time(limits.READ_RETRY_SECONDS_MAX)
    assert "nothing can" in desk.call(Explain('SelectOnly("mode", "none", Fair)'))


def test_a_search_whose_asker_has_gone_is_given_up() -> None:
    desk = Desk(window=2)
    for _ in range(9):
        desk.message(metadata={"mode": "slow"})
    desk.state.plans.places.most = 1
    desk.reads_go_on = False
    asked = desk.send(Explain('SelectOnly("mode", "none", Fair)'))
    while not (reads := desk.engine.begin_reads(desk.now)):
        pass
    desk.engine.abandon(asked)
    for read in reads:
        desk.engine.delivered(read, read.read(desk.store), desk.now)
    assert not desk.state.aside.searches and not desk.state.askers
    assert desk.state.plans.peek('SelectOnly("mode", "none", Fair)') is None, "nor is its plan made again"


def test_searches_of_endless_strategies_are_not_all_remembered() -> None:
    desk = Desk(window=2, audited=False)
    for _ in range(9):
        desk.message()
    for i in range(5 * limits.PLANS_MAX):
        assert not desk.reserve(1, f'SelectOnly("k", {i}, Fair)').spans
    assert len(desk.state.aside.dry) <= 4 * limits.PLANS_MAX


def test_searches_of_callers_that_are_gone_are_not_all_kept() -> None:
    desk = Desk(window=2, audited=False)
    for _ in range(9):
        desk.message()
    desk.reads_go_on = False
    for i in range(3 * limits.PLANS_MAX):
        wait = desk.wait_for_work(600, strategy=f'SelectOnly("k", {i}, Fair)')
        for read in desk.engine.begin_reads(desk.now):
            desk.engine.read_failed(read, desk.now, StoreFailed())
        desk.now += limits.READ_RETRY_SECONDS_MAX
        desk.engine.abandon(wait)
    assert len(desk.state.aside.searches) <= limits.PLANS_MAX + 1
