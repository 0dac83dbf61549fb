"""Named reservations: handed back unchanged until trimmed, fenced by the consumer's epoch."""

from __future__ import annotations

import msgspec
import pytest

from fairway.engine.commands import Complete, Consumers, Fail, Finish, Finished, Join, Reserve, Reserved
from fairway.engine.consumer import Consumer
from fairway.errors import (
    BadArgument,
    ConsumerFenced,
    LeaseLost,
    ReservationLapsed,
    ReservationOpen,
    SeqTrimmed,
    TooLarge,
)
from fairway.limits import CONSUMER_SILENT_SECONDS
from fairway.model.page import results_of
from tests.engine.desk import Desk, answer, attempts, chunks, small_journal, some, spread, through_windows


def test_the_same_seq_is_handed_back_unchanged_with_finished_chunks_included() -> None:
    desk = Desk()
    x, y = desk.submit("a", 3, info=b"a"), desk.submit("b", 5, info=b"b")
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1, 6)
    desk.complete(some(given, (x, 0), (y, 1)))
    for step in range(4):
        again = desk.named("c", epoch, 1, 2)
        assert (again.spans, again.epoch, again.count, again.seal) == (
            given.spans,
            given.epoch,
            given.count,
            given.seal,
        )
        assert {id: run.info for id, run in again.runs.items()} == {x: b"a", y: b"b"}
        if step == 1:
            desk.complete(some(given, (x, 1), (x, 2)))  # x ends
            desk.submit("z"), desk.submit("z")
        if step == 2:
            desk.restart()
    epoch = desk.join("c")
    assert desk.named("c", epoch, 1).spans == given.spans, (
        "nor does it shrink under a new epoch once completed"
    )
    assert desk.complete(given).count("already") == 4


def test_a_reservation_shrinks_only_before_its_first_completion() -> None:
    desk = Desk()
    x, y, z = desk.submit("a", 2), desk.submit("b", 2), desk.submit("c", 2)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    desk.cancel(y)
    shrunk = desk.named("c", epoch, 1)
    assert sorted(chunks(shrunk)) == [(x, 0), (x, 1), (z, 0), (z, 1)], "what ended elsewhere leaves"
    desk.complete(some(given, (x, 0)))
    desk.cancel(z)
    assert desk.named("c", epoch, 1).spans == shrunk.spans, "after its first completion nothing leaves"


def test_a_replay_under_a_new_epoch_halves_it_and_the_other_half_goes_back_uncounted() -> None:
    desk = Desk()
    x = desk.submit("a", 7, attempts_max=2)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    sizes = [len(chunks(given))]
    for _ in range(3):
        desk.restart()
        epoch = desk.join("c")
        half = desk.named("c", epoch, 1)
        assert desk.named("c", epoch, 1) == half, "the same epoch gets the same again"
        assert set(attempts(half)) == {1} and chunks(half) == [(x, i) for i in range(len(chunks(half)))]
        sizes.append(len(chunks(half)))
    assert sizes == [7, 4, 2, 1]
    back = desk.reserve(9)
    assert sorted(chunks(back)) == [(x, i) for i in range(1, 7)] and set(attempts(back)) == {1}


def test_a_reservation_of_one_chunk_counts_an_attempt_for_each_replay_and_ends_dead() -> None:
    desk = Desk()
    x = desk.submit("a", 1, policy="dead_letter", attempts_max=3)
    delivered = []
    for _ in range(5):
        epoch = desk.join("c")
        got = desk.named("c", epoch, 1)
        delivered += attempts(got)
        desk.restart()
    assert delivered == [1, 2, 3]
    assert (desk.show(x).state, desk.show(x).failed) == ("failed", 1)


def test_a_second_process_takes_over_and_the_first_is_refused() -> None:
    desk = Desk()
    desk.submit("a", 4)
    first = desk.join("c")
    desk.named("c", first, 1, 2)
    wait = desk.send(Reserve(9, consumer="c", consumer_epoch=first, seq=2, wait_seconds=100, strategy="Fair"))
    second = desk.join("c")
    assert second == first + 1
    for _ in range(2):
        with pytest.raises(ConsumerFenced):
            desk.named("c", first, 1)
        with pytest.raises(ConsumerFenced):
            desk.named("c", first, 9)
        with pytest.raises(ConsumerFenced):
            desk.trim("c", first, 1)
        desk.restart()
    with pytest.raises(ConsumerFenced):
        desk.named("never joined", 1, 1)
    assert answer(wait).spans, "what was there was handed out at once"
    assert chunks(desk.named("c", second, 1))


def test_a_waiting_process_that_is_fenced_hears_of_it() -> None:
    desk = Desk()
    first = desk.join("c")
    wait = desk.send(Reserve(1, consumer="c", consumer_epoch=first, seq=1, wait_seconds=100))
    desk.join("c")
    desk.submit()
    assert isinstance(wait.error, ConsumerFenced)
    assert len(chunks(desk.reserve(9))) == 1, "the work is still there"


def test_a_named_reserve_that_waited_is_told_what_it_got() -> None:
    desk = Desk()
    epoch = desk.join("c")
    wait = desk.send(Reserve(1, consumer="c", consumer_epoch=epoch, seq=1, wait_seconds=100))
    x = desk.submit(info=b"hello")
    assert answer(wait).runs[x].info == b"hello"
    assert desk.named("c", epoch, 1) == answer(wait)


def test_trim_forgets_finished_reservations_and_refuses_unfinished_ones() -> None:
    desk = Desk()
    x = desk.submit("a", 4)
    epoch = desk.join("c")
    one, two = desk.named("c", epoch, 1, 2), desk.named("c", epoch, 2, 2)
    desk.complete(one)
    with pytest.raises(ReservationOpen):
        desk.trim("c", epoch, 2)
    assert desk.named("c", epoch, 1).spans == one.spans, "a refused trim trims nothing"
    desk.trim("c", epoch, 1)
    desk.restart()
    for seq in (0, 1):
        with pytest.raises(SeqTrimmed):
            desk.named("c", epoch, seq)
    desk.trim("c", epoch, 2, complete=True)
    assert desk.show(x).state == "completed" and desk.complete(two) == ["already", "already"]
    assert desk.call(Consumers())[0].seqs == []


def test_a_trim_may_come_when_its_chunks_failed_or_went_back() -> None:
    desk = Desk()
    x = desk.submit("a", 3, policy="dead_letter")
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    desk.fail(some(given, (x, 0)), retry=False)
    desk.fail(some(given, (x, 1)), delay=5)
    desk.release(some(given, (x, 2)))
    desk.trim("c", epoch, 1)
    desk.pass_time(5)
    assert sorted(chunks(desk.reserve(9))) == [(x, 1), (x, 2)]


def test_a_reservation_lapses_after_its_consumer_was_silent() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    assert given.deadline == desk.now + CONSUMER_SILENT_SECONDS
    desk.pass_time(3000)
    desk.named("c", epoch, 1)
    desk.restart()
    desk.pass_time(CONSUMER_SILENT_SECONDS - 1)
    assert desk.stats().chunks_leased == 2, "asking again was a sign"
    desk.pass_time(2)
    again = desk.reserve(9)
    assert chunks(again) == [(x, 0), (x, 1)] and attempts(again) == [2, 2], "a lapse counts as an attempt"
    assert desk.named("c", epoch, 1).spans == [], "nothing of it is left"
    desk.trim("c", epoch, 1)


def test_a_renewal_is_a_sign_of_its_consumer() -> None:
    desk = Desk()
    desk.submit("a", 2)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    for _ in range(3):
        desk.pass_time(3000)
        assert desk.renew(given, 60) == ["renewed"] * 2
        desk.restart()
    desk.pass_time(CONSUMER_SILENT_SECONDS - 1)
    assert desk.stats().chunks_leased == 2
    desk.pass_time(2)
    assert desk.stats().chunks_leased == 0


def test_a_result_that_comes_after_the_lapse_counts_as_the_first_completion() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    desk.pass_time(CONSUMER_SILENT_SECONDS + 1)
    assert desk.complete(some(given, (x, 0))) == ["done"]
    desk.restart()
    assert desk.named("c", epoch, 1).spans == given.spans


@pytest.mark.parametrize("groups", [0, 1, 512])
def test_named_reservations_survive_restart_and_power_loss(
    monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    small_journal(monkeypatch, groups, 256)
    desk = Desk()
    x = desk.submit("a", 4)
    epoch = desk.join("c")
    desk.power_loss()
    given = desk.named("c", epoch, 1, 2)
    desk.power_loss()
    assert desk.named("c", epoch, 1) == given
    desk.renew(given, 100)
    for _ in range(3):
        desk.submit("z", 1)
        desk.restart()
    desk.complete(some(given, (x, 0)))
    desk.power_loss()
    assert desk.named("c", epoch, 1).spans == given.spans
    desk.complete(given)
    desk.trim("c", epoch, 1)
    desk.power_loss()
    with pytest.raises(SeqTrimmed):
        desk.named("c", epoch, 1)


def test_a_submission_stays_as_long_as_a_reservation_of_it_may_be_asked_for() -> None:
    desk = Desk()
    desk.configure(retention_seconds=0.0)
    x, y = desk.submit("a", 1), desk.submit("b", 1)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1, 1)
    desk.complete(given)
    desk.complete(desk.reserve())
    desk.submit("z"), desk.submit("z")
    assert desk.purge(x, y) == 1
    assert desk.named("c", epoch, 1) == given
    desk.pass_time(CONSUMER_SILENT_SECONDS + 1)
    assert desk.purge(x, y) == 1, "a silent consumer keeps nothing"


def test_a_consumer_needs_a_name() -> None:
    desk = Desk()
    for name in ("", "x" * 257, "é" * 129):
        with pytest.raises(BadArgument):
            desk.join(name)


def test_a_consumer_with_nothing_open_is_forgotten_in_the_end() -> None:
    desk = Desk()
    desk.register()
    epoch = desk.join("idle")
    desk.submit()
    desk.named("busy", desk.join("busy"), 1)
    desk.pass_time(9 * 86400)
    assert desk.join("idle") == epoch + 1
    for _ in range(4):
        desk.register()
        desk.pass_time(3 * 86400)
    desk.restart()
    assert set(desk.state.consumers) == {"busy"}


# -- a batch is settled whole


def finish(desk: Desk, epoch: int = 0, run: str = "", **told: object) -> Finished:
    return desk.call(Finish("c", epoch, run, **told))  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["epoch", "run"])
def test_a_batch_is_settled_whole_and_only_by_its_epoch_or_run(way: str) -> None:
    desk = Desk()
    x = desk.submit("a", 6, policy="dead_letter")
    epoch = desk.call(Join("c", "first"))
    given = desk.named("c", epoch, 1)
    who = {"epoch": epoch} if way == "epoch" else {"run": "first"}
    done = Complete(some(given, (x, 0), (x, 1)), None, True, 77)
    bad = Fail(some(given, (x, 2)), "no", retry=False)
    told = finish(desk, **who, completed=[done], failed=[bad], first=b"all", others=b"see")
    assert (spread(told.completed[0]), spread(told.failed[0]), told.rest) == (["done"] * 2, ["dead"], 3)
    desk.restart()
    shown = desk.show(x)
    assert (shown.done, shown.failed, shown.state) == (5, 1, "failed")
    pages = [results_of(page.body) for page in desk.store.results(x, 0, 9)]
    assert pages == [[(3, b"all"), (4, b"see"), (5, b"see")]]
    assert desk.named("c", epoch, 1).spans == given.spans, "it is handed back unchanged until it is trimmed"
    again = finish(desk, **who, completed=[done], failed=[bad], first=b"all")
    assert (spread(again.completed[0]), again.rest) == (["already"] * 2, 0)
    assert spread(again.failed[0]) in (["ended"], ["lost"])
    assert (told.before, again.before) == (0, 1), "a replay is told from a batch that has no chunk"
    desk.trim("c", epoch, 1)
    assert finish(desk, **who, first=b"all").before == 0


def test_every_submission_of_a_batch_gets_the_result_of_the_batch_once() -> None:
    desk = Desk()
    x, y = desk.submit("a", 3), desk.submit("b", 3)
    epoch = desk.join("c")
    desk.named("c", epoch, 1, 4)
    assert finish(desk, epoch, first=b"all", others=b"see", whole=True).rest == 4
    desk.named("c", epoch, 2, 1)
    desk.named("c", epoch, 3, 1)
    assert finish(desk, epoch, first=b"all", others=b"see", whole=True).rest == 2, (
        "two reservations, one batch"
    )
    desk.restart()
    found = [dict(results_of(page.body)) for id in (x, y) for page in desk.store.results(id, 0, 9)]
    assert [list(page.values()) for page in found] == [[b"all", b"see"], [b"all"], [b"all", b"see"], [b"all"]]


def test_a_batch_of_a_process_that_was_replaced_changes_nothing() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    first = desk.call(Join("c", "one"))
    given = desk.named("c", first, 1)
    desk.call(Join("c", "two"))
    done = Complete(some(given, (x, 0)))
    for who in ({"epoch": first}, {"run": "one"}, {"run": "three"}):
        with pytest.raises(ConsumerFenced):
            finish(desk, **who, completed=[done])
    with pytest.raises(BadArgument):
        finish(desk, completed=[done])
    with pytest.raises(ConsumerFenced):
        desk.call(Finish("nobody", 0, "two"))
    assert desk.show(x).done == 0 and desk.stats().chunks_leased == 2


def test_a_batch_completes_nothing_that_its_epoch_was_not_handed() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    desk.named("c", desk.join("c"), 1)
    epoch = desk.call(Join("c", "new"))
    assert finish(desk, epoch).rest == 0
    assert desk.show(x).done == 0
    kept = desk.named("c", epoch, 1)
    assert finish(desk, epoch).rest == len(chunks(kept)) == 1


def test_a_batch_that_names_a_chunk_of_another_is_refused() -> None:
    """The other was settled whole: what comes later for one of its chunks would be dropped without a word."""
    desk = Desk()
    x, y = desk.submit("a", 2), desk.submit("b", 2)
    epoch = desk.call(Join("c", "first"))
    one = desk.named("c", epoch, 1, 2)
    finish(desk, epoch)
    desk.trim("c", epoch, 1)
    two = desk.named("c", epoch, 2, 2)
    (old, new) = chunks(one)[0], chunks(two)[0]
    tenant = {x: "a", y: "b"}[old[0]]
    where = rf"chunk {old[1]} of submission {old[0]} \(tenant '{tenant}'\) is of no batch"
    late = some(one, old)
    for bad in (
        {"completed": [Complete(some(two, new)), Complete(late, [b"late"])]},
        {"completed": [Complete(some(two, new))], "failed": [Fail(late, "no")]},
    ):
        for who in ({"epoch": epoch}, {"run": "first"}):
            with pytest.raises(BadArgument, match=where) as caught:
                finish(desk, **who, **bad)
            assert caught.value.details["argument"] == [*bad][-1]
        desk.restart()
    assert desk.stats().chunks_leased == 2
    assert finish(desk, epoch, completed=[Complete(some(two, new))]).rest == 1


def test_a_batch_that_is_refused_changes_nothing() -> None:
    desk = Desk()
    x = desk.submit("a", 3)
    epoch = desk.join("c")
    given = desk.named("c", epoch, 1)
    good = Complete(some(given, (x, 0)))
    for bad in (
        {"completed": [good, Complete(some(given, (x, 1)), [b"one", b"two"])]},
        {"completed": [good], "failed": [Fail(some(given, (x, 1)), "no", delay_seconds=1e12)]},
        {"completed": [good] * 10_001},
        {"first": bytes(2**20), "others": bytes(2**26)},
        {"first": bytes(2**26 + 1)},
    ):
        with pytest.raises((BadArgument, TooLarge)):
            finish(desk, epoch, **bad)
    assert desk.show(x).done == 0


def test_a_batch_that_must_be_whole_is_refused_when_a_chunk_of_it_is_gone() -> None:
    desk = Desk()
    x, y = desk.submit("a", 2), desk.submit("b", 2)
    epoch = desk.join("c")
    desk.named("c", epoch, 1)
    desk.cancel(y)
    with pytest.raises(LeaseLost):
        finish(desk, epoch, whole=True, first=b"all")
    assert desk.show(x).done == 0
    epoch = desk.join("c")
    assert chunks(desk.named("c", epoch, 1)) == [(x, 0)], "what is left is halved"
    assert finish(desk, epoch, whole=True, first=b"all").rest == 1
    assert finish(desk, epoch, whole=True, first=b"all").rest == 0, "a replay of it is no loss"


def test_a_chunk_that_is_gone_is_missed_though_its_batch_was_asked_for_meanwhile() -> None:
    """A source asks for its batch from time to time, to show that it lives; its tasks have what they were given."""
    desk = Desk()
    x, y = desk.submit("a", 2), desk.submit("b", 2)
    epoch = desk.join("c")
    desk.named("c", epoch, 1)
    desk.cancel(y)
    desk.restart()
    assert chunks(desk.named("c", epoch, 1)) == [(x, 0), (x, 1)]
    with pytest.raises(LeaseLost):
        finish(desk, epoch, whole=True, first=b"all")
    assert desk.show(x).done == 0


def test_a_chunk_that_lost_its_neighbours_is_not_charged_for_them() -> None:
    desk = Desk()
    desk.configure(attempts_max=1)
    x = desk.submit("a", 2, policy="dead_letter")
    given = desk.named("c", epoch := desk.join("c"), 1)
    desk.fail(some(given, (x, 0)), "gone")
    desk.named("c", epoch, 1)
    epoch = desk.join("c")
    assert chunks(desk.named("c", epoch, 1)) == [(x, 1)]
    assert finish(desk, epoch, whole=True, first=b"all").rest == 1
    assert (desk.show(x).done, desk.show(x).failed) == (1, 1)


def test_a_dead_letter_says_what_its_consumer_ended_with() -> None:
    desk = Desk()
    desk.configure(attempts_max=2)
    x = desk.submit("a", 1, policy="dead_letter")
    desk.named("c", desk.join("c"), 1)
    for error in ("a first cause", "division by zero"):
        desk.restart()
        desk.named("c", desk.call(Join("c", "", error)), 1)
    shown = desk.show(x)
    assert shown.failed == 1 and shown.error.endswith("had this chunk; the last time: division by zero")


def test_a_replay_may_be_asked_for_unhalved() -> None:
    desk = Desk()
    x = desk.submit("a", 4)
    given = desk.named("c", desk.join("c"), 1)
    epoch = desk.join("c")
    again = desk.call(Reserve(9, consumer="c", consumer_epoch=epoch, seq=1, halve=False))
    assert again.spans == given.spans == [(x, 0, 4, 1)]


def test_back_offs_are_counted() -> None:
    desk = Desk()
    x = desk.submit("a", 3)
    given = desk.reserve(3)
    desk.fail(some(given, (x, 0), (x, 1)), delay=5)
    assert desk.stats().chunks_retrying == 2
    desk.restart()
    assert desk.stats().chunks_retrying == 2
    desk.pass_time(6)
    assert desk.stats().chunks_retrying == 0


# -- a reservation that lapsed


def whole(desk: Desk, epoch: int, seq: int) -> Reserved:
    """Asked for unhalved, as one asks whose sink may have the batch already."""
    return desk.call(Reserve(9, consumer="c", consumer_epoch=epoch, seq=seq, halve=False))


def lapsed(desk: Desk, n: int = 3) -> tuple[int, Reserved]:
    """A submission whose chunks a consumer held until it was silent for too long."""
    x = desk.submit("a", n, policy="dead_letter")
    given = whole(desk, desk.join("c"), 1)
    desk.pass_time(CONSUMER_SILENT_SECONDS + 1)
    return x, given


@through_windows
@pytest.mark.parametrize("way", ["at once", "restart", "power loss"])
def test_a_reservation_that_lapsed_is_never_handed_back_as_if_it_were_whole(way: str) -> None:
    desk = Desk()
    lapsed(desk)
    assert desk.stats().chunks_waiting == 3
    if way == "restart":
        desk.restart()
    if way == "power loss":
        desk.call(Join("another"))  # the lapse is synced with it
        desk.power_loss()
    epoch = desk.join("c")
    for _ in range(2):
        with pytest.raises(ReservationLapsed, match="3 chunks of seq 1"):
            whole(desk, epoch, 1)
    assert desk.stats().chunks_waiting == 3, "a refusal takes nothing"


@through_windows
@pytest.mark.parametrize("restart", [False, True])
def test_a_trim_completes_what_lapsed_and_nobody_took(restart: bool) -> None:
    desk = Desk()
    x, _ = lapsed(desk)
    desk.pause("a")  # a small window lets go of it
    for _ in range(9):
        desk.submit("z")
    if restart:
        desk.restart()
    epoch = desk.join("c")
    desk.trim("c", epoch, 1, complete=True)
    assert desk.show(x).state == "completed"
    assert desk.call(Consumers())[0].seqs == []


@through_windows
@pytest.mark.parametrize("became", ["leased", "done", "failed", "given back", "dead", "cancelled"])
def test_a_trim_does_not_complete_what_somebody_else_took(became: str) -> None:
    desk = Desk()
    x, given = lapsed(desk)
    if became == "cancelled":
        desk.cancel(x)
    else:
        other = desk.reserve()
        assert chunks(other) == [(x, 0)]
        if became == "done":
            desk.complete(other)
        if became in ("failed", "dead"):
            desk.fail(other, retry=became == "failed", delay=0.0)
        if became == "given back":
            desk.release(other)
    desk.restart()
    epoch, done = desk.join("c"), desk.show(x).done
    many = 3 if became == "cancelled" else 1
    for _ in range(2):
        with pytest.raises(ReservationLapsed, match=f"{many} chunks of seq 1"):
            desk.trim("c", epoch, 1, complete=True)
    assert desk.show(x).done == done, "a refused trim completes nothing"
    assert desk.complete(some(given, (x, 0))) == ["ended" if became == "cancelled" else "lost"]


def test_what_lapsed_leaves_the_reservation_of_who_asks_for_the_rest() -> None:
    desk = Desk()
    x, _ = lapsed(desk)
    assert desk.named("c", desk.join("c"), 1).spans == []
    desk.restart()
    epoch = desk.join("c")
    assert whole(desk, epoch, 1).spans == [], "it let go of them, and is whole again"
    again = whole(desk, epoch, 2)
    assert sorted(chunks(again)) == [(x, 0), (x, 1), (x, 2)]
    desk.trim("c", epoch, 1, complete=True)
    assert desk.show(x).done == 0, "they are another reservation's by now"
    desk.trim("c", epoch, 2, complete=True)
    assert desk.show(x).state == "completed"


def test_a_refused_trim_says_what_helps_also_where_something_was_completed_before_the_lapse() -> None:
    """Such a reservation lets go of no chunk, so that asking for it again changes nothing."""
    desk = Desk()
    x = desk.submit("a", 3)
    given = whole(desk, desk.join("c"), 1)
    desk.renew(some(given, (x, 1)), 3 * CONSUMER_SILENT_SECONDS)
    desk.complete(some(given, (x, 0)))
    desk.pass_time(CONSUMER_SILENT_SECONDS + 1)
    assert chunks(desk.reserve(9)) == [(x, 2)]
    epoch = desk.join("c")
    for refused in (lambda: whole(desk, epoch, 1), lambda: desk.trim("c", epoch, 1, complete=True)):
        with pytest.raises(ReservationLapsed, match="complete what it still has, then trim it without"):
            refused()
    assert desk.complete(desk.named("c", epoch, 1)) == ["already", "done", "lost"]
    desk.trim("c", epoch, 1)
    assert desk.show(x).done == 2


def test_a_late_result_of_each_chunk_that_lapsed_makes_the_reservation_whole() -> None:
    desk = Desk()
    x, given = lapsed(desk)
    epoch = desk.join("c")
    desk.complete(some(given, (x, 0), (x, 2)))
    with pytest.raises(ReservationLapsed, match="1 chunks of seq 1"):
        whole(desk, epoch, 1)
    desk.complete(some(given, (x, 1)))
    desk.restart()
    epoch = desk.join("c")
    assert whole(desk, epoch, 1).spans == given.spans
    desk.trim("c", epoch, 1, complete=True)


def test_a_part_that_was_renewed_lapses_later_than_its_silent_neighbours() -> None:
    """A part has a deadline of its own; what is left of the reservation is not the batch that was handed out."""
    desk = Desk()
    x = desk.submit("a", 3)
    given = whole(desk, desk.join("c"), 1)
    desk.renew(some(given, (x, 2)), 3 * CONSUMER_SILENT_SECONDS)
    desk.pass_time(CONSUMER_SILENT_SECONDS + 1)
    desk.restart()
    epoch = desk.join("c")
    with pytest.raises(ReservationLapsed, match="2 chunks of seq 1"):
        whole(desk, epoch, 1)
    desk.trim("c", epoch, 1, complete=True)
    assert desk.show(x).state == "completed"


def test_forgotten_leases_of_a_reservation_lapse_too() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    whole(desk, desk.join("c"), 1)
    desk.restart(forget=True)
    epoch = desk.join("c")
    for ask in (lambda: whole(desk, epoch, 1), lambda: desk.trim("c", epoch, 1, complete=True)):
        with pytest.raises(ReservationLapsed, match="2 chunks of seq 1"):
            ask()
    assert chunks(desk.reserve(9)) == [(x, 0), (x, 1)]


def test_what_its_consumer_gave_back_itself_is_no_lapse() -> None:
    desk = Desk()
    x = desk.submit("a", 4, policy="dead_letter")
    epoch = desk.join("c")
    given = whole(desk, epoch, 1)
    desk.fail(some(given, (x, 0)), delay=5)
    desk.release(some(given, (x, 1)))
    assert chunks(whole(desk, epoch, 1)) == [(x, 2), (x, 3)]
    desk.trim("c", epoch, 1, complete=True)
    assert desk.show(x).done == 2


def test_a_reservation_that_an_older_version_stored_is_read() -> None:
    """Its last field is missing there."""
    desk = Desk()
    desk.submit("a", 2)
    given = desk.named("c", desk.join("c"), 1)
    fields = msgspec.json.decode(msgspec.json.encode(desk.state.consumers["c"]))
    fields[4] = {int(seq): named[:-1] for seq, named in fields[4].items()}
    again = msgspec.convert(fields, Consumer, strict=False)
    assert again.open[1].lapsed == 0 and again.open[1].spans == given.spans


@pytest.mark.parametrize("way", ["asked", "trimmed"])
def test_what_a_cancel_took_out_of_a_reservation_can_be_handed_out_after_a_redrive(way: str) -> None:
    """Its consumer was told that it has these chunks no longer, or wants them no longer: nobody is waited for."""
    desk = Desk()
    x = desk.submit(n=4)
    epoch = desk.join("c")
    first = desk.named("c", epoch, 1)
    desk.cancel(x)
    assert desk.stats().chunks_leased == 4, "whoever works on them has not heard of it yet"
    if way == "asked":
        assert desk.named("c", epoch, 1).spans == []
    else:
        desk.trim("c", epoch, 1)
    assert desk.stats().chunks_leased == 0
    assert desk.complete(first) == ["ended"] * 4
    desk.restart()
    desk.redrive(x)
    again = desk.reserve(10)
    assert chunks(again) == [(x, index) for index in range(4)]
    assert desk.complete(first) == ["lost"] * 4
    assert desk.complete(again) == ["done"] * 4
