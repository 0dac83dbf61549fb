"""A kill counts only if it met a call: one that was under way at that moment, and did not merely wait."""

from __future__ import annotations

from fairway.testing.history import Header, Recorder
from tests.kill.counting import on_a_call


def test_a_kill_counts_only_while_a_call_is_under_way() -> None:
    recorder = Recorder(Header())
    put = recorder.begin(1.0, "ann", "put", {})
    recorder.end(2.0, put, 1)
    waiting = recorder.begin(3.0, "ann", "reserve", {"wait_seconds": 2.0})
    recorder.end(5.0, waiting, {"spans": []})
    assert [on_a_call(recorder.history(), [moment]) for moment in (0.5, 1.5, 2.5, 4.0)] == [0, 1, 0, 0]


def test_a_call_that_nobody_answered_meets_no_later_kill() -> None:
    recorder = Recorder(Header())
    recorder.begin(1.0, "ann", "put", {})
    put = recorder.begin(2.0, "bob", "put", {})
    recorder.end(3.0, put, 1)
    assert on_a_call(recorder.history(), [2.5, 9.0]) == 1
