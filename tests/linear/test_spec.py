"""The checker of concurrent histories: what has an order passes, what has none is found, and time counts."""

from __future__ import annotations

from math import inf

import pytest

from fairway.testing.history import BadHistory, Begin, End, Header, History
from fairway.testing.linear.checker import check_history
from fairway.testing.linear.search import find_order
from fairway.testing.linear.spec import LEASED, WAITING, Op, Pick, Spec, shown

ONE, TWO = (7, 1), (7, 2)
LONG = 1000.0


def reserve(begin: float, end: float, receipt: tuple[int, int], attempt: int = 1, until: float = LONG) -> Op:
    return Op("reserve", begin, end, picks=(Pick(0, receipt, attempt),), deadline=until)


def settle(
    verb: str, begin: float, end: float, receipt: tuple[int, int], answer: str | None, **more: float
) -> Op:
    return Op(verb, begin, end, answer, receipt=receipt, **more)  # type: ignore[arg-type]


def orderly(*ops: Op, total: int = 1, attempts_max: int = 5, policy: str = "dead_letter") -> bool:
    """Whether the calls have an order; the submission is there from the beginning."""
    return find_order(Spec(total, attempts_max, policy), [Op("submit", -2, -1), *ops]) is None


def test_calls_one_after_the_other_have_their_order() -> None:
    assert orderly(reserve(0, 1, ONE), settle("complete", 2, 3, ONE, "done"))
    assert orderly(reserve(0, 1, ONE), settle("release", 2, 3, ONE, "released"), reserve(4, 5, TWO))
    assert not orderly(settle("complete", 2, 3, ONE, "done"))


def test_a_chunk_has_one_holder_at_a_time() -> None:
    assert not orderly(reserve(0, 1, ONE), reserve(2, 3, TWO))
    assert not orderly(reserve(0, 3, ONE), reserve(1, 2, TWO)), "nor if the calls overlap"
    assert orderly(reserve(0, 3, ONE, until=2.0), reserve(1, 4, TWO, attempt=2)), "unless the lease ran out"


def test_overlapping_calls_may_have_come_in_either_order() -> None:
    late, early = (
        settle("release", 2, 5, ONE, "released"),
        settle("renew", 3, 4, ONE, "renewed", deadline=LONG),
    )
    assert orderly(reserve(0, 1, ONE), late, early)
    after = settle("renew", 6, 7, ONE, "renewed", deadline=LONG)
    assert not orderly(reserve(0, 1, ONE), late, after), "but not after one that had ended"


def test_only_the_latest_receipt_completes() -> None:
    first, second = reserve(0, 1, ONE, until=2.0), reserve(5, 6, TWO, attempt=2)
    assert orderly(first, settle("complete", 3, 4, ONE, "done")), "it ran out, and nobody took the chunk"
    assert orderly(first, second, settle("complete", 7, 8, ONE, "lost"))
    assert not orderly(first, second, settle("complete", 7, 8, ONE, "done"))
    assert orderly(
        first, second, settle("complete", 5.5, 8, ONE, "lost"), settle("complete", 9, 10, TWO, "done")
    )


def test_a_lease_lasts_until_its_deadline_and_no_longer() -> None:
    held = reserve(0, 1, ONE, until=5.0)
    assert orderly(held, settle("renew", 4, 4.5, ONE, "renewed", deadline=LONG))
    assert not orderly(held, settle("renew", 6, 7, ONE, "renewed", deadline=LONG))
    assert orderly(held, settle("renew", 4, 6, ONE, "lost")), "it may have come after the deadline"
    assert not orderly(held, settle("renew", 3, 4, ONE, "lost"))
    assert not orderly(held, reserve(3, 4, TWO, attempt=2)) and orderly(held, reserve(4, 6, TWO, attempt=2))
    assert not orderly(held, reserve(6, 7, TWO, attempt=1)), "a lease that ran out counts as an attempt"


def test_a_lease_is_as_long_as_was_asked_for() -> None:
    def held(until: float) -> Op:
        return Op("reserve", 0, 1, picks=(Pick(0, ONE, 1),), deadline=until, seconds=5.0)

    def renewed(until: float) -> bool:
        renew = settle("renew", 2, 3, ONE, "renewed", deadline=until, seconds=9.0)
        return orderly(reserve(0, 1, ONE), renew)

    assert orderly(held(5.0)) and orderly(held(6.0)), "from any moment of the call"
    assert not orderly(held(4.9)) and not orderly(held(6.1))
    assert renewed(11.0) and renewed(12.0) and not renewed(10.9) and not renewed(12.1)
    refused = settle("renew", 2, 3, ONE, "lost", seconds=9.0)
    assert not orderly(reserve(0, 1, ONE), refused), "who holds it is not told that it is lost"
    assert orderly(reserve(0, 1, ONE, until=1.5), refused)
    unseen = Op("renew", 2, inf, receipt=ONE, seconds=9.0)
    assert orderly(reserve(0, 1, ONE, until=3.0), unseen, settle("release", 8, 9, ONE, "released"))


def test_nobody_is_told_that_there_is_no_work_when_there_is() -> None:
    empty = Op("reserve", 2, 3, short=True)
    assert not orderly(empty)
    assert orderly(reserve(0, 1, ONE), empty)
    assert not orderly(reserve(0, 1, ONE, until=1.5), empty), "what ran out can be handed out"
    resting = settle("fail", 1, 2, ONE, "retrying", seconds=3.0)
    assert orderly(reserve(0, 1, ONE), resting, Op("reserve", 3, 4, short=True))
    assert not orderly(reserve(0, 1, ONE), resting, Op("reserve", 6, 7, short=True))
    assert not orderly(reserve(0, 1, ONE), resting, reserve(3, 3.5, TWO, attempt=2)), "nor before its time"


def test_an_end_is_final() -> None:
    cancel = Op("cancel", 2, 3, "cancelled")
    assert orderly(reserve(0, 1, ONE), cancel, settle("complete", 4, 5, ONE, "ended"))
    assert not orderly(reserve(0, 1, ONE), cancel, settle("complete", 4, 5, ONE, "done"))
    assert not orderly(cancel, reserve(4, 5, ONE))
    assert not orderly(cancel, Op("cancel", 4, 5, "cancelled"))
    done = settle("complete", 2, 3, ONE, "done")
    assert orderly(reserve(0, 1, ONE), done, Op("cancel", 4, 5, "already_ended"))
    assert not orderly(reserve(0, 1, ONE), done, Op("cancel", 4, 5, "cancelled"))
    assert not orderly(reserve(0, 1, ONE), done, Op("cancel", 4, 5, "already_ended"), total=2)
    assert orderly(reserve(0, 1, ONE), done, settle("complete", 4, 5, ONE, "already"))


def test_attempts_end_in_a_dead_chunk_and_its_policy() -> None:
    held, failed = reserve(0, 1, ONE), settle("fail", 2, 3, ONE, "dead")
    assert not orderly(held, failed, attempts_max=2) and orderly(held, failed, attempts_max=1)
    look = Op("show", 4, 5, ("failed", 0, 1, 0))
    assert orderly(held, failed, look, attempts_max=1, policy="fail_fast", total=3)
    assert not orderly(held, failed, look, attempts_max=1, total=3)
    assert orderly(reserve(0, 1, ONE, until=2.0), Op("show", 4, 5, ("failed", 0, 1, 0)), attempts_max=1)


def test_the_leases_of_one_reservation_run_out_together() -> None:
    both = Op("reserve", 0, 1, picks=(Pick(0, ONE, 1), Pick(1, ONE, 1)), deadline=2.0)
    for dead, good in ((2, True), (1, False)):
        look = Op("show", 4, 5, ("failed", 0, dead, 0))
        assert orderly(both, look, total=3, attempts_max=1, policy="fail_fast") is good


def test_a_call_without_an_answer_may_have_happened_at_any_later_time_or_never() -> None:
    lost = Op("complete", 2, inf, receipt=ONE)
    assert orderly(reserve(0, 1, ONE), lost, Op("show", 8, 9, ("completed", 1, 0, 0)))
    assert orderly(reserve(0, 1, ONE), lost, Op("show", 8, 9, ("active", 0, 0, 1)))
    shown_late = (Op("show", 3, 4, ("active", 0, 0, 1)), Op("show", 8, 9, ("completed", 1, 0, 0)))
    assert orderly(reserve(0, 1, ONE), lost, *shown_late)
    assert not orderly(lost, reserve(3, 4, ONE), Op("show", 0, 1, ("completed", 1, 0, 0))), (
        "but not before it began"
    )
    unseen = Op("reserve", 0, inf, request=3, most=1)
    assert orderly(unseen, Op("reserve", 2, 3, short=True)), "it may hold the chunk"
    assert orderly(unseen, Op("reserve", 2, 3, short=True), reserve(4, 5, ONE, attempt=1)), (
        "and give it back uncounted"
    )


def test_the_first_state_of_a_submission_is_shown_as_it_is() -> None:
    spec = Spec(2, 5, "fail_fast")
    (fresh,) = spec.after(spec.first, Op("submit", 0, 1), 0, 1)
    assert [chunk.kind for chunk in fresh.chunks] == [WAITING, WAITING] and shown(fresh) == (
        "active",
        0,
        0,
        0,
    )
    (held,) = spec.after(fresh, reserve(2, 3, ONE), 2, 3)
    assert held.chunks[0].kind == LEASED and shown(held) == ("active", 0, 0, 1)


def test_a_history_with_calls_that_the_specification_does_not_know_is_refused() -> None:
    for op, args in (
        ("pause", {"on": True}),
        ("reserve", {"max": 1, "consumer": "nightly", "seq": 1}),
    ):
        history = History([Header(), Begin(0.0, 1, "one", op, args), End(1.0, 1, {"spans": []})])
        with pytest.raises(BadHistory):
            check_history(history)
