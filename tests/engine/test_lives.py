"""Ends and lives: a submission ends once per life, in group order, and a redrive opens a new life."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairway.engine.commands import Cancel, Complete, Redrive, Submit
from fairway.errors import AlreadyEnded, NotFound, NothingToRedrive
from tests.engine.desk import Desk, attempts, chunks, offer, parts, small_pages, some


def test_a_submission_of_no_chunks_is_completed_at_once() -> None:
    desk = Desk()
    x = desk.submit(n=0)
    for _ in range(2):
        assert (desk.show(x).state, desk.show(x).total, desk.show(x).ended) == ("completed", 0, desk.now)
        desk.restart()
    with pytest.raises(NothingToRedrive):
        desk.redrive(x)
    assert desk.stats().submissions_active == 0 and desk.reserve().spans == []


def test_submissions_of_no_chunks_leave_no_trace_in_memory() -> None:
    desk = Desk()
    for i in range(20):
        desk.submit(f"t{i}", 0)
    desk.submit("a", 1)
    for _ in range(600):  # until every object was rewritten
        desk.weigh("w", 2000), desk.weigh("w", 1000)
    assert set(desk.state.tenants) == {"a"} and set(desk.state.forecast._last) == {"a"}


def test_a_submission_of_no_chunks_inside_a_backlog_moves_nobodys_place() -> None:
    desk = Desk()
    desk.submit("a", 5)
    desk.submit("a", 0)
    desk.restart()
    last = desk.submit("a", 1)
    assert desk.state.runs[last].pass_ == 9999 + 5 * 10_000


@pytest.mark.parametrize("first", ["cancel", "complete"])
def test_cancel_and_complete_race_in_group_order(first: str) -> None:
    desk = Desk()
    x = desk.submit(n=1)
    held = desk.reserve()
    calls = [Cancel(x), Complete(parts(held))]
    if first == "complete":
        calls.reverse()
    with desk.one_group():
        winner, loser = [desk.send(call) for call in calls]
    assert winner.error is None
    if first == "cancel":
        assert loser.reply.outcomes == [("ended", 1)]
        assert (desk.show(x).state, desk.show(x).done) == ("cancelled", 0)
    else:
        assert isinstance(loser.error, AlreadyEnded)
        assert (desk.show(x).state, desk.show(x).done) == ("completed", 1)
    desk.restart()
    assert desk.show(x).state == {"cancel": "cancelled", "complete": "completed"}[first]


def test_the_loser_of_a_race_gets_already_ended_whenever_it_comes() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    desk.cancel(x)
    for _ in range(2):
        with pytest.raises(AlreadyEnded):
            desk.cancel(x)
        with pytest.raises(AlreadyEnded):
            desk.pause(submission=x)
        desk.submit("z"), desk.restart()
    with pytest.raises(NotFound):
        desk.cancel(x - 1)


def test_nothing_is_delivered_after_its_final_state() -> None:
    desk = Desk()
    x, y = desk.submit(n=3), desk.submit("b", 2)
    held = desk.reserve(2, "OldestFirst")
    desk.complete(some(held, (x, 0)))
    desk.fail(desk.reserve(1, "NewestFirst"), delay=5)
    desk.cancel(x), desk.cancel(y)
    for _ in range(3):
        desk.pass_time(400)
        assert desk.reserve(9).spans == []
        desk.restart()


def test_not_before_holds_and_survives_a_restart() -> None:
    desk = Desk()
    x = desk.submit(n=1, delay=100)
    y = desk.submit(n=1, not_before=desk.now + 50)
    for _ in range(2):
        assert desk.reserve(2).spans == []
        desk.restart(down=20)
    desk.pass_time(9.9)
    assert desk.reserve(2).spans == []
    desk.pass_time(0.1)
    assert chunks(desk.reserve(2)) == [(y, 0)]
    desk.restart(down=100)
    assert chunks(desk.reserve(2)) == [(x, 0)], "a due time that passed while nobody ran has passed"


def test_a_deadline_ends_a_submission_as_failed() -> None:
    desk = Desk()
    x, y = desk.submit(n=3, deadline=100), desk.submit(n=1, deadline=100)
    held = desk.reserve(2)
    desk.complete(some(held, (x, 0)))
    desk.restart(down=10)
    assert desk.engine.next_due <= desk.now + 90
    desk.pass_time(91)
    shown = desk.show(x)
    assert (shown.state, shown.done, shown.error, shown.error_index) == (
        "failed",
        1,
        "the deadline passed",
        -1,
    )
    assert desk.show(y).state == "failed"
    assert desk.complete(some(held, (x, 1))) == ["ended"]
    assert desk.redrive(x).state == "active"
    desk.restart(down=10)
    assert desk.show(x).state == "active", "a redrive lifts the deadline"


def test_a_deadline_that_passed_while_nobody_ran_ends_the_submission_at_the_start() -> None:
    desk = Desk()
    x = desk.submit(n=1, deadline=100)
    desk.restart(down=500)
    assert desk.show(x).state == "failed" and desk.reserve().spans == []


@pytest.mark.parametrize("page", [4, 65536])
@pytest.mark.parametrize("far", [False, True])
def test_a_redrive_opens_a_new_life_with_attempts_anew_and_results_kept(
    monkeypatch, page: int, far: bool
) -> None:
    small_pages(monkeypatch, page)
    desk = Desk()
    x = desk.submit(n=10, policy="dead_letter", attempts_max=2)
    held = desk.reserve(10)
    desk.complete(some(held, *((x, i) for i in range(6))), [b"r"] * 6)
    desk.fail(some(held, (x, 6), (x, 7)), retry=False)
    desk.fail(some(held, (x, 8)), delay=0)
    desk.complete(some(held, (x, 9)))
    desk.fail(desk.reserve())
    assert (desk.show(x).state, desk.show(x).done, desk.show(x).failed) == ("failed", 7, 3)
    if far:
        desk.submit("z"), desk.submit("z"), desk.cancel(desk.submit("z"))
        desk.restart()
    opened = desk.redrive(x)
    assert (opened.state, opened.life, opened.done, opened.failed, opened.ended) == ("active", 2, 7, 0, 0.0)
    assert (opened.error, opened.error_index) == ("", -1)
    desk.restart()
    again = desk.reserve(9, "OldestFirst")
    mine = [(chunk, n) for chunk, n in zip(chunks(again), attempts(again), strict=True) if chunk[0] == x]
    assert mine == [((x, 6), 1), ((x, 7), 1), ((x, 8), 1)]
    assert desk.complete(held)[:6] == ["already"] * 6, "what was done stays done, by the same receipt"
    desk.complete(again)
    assert (desk.show(x).state, desk.show(x).done, desk.show(x).life) == ("completed", 10, 2)
    assert sum(win.count for win in desk.winners(x)) == 10


def test_a_redrive_of_an_active_submission_opens_its_dead_chunks() -> None:
    desk = Desk()
    x = desk.submit(n=3, policy="dead_letter")
    held = desk.reserve(2)
    desk.fail(held, retry=False)
    desk.restart()
    opened = desk.redrive(x)
    assert (opened.life, opened.failed) == (2, 0)
    desk.restart()
    assert attempts(desk.reserve(9)) == [1, 1, 1]
    with pytest.raises(NothingToRedrive):
        desk.redrive(x)


def test_a_cancelled_submission_is_redriven_whole_with_leases_still_out() -> None:
    desk = Desk()
    x = desk.submit(n=6)
    held = desk.reserve(4)
    desk.complete(some(held, (x, 0)))
    desk.fail(some(held, (x, 1)), delay=500)
    desk.cancel(x)
    desk.release(some(held, (x, 2)))
    desk.restart()
    desk.redrive(x)
    assert desk.stats().chunks_leased == 1, "a lease that was not answered is a lease in the new life, too"
    assert sorted(chunks(desk.reserve(9, lease=5))) == [(x, 1), (x, 2), (x, 4), (x, 5)]
    assert desk.complete(some(held, (x, 3))) == ["done"]
    desk.pass_time(6)
    assert sorted(desk.drain()) == [(x, 1), (x, 2), (x, 4), (x, 5)]
    assert desk.show(x).state == "completed"


def test_a_fresh_submission_that_was_cancelled_and_redriven_takes_its_chunks_back() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    desk.cancel(x), desk.redrive(x)
    desk.release(desk.reserve())
    assert desk.drain() == [(x, 0), (x, 1)]


def test_chunks_that_backed_off_or_were_leased_again_when_it_was_cancelled_are_redriven_once() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    held = desk.reserve(2)
    desk.fail(some(held, (x, 0)), delay=0)
    again = desk.reserve()
    desk.fail(some(held, (x, 1)), delay=50)
    desk.cancel(x), desk.redrive(x)
    back = desk.reserve(9)
    assert (chunks(back), attempts(back)) == ([(x, 1)], [1])
    desk.release(back)
    assert desk.complete(again) == ["done"]
    assert desk.drain() == [(x, 1)]


def test_a_redrive_takes_a_new_place_and_a_waits_for_it() -> None:
    desk = Desk()
    a, b = desk.submit("a"), desk.submit("b")
    old = desk.state.runs[b].pass_
    desk.cancel(b)
    desk.redrive(b)
    assert desk.state.runs[b].pass_ > old
    held = desk.reserve(2)
    desk.complete(some(held, (a, 0)))
    desk.restart()
    assert desk.state.window.ack < (desk.state.runs[b].pass_, b)
    desk.complete(some(held, (b, 0)))
    assert desk.show(b).state == "completed"


@pytest.mark.parametrize("page", [2, 65536])
def test_many_lives_in_one_group(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    small_pages(monkeypatch, page)
    desk = Desk()
    x = desk.submit(n=6)
    held = desk.reserve(5)
    with desk.one_group():
        for index in range(4):
            assert desk.complete(some(held, (x, index))) == ["done"]
            desk.cancel(x)
            desk.redrive(x)
    assert (desk.show(x).done, desk.show(x).life) == (4, 5)
    desk.restart()
    assert desk.complete(held) == ["already"] * 4 + ["done"]
    with desk.one_group():
        desk.cancel(x), desk.redrive(x), desk.cancel(x)
    desk.restart()
    assert (desk.show(x).done, desk.show(x).state) == (5, "cancelled")


def test_what_is_done_after_a_redrive_in_the_group_of_the_end_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_pages(monkeypatch, 4)
    desk = Desk()
    x = desk.submit(n=10)
    held = desk.reserve(6)
    with desk.one_group():
        desk.complete(some(held, (x, 0)))
        desk.cancel(x), desk.redrive(x)
        desk.complete(some(held, (x, 1)))
    desk.restart()
    assert desk.complete(some(held, (x, 0), (x, 1))) == ["already", "already"]


def test_an_acknowledged_submission_ends_in_exactly_one_final_state_per_life() -> None:
    desk = Desk()
    with desk.one_group():
        ids = desk.call(
            Submit([offer("a", 1), offer("b", 2, policy="dead_letter"), offer("c", 1), offer("d", 0)])
        ).ids
    held = desk.reserve(4, "OldestFirst")
    a, b, c, d = ids
    desk.complete(some(held, (a, 0), (b, 0)))
    desk.fail(some(held, (b, 1)), retry=False)
    desk.cancel(c)
    ends = [(end.id, end.state) for group in desk.groups for end in group.ends]
    assert sorted(ends) == sorted([(a, "completed"), (b, "failed"), (c, "cancelled"), (d, "completed")])
    for id, state in ends:
        assert desk.show(id).state == state
        with pytest.raises(AlreadyEnded):
            desk.cancel(id)


@pytest.mark.parametrize("key", ["", "k"])
def test_a_submission_that_comes_past_its_deadline_is_handed_to_nobody(key: str) -> None:
    """Whoever waits is served as a submit comes, before anybody looks what is due."""
    desk = Desk()
    waiting = desk.wait_for_work(600)
    late = offer(n=2, key=key)
    late = replace(late, described=replace(late.described, deadline=desk.now - 1))
    (x,) = desk.call(Submit([late])).ids
    assert not waiting.answered
    shown = desk.show(x)
    assert (shown.state, shown.error, desk.stats().chunks_waiting) == ("failed", "the deadline passed", 0)
    assert desk.call(Submit([late])).known == [bool(key)]
    desk.restart()
    assert desk.show(x).state == "failed" and not desk.reserve().spans


def test_a_submission_whose_deadline_passed_while_it_was_away_is_handed_to_nobody() -> None:
    """A call that names it brings it into memory; whoever waits is served before what is due is done."""
    desk = Desk(window=1)
    x = desk.submit(n=1, delay=40, deadline=15)
    others = {desk.message("b") for _ in range(4)}
    leased = [chunk for _ in others for chunk in chunks(desk.reserve(1, lease=600))]
    assert {id for id, _ in leased} == others and x not in desk.state.runs
    waiting = desk.wait_for_work(600)
    desk.now += 60
    desk.send(Redrive(x))
    assert not waiting.answered
    assert desk.show(x).state == "failed" and desk.show(x).error == "the deadline passed"
