"""Leases: fenced records that outlive processes, and receipts that are good exactly once."""

from __future__ import annotations

import pytest

from fairway.engine.commands import Call, Complete, Part
from fairway.errors import BadArgument, TooLarge
from fairway.limits import CALL_CHUNKS_MAX
from fairway.model.page import results_of
from tests.engine.desk import Desk, attempts, chunks, parts, small_journal, small_pages, some


@pytest.mark.parametrize("groups", [0, 1, 512])
def test_a_lease_survives_a_restart(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    small_journal(monkeypatch, groups, 256)
    desk = Desk()
    x = desk.submit(n=5)
    held = desk.reserve(3, lease=600)
    for rest in ([(x, 3), (x, 4)], [], []):
        desk.restart(down=1)
        assert chunks(desk.reserve(5, lease=600)) == rest, "what is leased is not handed out"
        assert desk.stats().chunks_leased == 5
    desk.pass_time(590)
    assert desk.reserve(5).spans == [], "nothing comes back before its time"
    desk.pass_time(60)
    again = desk.reserve(5)
    assert sorted(chunks(again)) == [(x, i) for i in range(5)] and attempts(again) == [2] * 5
    assert held.count != again.count


@pytest.mark.parametrize(
    ("lease", "left", "lives"), [(60, 0.5, 30), (60, 50, 50), (10, 0.5, 10), (600, -500, 30)]
)
def test_a_restored_lease_lives_at_least_min_of_its_time_and_30_seconds(lease, left, lives) -> None:
    desk = Desk()
    x = desk.submit()
    desk.reserve(lease=lease)
    desk.restart(down=lease - left)
    desk.pass_time(lives - 0.01)
    assert desk.reserve().spans == []
    desk.pass_time(0.02)
    assert chunks(desk.reserve()) == [(x, 0)]


def test_attempts_survive_a_restart() -> None:
    desk = Desk()
    x = desk.submit(n=2, attempts_max=4)
    desk.fail(desk.reserve(), delay=0)
    desk.restart()
    assert attempts(desk.reserve(2, lease=1)) == [2, 1]
    desk.pass_time(2)
    desk.restart()
    last = desk.reserve(2)
    assert (chunks(last), attempts(last)) == ([(x, 0), (x, 1)], [3, 2])


def test_a_completion_with_the_old_receipt_is_accepted_after_a_restart() -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(2)
    desk.restart(down=5)
    assert desk.complete(some(held, (x, 0))) == ["done"]
    desk.restart()
    assert desk.complete(held) == ["already", "done"]
    assert desk.show(x).done == 2


def test_a_chunk_that_kills_its_process_is_dead_after_attempts_max_restarts() -> None:
    desk = Desk()
    x = desk.message(attempts_max=3)
    deliveries = 0
    while desk.show(x).state == "active":
        got = desk.reserve(lease=60)
        deliveries += len(chunks(got))
        assert attempts(got) == [deliveries]
        desk.restart(down=3600)
        desk.pass_time(31)
    assert deliveries == 3
    assert desk.show(x).failed == 1 and desk.show(x).state == "failed"


@pytest.mark.parametrize("restart", [False, True])
def test_an_expired_receipt_is_accepted_while_nobody_took_the_chunk(restart: bool) -> None:
    desk = Desk()
    x = desk.submit(n=2)
    held = desk.reserve(2, lease=5)
    desk.pass_time(10)
    assert desk.stats().chunks_leased == 0
    if restart:
        desk.restart()
    assert desk.complete(some(held, (x, 0))) == ["done"]
    assert chunks(desk.reserve(2)) == [(x, 1)], "a chunk that is done is not handed out"


@pytest.mark.parametrize("restart", [False, True])
def test_no_result_is_accepted_after_a_later_reservation_was_handed_out(restart: bool) -> None:
    desk = Desk()
    x = desk.submit(n=1)
    first = desk.reserve(lease=5)
    desk.pass_time(10)
    second = desk.reserve(lease=5)
    if restart:
        desk.restart()
    assert desk.complete(first) == ["lost"]
    desk.pass_time(60)
    assert desk.complete(first) == ["lost"], "nor after the later one expired"
    assert desk.complete(second) == ["done"]
    assert desk.complete(first) == ["ended"]
    assert [(win.epoch, win.reservation) for win in desk.winners(x)] == [(second.epoch, second.count)]


@pytest.mark.parametrize("later", ["fail", "release"])
def test_a_receipt_of_an_earlier_reservation_stays_lost_after_the_later_one_was_given_back(
    later: str,
) -> None:
    desk = Desk()
    desk.submit(n=1)
    first = desk.reserve(lease=5)
    desk.pass_time(10)
    getattr(desk, later)(desk.reserve())
    assert desk.complete(first) == ["lost"]
    desk.restart()
    assert desk.complete(first) == ["lost"]


@pytest.mark.parametrize("ended_by", ["fail", "release"])
def test_a_receipt_that_was_given_back_is_lost(ended_by: str) -> None:
    desk = Desk()
    desk.submit(n=1)
    held = desk.reserve()
    getattr(desk, ended_by)(held)
    for _ in range(2):
        assert desk.complete(held) == desk.fail(held) == desk.renew(held) == desk.release(held) == ["lost"]
        desk.restart()


@pytest.mark.parametrize("results", [False, True])
def test_a_receipt_given_twice_in_one_call_is_told_what_it_would_be_told_in_two(results: bool) -> None:
    desk = Desk()
    x, held = desk.submit(n=9), desk.reserve(6)
    other = desk.reserve(3, lease=5)
    desk.pass_time(10)

    def complete(given: list[Part]) -> list[str]:
        bodies = [b"%d" % n for n in range(sum(n for part in given for _, _, n in part.spans))]
        return desk.complete(given, bodies if results else None)

    assert complete(some(held, (x, 0), (x, 0), (x, 2), (x, 3), (x, 0), (x, 3), (x, 4))) == [
        "done", "already", "done", "done", "already", "already", "done",
    ]  # fmt: skip
    assert complete([*some(held, (x, 1)), *some(other, (x, 6)), *some(held, (x, 1))]) == [
        "done", "done", "already",
    ]  # fmt: skip
    late = desk.reserve()
    again, lost = (x, 8), chunks(late)[0]
    assert complete(some(other, again, lost, again, lost)) == ["done", "lost", "already", "lost"]
    assert complete([*some(held, (x, 5), (x, 5)), *parts(late), *parts(late)]) == [
        "done", "already", "done", "already",
    ]  # fmt: skip
    assert desk.show(x).state == "completed" and desk.stats().chunks_leased == 0
    kept = {i: body for page in desk.store.results(x, 0, 9) for i, body in results_of(page.body)}
    assert kept == (
        {0: b"0", 2: b"2", 3: b"3", 4: b"6", 1: b"0", 6: b"1", 8: b"0", 5: b"0", 7: b"2"} if results else {}
    )


@pytest.mark.parametrize("page", [4, 65536])
def test_the_same_receipt_gets_the_same_answer(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    small_pages(monkeypatch, page)
    desk = Desk()
    x = desk.submit(n=10)
    held, other = desk.reserve(7), desk.reserve(3)
    assert desk.complete(some(held, (x, 0), (x, 5))) == ["done", "done"]
    assert desk.complete(some(held, (x, 5), (x, 0))) == ["already", "already"]
    assert desk.complete(some(other, (x, 5))) == ["lost"], "another receipt is no proof"
    desk.restart()
    assert desk.complete(held) == ["already", *["done"] * 4, "already", "done"]
    desk.complete(other)
    assert desk.show(x).state == "completed"
    for _ in range(3):
        assert desk.complete(held) == ["already"] * 7, (
            "also after the end, also when it left memory, also restarted"
        )
        assert desk.complete(some(other, (x, 0), (x, 9))) == ["ended", "already"]
        desk.submit("z")
        desk.restart()


def test_the_same_receipt_gets_the_same_answer_while_leases_of_an_ended_submission_linger(
    monkeypatch,
) -> None:
    small_pages(monkeypatch, 4)
    desk = Desk()
    x = desk.submit(n=10)
    held = desk.reserve(6)
    desk.complete(some(held, (x, 0), (x, 5)))
    desk.cancel(x)
    for _ in range(2):
        assert desk.complete(some(held, (x, 0), (x, 5))) == ["already", "already"]
        assert sorted(win.start for win in desk.winners(x)) == [0, 5]
        desk.restart()
    assert desk.redrive(x).done == 2
    assert desk.complete(held) == ["already", *["done"] * 4, "already"]
    assert len(desk.drain()) == 4 and desk.show(x).done == 10


@pytest.mark.parametrize("cut", [False, True])
def test_the_answer_that_lets_an_ended_submission_leave_memory_does_not_change_the_next(cut: bool) -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(3)
    desk.complete(some(held, (x, 2)))
    desk.cancel(x)
    desk.submit("z"), desk.submit("z")
    given = some(held, (x, 0), (x, 1), (x, 2)) if cut else parts(held)
    assert desk.complete(given) == ["ended", "ended", "already"]
    for _ in range(3):
        desk.submit("z")
    assert x not in desk.state.recent_ends and x not in desk.state.runs, "then it does leave"


def test_a_completion_does_not_count_on_an_end_that_is_kept_for_an_earlier_lookup() -> None:
    """One of its submissions left memory long ago; the other ended lately, and is stored."""
    desk = Desk()
    x, y = desk.submit(), desk.submit()
    first, second = desk.reserve(1), desk.reserve(1)
    desk.complete(first)
    desk.submit("z"), desk.submit("z")
    earlier = desk.engine.lookups(Call(Complete(parts(first))))
    assert earlier is not None
    desk.complete(second)
    call = Call(Complete(parts(first) + parts(second)))
    later = desk.engine.lookups(call)
    desk.engine.looked(earlier)
    desk.submit("z")
    assert y not in desk.state.recent_ends, "it was let go"
    draft = desk.engine.execute(call, desk.now, later.read(desk.store))
    assert [outcome for outcome, _ in draft.reply.outcomes] == ["already"], (x, y)


def test_an_attempt_is_never_issued_twice() -> None:
    desk = Desk()
    desk.submit(n=50)
    seen = set()
    for step in range(12):
        held = desk.reserve(lease=5)
        assert (held.epoch, held.count) not in seen
        seen.add((held.epoch, held.count))
        if step % 3 == 1:
            desk.restart()
        elif step % 3 == 2:
            desk.power_loss()


def test_a_forged_receipt_is_lost() -> None:
    desk = Desk()
    x = desk.submit(n=1)
    held = desk.reserve()
    forged = [
        (held.epoch, held.count, held.seal ^ 1),
        (held.epoch ^ 1, held.count, held.seal),
        (2**70, -1, 0),
        (-5, 2**80, 7),
    ]
    for epoch, count, seal in forged:
        bad = [Part(epoch, count, seal, [(x, 0, 1)])]
        assert desk.complete(bad) == desk.fail(bad) == desk.renew(bad) == desk.release(bad) == ["lost"]
    assert desk.complete([Part(held.epoch, held.count, held.seal, [(2**80, 0, 1), (x, 7, 1)])]) == [
        "lost",
        "lost",
    ]
    assert desk.complete(held) == ["done"]


def test_complete_has_an_outcome_per_chunk() -> None:
    desk = Desk()
    x, y = desk.submit(n=3), desk.submit("b", 2)
    first = desk.reserve(5, "OldestFirst", lease=5)
    desk.complete(some(first, (x, 1)))
    desk.pass_time(10)
    second = desk.reserve(1, "OldestFirst")
    desk.cancel(y)
    assert desk.complete([*parts(first), *parts(second)]) == [
        "lost",
        "already",
        "done",
        "ended",
        "ended",
        "done",
    ]
    assert desk.show(x).state == "completed"


def test_results_go_with_their_chunks_whatever_the_outcomes_of_the_others() -> None:
    desk = Desk()
    x = desk.submit(n=4)
    held = desk.reserve(4)
    forged = Part(held.epoch, held.count, held.seal ^ 1, [(x, 0, 2)])
    real = some(held, (x, 3), (x, 1))
    assert desk.complete([forged, *real], [b"no", b"no", b"three", b"one"]) == [
        "lost",
        "lost",
        "done",
        "done",
    ]
    assert [results_of(page.body) for page in desk.store.results(x, 0, 9)] == [[(1, b"one"), (3, b"three")]]


def test_a_chunk_is_eligible_again_as_soon_as_its_lease_ended() -> None:
    desk = Desk()
    desk.submit(n=2)
    desk.reserve(lease=7), desk.reserve(lease=9)
    assert desk.engine.next_due == desk.now + 7
    desk.pass_time(7)
    assert len(chunks(desk.reserve(9, lease=1000))) == 1
    assert desk.engine.next_due == desk.now + 2


@pytest.mark.parametrize("answer", ["complete", "fail", "release", "renew", "expire"])
@pytest.mark.parametrize("restart", [False, True])
def test_leases_of_ended_submissions_count_until_answered(answer: str, restart: bool) -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(2)
    desk.cancel(x)
    if restart:
        desk.restart()
    assert (desk.stats().chunks_leased, desk.stats().chunks_waiting) == (2, 0)
    assert (desk.show(x).state, desk.show(x).leased) == ("cancelled", 2)
    if answer == "expire":
        desk.pass_time(100)
        assert desk.stats().chunks_leased == 0
        return
    assert getattr(desk, answer)(some(held, (x, 0))) == ["ended"]
    assert desk.stats().chunks_leased == 1
    if restart:
        desk.restart()
    assert desk.stats().chunks_leased == 1
    assert getattr(desk, answer)(held)[1] == "ended"
    assert desk.stats().chunks_leased == 0


def test_forget_leases_gives_a_clean_slate() -> None:
    desk = Desk()
    x, y = desk.submit(n=3, attempts_max=1), desk.submit("b", 2)
    held = desk.reserve(5, "OldestFirst")
    desk.cancel(y)
    desk.restart(forget=True)
    assert desk.stats().chunks_leased == 0
    assert desk.complete(some(held, (x, 0), (y, 0))) == ["lost", "ended"]
    again = desk.reserve(5)
    assert (chunks(again), attempts(again)) == ([(x, 0), (x, 1), (x, 2)], [1, 1, 1])
    desk.restart()
    assert desk.stats().chunks_leased == 3, "the slate was cleaned once"


def test_power_loss_may_forget_leases_and_nothing_else() -> None:
    desk = Desk()
    x = desk.submit(n=4)
    desk.complete(desk.reserve(1))
    forgotten = desk.reserve(2)
    desk.power_loss()
    assert (desk.show(x).done, desk.show(x).leased) == (1, 0)
    again = desk.reserve(3)
    assert chunks(again) == [(x, 1), (x, 2), (x, 3)]
    assert desk.complete(forgotten) == ["lost", "lost"]
    assert desk.complete(again) == ["done"] * 3


def test_what_does_not_fit_into_one_call_is_refused() -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve()
    with pytest.raises(TooLarge):
        desk.complete([Part(held.epoch, held.count, held.seal, [(x, 0, CALL_CHUNKS_MAX + 1)])])
    for span in [(x, -1, 1), (x, 0, 0)]:
        with pytest.raises(BadArgument):
            desk.release([Part(held.epoch, held.count, held.seal, [span])])
    with pytest.raises(BadArgument):
        desk.call(Complete(parts(held), [b"1", b"2"]))
    for seconds in (0.0001, 8 * 86400, float("nan"), -1):
        with pytest.raises(BadArgument):
            desk.renew(held, seconds)
    assert desk.complete(held) == ["done"]


@pytest.mark.parametrize("verb", ["complete", "fail", "release", "renew"])
def test_a_lease_of_an_ended_submission_gets_the_same_answer_however_late(verb: str) -> None:
    desk = Desk()
    x = desk.submit(n=2)
    given = desk.reserve(2)
    desk.cancel(x)
    for _ in range(3):
        assert getattr(desk, verb)(given) == ["ended"] * 2
    desk.restart()
    assert getattr(desk, verb)(given) == ["ended"] * 2
