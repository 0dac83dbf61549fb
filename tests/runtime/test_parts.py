"""The small parts of the runtime, each on its own."""

from __future__ import annotations

import threading
import time

import pytest

from fairway.engine.commands import Accepted, Reserve, SetWeight, Stats
from fairway.errors import Fenced, OurError, QueueHeld
from fairway.model.submission import Described, Offer
from fairway.runtime.bell import Bell
from fairway.runtime.clock import Clock
from fairway.runtime.numbers import Numbers
from fairway.runtime.payloads import Payloads
from fairway.runtime.pending import Pending, copy_of, ours


def test_numbers_rise_and_received_never_skips_one() -> None:
    numbers = Numbers(9)
    calls = [numbers.call(SetWeight("a", 1)) for _ in range(5)]
    assert [(call.client, call.number, call.received) for call in calls] == [(9, n, 0) for n in range(1, 6)]
    for i, received in ((1, 0), (0, 2), (4, 2), (3, 2), (2, 5)):
        numbers.answered(calls[i])
        assert numbers.received == received
    assert numbers.call(SetWeight("a", 1)).received == 5
    numbers.answered(Numbers(8).call(SetWeight("a", 1)))  # of a client that was forgotten
    assert numbers.received == 5


def test_reads_and_waits_have_no_number() -> None:
    assert Numbers.needed(SetWeight("a", 1))
    assert Numbers.needed(Reserve(1))
    assert not Numbers.needed(Reserve(1, wait_seconds=1.0))
    assert not Numbers.needed(Stats())


def test_payloads_leave_when_there_are_too_many() -> None:
    payloads = Payloads(10_000)
    offers = [Offer(Described("", 1), (b"x" * 800,)) for _ in range(30)]
    payloads.add(Accepted(list(range(30)), [False] * 30), offers)
    assert len(payloads) == 10
    found, missing = payloads.find([(29, 0), (0, 0)])
    assert list(found) == [(29, 0)]
    assert missing == [(0, 0)]
    payloads.add(Accepted([77], [True]), offers[:1])
    assert payloads.find([(77, 0)]) == ({}, [(77, 0)])


def test_a_bell_wakes_its_sleeper_and_forgets_no_ring() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    bell.wait(60)
    bell.wait(60)  # still rung until it is heard
    bell.heard()
    started = time.monotonic()
    bell.wait(0.05)
    assert time.monotonic() - started >= 0.04
    sleeper = threading.Thread(target=bell.wait, args=(float("inf"),))
    sleeper.start()
    bell.ring()
    sleeper.join(30)
    assert not sleeper.is_alive()
    bell.heard()
    bell.heard()
    bell.ring()


def test_the_clock_does_not_follow_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    before = clock.now()
    assert abs(before - time.time()) < 60
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert clock.now() >= before


@pytest.mark.parametrize("ahead", [-50.0, 0.0, 50.0])
def test_the_clock_goes_on_from_what_is_stored_and_not_from_before(
    monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """By the rule that the simulator's owners follow too: the later of the two, and then what is counted."""
    counted = [1000.0]
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: counted[0])
        patch.setattr(time, "time", lambda: 5000.0)
        clock = Clock()
        for n in range(3):  # engines come and go; only the first may be ahead of the wall
            began = clock.now() + ahead if n == 0 else clock.now() - 1
            expected = max(clock.now(), began)
            clock.go_on_from(began)
            assert clock.now() == expected
            counted[0] += 7
            assert clock.now() == expected + 7


def test_the_clock_is_right_though_its_thread_had_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two looks at the clocks others may run."""
    passed = [0.0]
    waits = iter([0.5, 0.0, 0.5])

    def monotonic() -> float:
        return 100.0 + passed[0]

    def wall() -> float:
        told = 1_000_000.0 + passed[0]
        passed[0] += next(waits)
        return told

    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", monotonic)
        patch.setattr(time, "time", wall)
        assert Clock().now() == 1_000_000.0 + passed[0]


def test_an_answer_leaves_once() -> None:
    told: list[object] = []
    pending = Pending(Stats(), lambda p: told.append(p.reply))
    pending.leave("first", None)
    pending.leave("second", None)
    assert told == ["first"]


def test_errors_are_copied_for_each_caller() -> None:
    error = QueueHeld("text", pid=7)
    copy = copy_of(error)
    assert copy is not error
    assert (type(copy), str(copy), copy.details, copy.__cause__) == (QueueHeld, "text", {"pid": 7}, error)
    assert ours(fenced := Fenced()) is fenced
    assert isinstance(ours(ZeroDivisionError("x")), OurError)
