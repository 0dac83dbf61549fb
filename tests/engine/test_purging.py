"""Purging: what is over leaves, and nothing that came to life again meanwhile."""

from __future__ import annotations

import pytest

from fairway.engine.commands import Call, Purge, Redrive, Show
from fairway.errors import NotFound
from tests.engine.desk import Desk, answer, small_pages, some

DAY = 86400.0


@pytest.mark.parametrize("page", [2, 65536])
def test_an_ended_submission_is_readable_for_the_retention_and_then_goes_for_good(
    monkeypatch, page: int
) -> None:
    small_pages(monkeypatch, page)
    desk = Desk()
    x = desk.submit(n=5)
    desk.complete(desk.reserve(5), [b"r"] * 5)
    desk.submit("z"), desk.pass_time(DAY - 1)
    assert desk.purge(x) == 0, "not before its time"
    assert desk.show(x).done == 5
    desk.pass_time(2)
    assert desk.purge(x) == 1
    with pytest.raises(NotFound):
        desk.show(x)
    assert desk.store.results(x, 0, 9) == [] and desk.purge(x) == 0


def test_active_and_lingering_submissions_are_not_purged() -> None:
    desk = Desk()
    desk.configure(retention_seconds=0.0)
    x, y = desk.submit(n=2), desk.submit("b")
    held = desk.reserve(1, lease=7 * DAY)
    desk.cancel(x)
    desk.submit("z"), desk.submit("z")
    assert desk.purge(x, y, 12345) == 0
    desk.complete(held)
    desk.restart()
    assert desk.purge(x, y) == 1


def test_a_submission_that_was_redriven_since_the_sweeper_looked_stays() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    desk.cancel(x)
    desk.pass_time(2 * DAY)
    call = Call(Purge([x]))
    found = desk.engine.lookups(call).read(desk.store)
    desk.redrive(x)
    desk.complete(desk.reserve())
    desk.submit("z"), desk.submit("z")
    assert answer(desk.engine.execute(call, desk.now, found)) == 0
    desk.settle()
    assert desk.purge(x) == 0 and desk.show(x).state == "completed", "it ended again just now"


def test_a_submission_that_is_being_looked_up_for_a_redrive_is_purged_the_next_time() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    desk.cancel(x)
    desk.pass_time(2 * DAY)
    call = Call(Redrive(x))
    found = desk.engine.lookups(call).read(desk.store)
    assert desk.purge(x) == 0
    assert answer(desk.engine.execute(call, desk.now, found)).state == "active"
    desk.settle()
    assert desk.drain() == [(x, 0)]


def test_two_redrives_that_looked_at_the_same_time_have_one_effect() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    desk.cancel(x)
    desk.submit("z"), desk.submit("z")
    calls = [Call(Redrive(x)), Call(Redrive(x)), Call(Show(x))]
    found = [desk.engine.lookups(call).read(desk.store) for call in calls]
    first, second, shown = [
        desk.engine.execute(call, desk.now, seen) for call, seen in zip(calls, found, strict=True)
    ]
    desk.settle()
    assert answer(first).life == 2 and second.error.code == "nothing_to_redrive"
    assert answer(shown).state == "active", "what the engine knows wins over what was read"


def test_a_read_that_began_before_the_end_was_stored_sees_the_end() -> None:
    desk = Desk()
    x, y = desk.submit(n=1), desk.submit("b")
    desk.cancel(y)
    desk.submit("z"), desk.submit("z")
    desk.engine.lookups(Call(Show(y)))  # a read that takes long
    held = desk.reserve(1, "OldestFirst")
    desk.complete(held)
    for _ in range(5):
        desk.submit("z")
    assert x in desk.state.recent_ends, "kept while that read is under way"
    assert desk.complete(some(held, (x, 0))) == ["already"]


def test_events_go_by_time() -> None:
    desk = Desk()
    desk.submit()
    old = desk.now
    desk.pass_time(100)
    desk.submit()
    assert len(desk.store.events(0, 99)) == 2
    desk.call(Purge(events_before=old + 50))
    assert [time for _, time, _ in desk.store.events(0, 99)] == [desk.now]
