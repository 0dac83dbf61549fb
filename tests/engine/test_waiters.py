"""Waiting: no wake-up is lost, first come first served, and nobody is told "no work" while there is some."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairway import limits
from fairway.engine import waiting
from fairway.engine.commands import Configure, Reserve, ShowConfig, Wait
from fairway.engine.draft import Draft
from fairway.errors import BadArgument, BadStrategy, NotFound, TooLarge, TooManyStrategies
from tests.engine.desk import Desk, answer, chunks

STRATEGIES = ["Fair", "OldestFirst", "NewestFirst", "Random"]

# What makes work, each in a queue where there is none: (how it came about, what makes it).
Act = Callable[[Desk], object]
EVENTS: dict[str, tuple[Act, Act]] = {
    "submit": (lambda d: None, lambda d: d.submit()),
    "expired lease": (lambda d: (d.submit(), d.reserve(lease=50)), lambda d: d.pass_time(50)),
    "failed chunk": (lambda d: setattr(d, "x", (d.submit(), d.reserve())[1]), lambda d: d.fail(d.x, delay=0)),
    "end of a back-off": (lambda d: (d.submit(), d.fail(d.reserve(), delay=50)), lambda d: d.pass_time(50)),
    "released chunk": (lambda d: setattr(d, "x", (d.submit(), d.reserve())[1]), lambda d: d.release(d.x)),
    "resumed queue": (lambda d: (d.submit(), d.pause()), lambda d: d.resume()),
    "resumed tenant": (lambda d: (d.submit(), d.pause(tenant="a")), lambda d: d.resume(tenant="a")),
    "resumed submission": (
        lambda d: (setattr(d, "x", d.submit()), d.pause(submission=d.x)),
        lambda d: d.resume(submission=d.x),
    ),
    "due time": (lambda d: d.submit(delay=50), lambda d: d.pass_time(50)),
    "redrive": (lambda d: (setattr(d, "x", d.submit()), d.cancel(d.x)), lambda d: d.redrive(d.x)),
    "redrive of a dead chunk": (
        lambda d: (
            setattr(d, "x", d.submit(n=2, policy="dead_letter")),
            d.fail(d.reserve(), retry=False),
            d.reserve(lease=1000),
        ),
        lambda d: d.redrive(d.x),
    ),
    "halved reservation": (
        lambda d: (d.submit(n=2), d.named("c", d.join("c"), 1)),
        lambda d: d.named("c", d.join("c"), 1),
    ),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("event", EVENTS)
def test_a_waiter_is_woken_by(event: str, strategy: str) -> None:
    before, after = EVENTS[event]
    desk = Desk()
    before(desk)
    first, second = desk.wait_for_work(100, strategy=strategy), desk.wait_for_work(100, strategy=strategy)
    assert not first.answered
    after(desk)
    assert answer(first).spans, "the first is served at once"
    assert not second.answered, "an event wakes as many as it made eligible"
    assert desk.stats().waiters == 1


@pytest.mark.parametrize("event", EVENTS)
def test_a_waiter_of_a_restarted_queue_is_woken_by(event: str) -> None:
    before, after = EVENTS[event]
    desk = Desk()
    before(desk)
    desk.restart()
    wait = desk.wait_for_work(100)
    assert not wait.answered
    after(desk)
    assert answer(wait).spans


def test_waiters_of_a_strategy_are_served_first_come_first_served() -> None:
    desk = Desk()
    waits = [desk.wait_for_work(100) for _ in range(4)]
    desk.submit(n=2)
    assert [draft.answered for draft in waits] == [True, True, False, False]
    assert [chunks(answer(draft))[0][1] for draft in waits[:2]] == [0, 1]
    desk.submit(n=9)
    assert all(draft.answered for draft in waits)


def test_waiters_of_several_strategies_are_served_first_come_first_served() -> None:
    """Consumers of one strategy who always wait keep nothing from those of another."""
    desk = Desk()
    waits = [desk.wait_for_work(100, strategy=name) for name in ("Fair", "OldestFirst", "Fair", "Random")]
    waits.append(desk.wait_for_work(100, strategy="Fair"))
    for served in range(1, len(waits) + 1):
        desk.submit()
        assert [draft.answered for draft in waits] == [True] * served + [False] * (len(waits) - served)


def test_a_wait_that_runs_out_is_answered_with_no_work() -> None:
    desk = Desk()
    wait = desk.wait_for_work(10)
    assert desk.engine.next_due == desk.now + 10
    desk.pass_time(9.9)
    assert not wait.answered
    desk.pass_time(0.2)
    assert answer(wait).spans == [] and desk.stats().waiters == 0


def test_no_wait_is_told_no_work_when_work_came_in_the_same_moment() -> None:
    desk = Desk()
    x = desk.submit()
    desk.reserve(lease=10)
    wait = desk.wait_for_work(20)
    desk.now += 30  # one late tick finds the lease over and the wait over
    desk.engine.tick(desk.now)
    desk.settle()
    assert chunks(answer(wait)) == [(x, 0)]


def test_an_abandoned_wait_takes_no_work() -> None:
    desk = Desk()
    gone, there = desk.wait_for_work(100), desk.wait_for_work(100)
    desk.engine.abandon(gone)
    desk.engine.abandon(gone)
    x = desk.submit()
    assert chunks(answer(there)) == [(x, 0)] and gone.reply is None
    desk.engine.abandon(there)
    desk.settle()
    assert desk.stats().chunks_leased == 1, "an answered one is not undone"


def test_a_new_call_does_not_overtake_those_who_wait() -> None:
    desk = Desk()
    wait = desk.wait_for_work(100)
    with desk.one_group():
        desk.submit()
        late = desk.reserve()
    assert answer(wait).spans and late.spans == []


def test_a_waiter_whose_strategy_was_locked_out_meanwhile_hears_of_it() -> None:
    desk = Desk()
    wait, own = desk.wait_for_work(100, strategy="Random"), desk.wait_for_work(100)
    desk.configure(strategy="NewestFirst", strategy_locked=True)
    desk.submit()
    assert isinstance(wait.error, BadStrategy)
    assert answer(own).spans


@pytest.mark.parametrize("window", [0, 1])
def test_a_waiter_without_a_strategy_of_its_own_follows_the_queues(window: int) -> None:
    """What the new strategy hands out it hands out at once, to those who came first."""
    desk = Desk(window=window)
    desk.configure(strategy='SelectOnly("lane", "fast", Fair)')
    ids = [desk.message() for _ in range(3)]
    first = desk.wait_for_work(600)
    other = desk.wait_for_work(600, strategy='SelectOnly("lane", "slow", Fair)')
    last = desk.wait_for_work(600)
    assert not first.answered and not last.answered
    desk.configure(lease_seconds=50.0)
    assert not first.answered
    desk.configure(strategy='MaxSimultaneous("tenant", 1, OldestFirst)')
    assert chunks(answer(first)) == [(ids[0], 0)]
    assert not last.answered, "one of the tenant is in flight"
    desk.configure(strategy="OldestFirst")
    assert chunks(answer(last)) == [(ids[1], 0)]
    desk.configure(strategy="NewestFirst")
    desk.pass_time(700)
    assert not answer(other).spans and desk.state.waiting == 0


def lanes(desk: Desk, n: int) -> list[Draft]:
    """Waiters by as many strategies, none of them the queue's own."""
    return [desk.wait_for_work(600, strategy=f'SelectOnly("k", {i}, Fair)') for i in range(n)]


def test_a_queues_own_strategy_has_a_place_however_many_others_are_waited_by() -> None:
    desk = Desk()
    waits = lanes(desk, limits.PLANS_MAX - 1)
    with pytest.raises(TooManyStrategies, match="when one of them has none"):
        answer(desk.wait_for_work(600, strategy="OldestFirst"))
    own = desk.wait_for_work(600)
    with pytest.raises(TooManyStrategies):
        desk.reserve(strategy="OldestFirst")
    ids = [desk.message() for _ in range(3)]
    assert chunks(answer(own)) == [(ids[0], 0)] and chunks(desk.reserve()) == [(ids[1], 0)]
    desk.engine.abandon(waits[7])
    assert chunks(desk.reserve(strategy="OldestFirst")) == [(ids[2], 0)]
    assert not any(wait.answered for wait in waits[:7] + waits[8:])


def test_the_queues_strategy_can_be_changed_while_all_places_are_waited_by() -> None:
    desk = Desk()
    lanes(desk, limits.PLANS_MAX - 1)
    own = [desk.wait_for_work(600) for _ in range(2)]
    desk.configure(strategy="NewestFirst")
    first = desk.message()
    assert chunks(answer(own[0])) == [(first, 0)] and not own[1].answered
    desk.restart()
    assert desk.call(ShowConfig())["strategy"] == "NewestFirst"


def test_a_refused_configure_changes_nothing() -> None:
    desk = Desk()
    named = desk.wait_for_work(600, strategy="Fair")  # by the queue's own, and it stays with it
    own = [desk.wait_for_work(600) for _ in range(2)]
    lanes(desk, limits.PLANS_MAX - 1)
    with pytest.raises(TooManyStrategies):
        desk.call(Configure({"strategy": "NewestFirst", "attempts_max": 9}))
    assert desk.call(ShowConfig())["strategy"] == "Fair" and desk.state.config.attempts_max != 9
    assert not any(draft.answered for draft in (named, *own))
    ids = [desk.message() for _ in range(3)]
    assert [chunks(answer(draft)) for draft in (named, *own)] == [[(id, 0)] for id in ids]
    desk.configure(strategy="NewestFirst")
    desk.restart()
    assert desk.call(ShowConfig())["strategy"] == "NewestFirst"


def test_wait_is_answered_when_the_submission_ends_or_the_time_is_over() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    ends, over, gone = desk.wait(x, 100), desk.wait(x, 5), desk.wait(x, 100)
    desk.engine.abandon(gone)
    desk.pass_time(6)
    assert answer(over).state == "active" and not ends.answered
    desk.complete(desk.reserve())
    assert answer(ends).state == "completed" and not gone.reply
    assert answer(desk.wait(x, 100)).state == "completed"
    desk.restart()
    assert answer(desk.wait(x, 100)).state == "completed"
    with pytest.raises(NotFound):
        answer(desk.wait(12345, 1))
    for seconds in (-1, 4000, float("nan")):
        with pytest.raises(BadArgument):
            desk.call(Wait(x, seconds))


@pytest.mark.parametrize("how", ["cancel", "deadline", "fail_fast"])
def test_wait_is_answered_however_the_submission_ends(how: str) -> None:
    desk = Desk()
    x = desk.submit(n=2, deadline=50)
    wait = desk.wait(x, 1000)
    {
        "cancel": lambda: desk.cancel(x),
        "deadline": lambda: desk.pass_time(50),
        "fail_fast": lambda: desk.fail(desk.reserve(), retry=False),
    }[how]()
    assert answer(wait).state == ("cancelled" if how == "cancel" else "failed")


def test_as_many_may_wait_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAITERS_MAX", 3)
    desk = Desk()
    client = desk.register()
    x = desk.submit()
    held = desk.reserve()
    drafts = [desk.wait_for_work(100), desk.wait(x, 100), desk.wait_for_work(100)]
    with pytest.raises(TooLarge):
        answer(desk.send(Reserve(1, wait_seconds=5), client, 1))
    with pytest.raises(TooLarge):
        answer(desk.wait(x, 5))
    desk.complete(held)
    assert [draft.answered for draft in drafts] == [False, True, False]
    assert not desk.send(Reserve(1, wait_seconds=5), client, 1).answered


def test_waits_that_were_served_long_before_their_time_are_let_go() -> None:
    desk = Desk(audited=False)
    for _ in range(1500):
        wait = desk.wait_for_work(3600)
        desk.submit()
        assert wait.answered
    assert len(desk.state.timeouts) < 1100
