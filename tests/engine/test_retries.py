"""Retries: back-off, dead letters and policies."""

from __future__ import annotations

import pytest

from fairway.engine.commands import ListDead
from fairway.errors import BadArgument
from tests.engine.desk import Desk, attempts, chunks, some


def test_a_failed_chunk_comes_back_after_a_back_off_that_doubles() -> None:
    desk = Desk()
    desk.configure(attempts_max=8, retry_delay_seconds=2.0, retry_delay_seconds_max=10.0)
    desk.message()
    for attempt, delay in enumerate([2, 4, 8, 10, 10], 1):
        held = desk.reserve()
        assert attempts(held) == [attempt]
        assert desk.fail(held) == ["retrying"]
        assert desk.stats().chunks_waiting == 1, "what backs off waits"
        desk.pass_time(delay - 0.01)
        assert desk.reserve().spans == []
        if attempt == 3:
            desk.restart()
            assert desk.reserve().spans == [], "the back-off survives a restart"
        desk.pass_time(0.01)


def test_the_caller_may_set_the_delay() -> None:
    desk = Desk()
    x = desk.submit(n=2)
    held = desk.reserve(2)
    desk.fail(some(held, (x, 0)), delay=0)
    desk.fail(some(held, (x, 1)), delay=50)
    assert chunks(desk.reserve(2)) == [(x, 0)]
    desk.pass_time(50)
    assert chunks(desk.reserve(2)) == [(x, 1)]
    with pytest.raises(BadArgument):
        desk.fail(held, delay=1e9)


def test_a_back_off_that_ended_while_nobody_ran_has_ended() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    desk.fail(desk.reserve(), delay=50)
    desk.restart(down=60)
    assert chunks(desk.reserve()) == [(x, 0)]


@pytest.mark.parametrize("end", ["fail", "expire"])
@pytest.mark.parametrize("maximum", [1, 3])
def test_at_most_attempts_max_deliveries_then_dead(end: str, maximum: int) -> None:
    desk = Desk()
    x = desk.submit(n=2, policy="dead_letter", attempts_max=maximum)
    for attempt in range(1, maximum + 1):
        held = desk.reserve(1, lease=5)
        assert (chunks(held), attempts(held)) == ([(x, 0)], [attempt])
        if end == "fail":
            assert desk.fail(held, delay=0) == ["dead" if attempt == maximum else "retrying"]
        else:
            desk.pass_time(6)
    assert desk.dead() == [(x, 0)]
    assert desk.complete(held) == ["lost"], "a dead chunk takes no result"
    desk.restart()
    assert desk.dead() == [(x, 0)] and desk.drain() == [(x, 1)]
    assert (desk.show(x).state, desk.show(x).failed, desk.show(x).done) == ("failed", 1, 1)


def test_a_release_counts_no_attempt() -> None:
    desk = Desk()
    x = desk.message(attempts_max=1)
    for _ in range(5):
        held = desk.reserve()
        assert attempts(held) == [1]
        assert desk.release(held) == ["released"]
    desk.fail(desk.reserve())
    assert desk.show(x).state == "failed"


def test_fail_without_retry_gives_up_at_once() -> None:
    desk = Desk()
    x = desk.submit(n=2, policy="dead_letter")
    assert desk.fail(desk.reserve(), "no good", retry=False) == ["dead"]
    assert desk.dead() == [(x, 0)] and desk.show(x).state == "active"


def test_fail_fast_skips_the_rest_and_keeps_the_first_failing_chunk_and_error() -> None:
    desk = Desk()
    x = desk.submit(n=5)
    held = desk.reserve(4)
    desk.complete(some(held, (x, 0)))
    assert desk.fail(some(held, (x, 2)), "two broke", retry=False) == ["dead"]
    assert desk.fail(some(held, (x, 1)), "one broke", retry=False) == ["ended"]
    for _ in range(2):
        shown = desk.show(x)
        assert (shown.state, shown.done, shown.failed) == ("failed", 1, 1)
        assert (shown.error, shown.error_index) == ("two broke", 2)
        assert desk.reserve(9).spans == [], "the rest is skipped"
        desk.restart()
    assert desk.complete(some(held, (x, 3))) == ["ended"]


def test_the_first_failing_chunk_and_error_are_kept_when_others_follow() -> None:
    desk = Desk()
    x = desk.submit(n=4, policy="dead_letter")
    held = desk.reserve(4)
    for index in (2, 1, 3):
        desk.fail(some(held, (x, index)), f"{index} broke", retry=False)
        desk.restart()
        assert (desk.show(x).error, desk.show(x).error_index) == ("2 broke", 2)


def test_dead_letter_goes_on_with_the_rest() -> None:
    desk = Desk()
    x = desk.submit(n=3, policy="dead_letter")
    desk.fail(desk.reserve(), "first", retry=False)
    assert chunks(desk.reserve(9)) == [(x, 1), (x, 2)]
    (mark,) = desk.call(ListDead())
    assert (mark.submission, mark.index, mark.attempts, mark.error, mark.at) == (x, 0, 1, "first", desk.now)


def test_a_submission_has_its_own_attempts_max_else_the_queues() -> None:
    desk = Desk()
    desk.configure(attempts_max=2)
    own, queues = desk.submit(n=1, attempts_max=1), desk.submit(n=1)
    held = desk.reserve(2, "OldestFirst")
    assert desk.fail(held, delay=0) == ["dead", "retrying"]
    assert (desk.show(own).state, desk.show(queues).state) == ("failed", "active")


def test_an_error_text_is_cut_and_need_not_be_unicode() -> None:
    desk = Desk()
    x = desk.message(attempts_max=1)
    desk.fail(desk.reserve(), "\udcff" + "é" * 5000)
    error = desk.show(x).error
    assert error.startswith("?é") and len(error.encode()) <= 4096
