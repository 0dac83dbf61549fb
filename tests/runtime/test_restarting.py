"""A process that died is back soon, and one that keeps dying as it begins is started ever less often."""

from __future__ import annotations

import errno
import time
from types import SimpleNamespace

import pytest

from fairway import limits
from fairway.runtime.restarting import Restarting
from fairway.server.processes import _Child


def pause_after(one: Restarting, now: float) -> float:
    """How long it is not started again after a death at `now`, to a tenth of a second."""
    one.died(now)
    assert one.awaited and not one.due(now)
    waited = next(n / 10 for n in range(1, 200) if one.due(now + n / 10 + 1e-6))
    one.started(now + waited)
    assert not one.awaited
    return waited


def test_who_keeps_dying_as_it_begins_is_started_ever_less_often() -> None:
    one, now, pauses = Restarting(0.0), 0.0, []
    for _ in range(8):
        now += 1.0
        pauses.append(pause_after(one, now))
        now += pauses[-1]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert pauses[-1] == limits.RESTART_SECONDS_MAX


def test_who_had_come_to_work_is_back_at_once_however_often_it_dies() -> None:
    one, now = Restarting(0.0), 0.0
    for _ in range(5):
        now += limits.RESTART_STEADY_SECONDS + 0.1
        waited = pause_after(one, now)
        assert waited == limits.RESTART_SECONDS
        now += waited


def test_one_long_life_forgives_the_early_deaths_before() -> None:
    one = Restarting(0.0)
    assert [pause_after(one, 1.0), pause_after(one, 2.0)] == [0.2, 0.4]
    assert pause_after(one, 10.0) == limits.RESTART_SECONDS


def test_who_cannot_be_started_is_tried_again_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESTART_SECONDS", 0.25)  # its sums are exact
    one, now, tries = Restarting(0.0), 100.0, list[float]()

    def start() -> str:
        tries.append(now - 100.0)
        if len(tries) < 4:
            raise BlockingIOError(errno.EAGAIN, "no more processes")
        return "lives"

    one.died(now)
    while (found := one.start(now, start)) is None:
        now += 0.25
    assert found == "lives" and not one.awaited
    assert tries == [0.25, 0.75, 1.75, 3.75]


def test_a_process_of_a_server_that_cannot_be_started_again_ends_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the whole server ended because one of its processes died while the machine was out of processes."""
    monkeypatch.setattr(limits, "RESTART_SECONDS", 0.01)
    starts, buried = list[SimpleNamespace](), list[int]()

    def start() -> SimpleNamespace:
        starts.append(SimpleNamespace(pid=len(starts), returncode=1, poll=lambda: 1))
        if len(starts) == 2:
            raise BlockingIOError(errno.EAGAIN, "no more processes")
        return starts[-1]

    child = _Child("http 0", start, buried.append)  # type: ignore[arg-type]
    until = time.monotonic() + 10
    while child.process is starts[0]:
        child.look()
        time.sleep(0.001)
        assert time.monotonic() < until
    assert (child.process, buried) == (starts[2], [0])
