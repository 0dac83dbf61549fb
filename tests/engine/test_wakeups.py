"""Wake-ups: whatever makes a chunk eligible under a strategy answers those who wait for it, at once and in order.

Each cause is met twice: by a reserve that waits already, and by one that comes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.engine.commands import Goodbye, Reserve, Submit
from fairway.engine.draft import Draft
from tests.engine.desk import Chunk, Desk, answer, chunks, offer, parts, some, through_windows

STRATEGIES = [
    "Fair",
    'MaxSimultaneous("tenant", 1, Fair)',
    'SelectOnly("mode", "x", OldestFirst)',
    'OrElse(SelectOnly("mode", "x", Random), MaxSimultaneous("tenant", 1, CustomPriority))',
]
FALLBACK = STRATEGIES[3]
# Each binds a tenant to one chunk at a time; the last one does so in its fallback only.
LIMITED = [
    'MaxSimultaneous("tenant", 1, Fair)',
    'MaxSimultaneous("tenant", 1, Random)',
    'MaxSimultaneous("tenant", 1, SelectOnly("mode", "y", OldestFirst))',
    'MaxSimultaneous("mode", 1, NewestFirst)',
    'OrElse(SelectOnly("mode", "x", Random), MaxSimultaneous("tenant", 1, CustomPriority))',
]
SHARED = [
    'MaxSimultaneous("tenant", "50%", Fair)',
    'MaxSimultaneous("tenant", "50%", Random)',
    'MaxSimultaneous("mode", "50%", SelectOnly("mode", "x", OldestFirst))',
    'OrElse(SelectOnly("mode", "none", Random), MaxSimultaneous("tenant", "50%", CustomPriority))',
]
LONG = 3000.0  # longer than anything here takes

Cause = Callable[[Desk], Iterator[None]]
"""Makes a queue where nothing can be handed out, stops there, and when it goes on it makes one chunk eligible."""


def put(desk: Desk, n: int = 1, tenant: str = "a", mode: str = "x", **told: Any) -> int:
    return desk.submit(tenant, n, metadata={"mode": mode}, **told)


def go_on(scene: Iterator[None]) -> None:
    """What makes the chunk eligible happens."""
    assert next(scene, "over") == "over"


# -- causes that make a chunk wait for everybody


def a_submit(desk: Desk) -> Iterator[None]:
    yield
    put(desk)


def an_expired_lease(desk: Desk) -> Iterator[None]:
    put(desk)
    desk.reserve(lease=50)
    yield
    desk.pass_time(50)


def a_failed_chunk(desk: Desk) -> Iterator[None]:
    put(desk)
    leases = desk.reserve(lease=LONG)
    yield
    assert desk.fail(leases, delay=0) == ["retrying"]


def the_end_of_a_back_off(desk: Desk) -> Iterator[None]:
    put(desk)
    desk.fail(desk.reserve(), delay=50)
    yield
    desk.pass_time(50)


def a_released_chunk(desk: Desk) -> Iterator[None]:
    put(desk)
    leases = desk.reserve(lease=LONG)
    yield
    assert desk.release(leases) == ["released"]


def a_due_time(desk: Desk) -> Iterator[None]:
    put(desk, delay=50)
    yield
    desk.pass_time(50)


def a_resumed_queue(desk: Desk) -> Iterator[None]:
    put(desk)
    desk.pause()
    yield
    desk.resume()


def a_resumed_tenant(desk: Desk) -> Iterator[None]:
    put(desk)
    desk.pause(tenant="a")
    yield
    desk.resume(tenant="a")


def a_resumed_submission(desk: Desk) -> Iterator[None]:
    id = put(desk)
    desk.pause(submission=id)
    yield
    desk.resume(submission=id)


def a_redrive_of_a_cancelled_submission(desk: Desk) -> Iterator[None]:
    id = put(desk)
    desk.cancel(id)
    yield
    desk.redrive(id)


def a_redrive_of_a_failed_submission(desk: Desk) -> Iterator[None]:
    id = put(desk)
    assert desk.fail(desk.reserve(), retry=False) == ["dead"]
    yield
    desk.redrive(id)


def a_redrive_of_a_dead_chunk(desk: Desk) -> Iterator[None]:
    id = put(desk, 2, policy="dead_letter")
    desk.fail(desk.reserve(), retry=False)
    desk.fail(desk.reserve(), delay=2 * LONG)  # so that it is active, and has nothing out
    yield
    desk.redrive(id)


def a_lapsed_named_reservation(desk: Desk) -> Iterator[None]:
    desk.configure(consumer_silent_seconds=50.0)
    put(desk)
    desk.named("c", desk.join("c"), 1)
    yield
    desk.pass_time(60)


CAUSES: list[Cause] = [
    a_submit,
    an_expired_lease,
    a_failed_chunk,
    the_end_of_a_back_off,
    a_released_chunk,
    a_due_time,
    a_resumed_queue,
    a_resumed_tenant,
    a_resumed_submission,
    a_redrive_of_a_cancelled_submission,
    a_redrive_of_a_failed_submission,
    a_redrive_of_a_dead_chunk,
    a_lapsed_named_reservation,
]


# -- causes that free a limit: one chunk of the tenant is out, and another is held back by it


def held_back(desk: Desk, lease: float = LONG, **told: Any) -> tuple[int, Any]:
    """The submission that is out, and its lease; the one that is held back came with it."""
    first = put(desk, mode="y", **told)
    leases = desk.reserve(lease=lease)
    put(desk, mode="y")
    return first, leases


def a_complete(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.complete(leases) == ["done"]


def a_complete_with_a_result(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.complete(leases, [b"r"]) == ["done"]


def a_complete_after_a_restart(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    desk.restart()
    yield
    assert desk.complete(leases) == ["done"]


def a_fail_for_good(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.fail(leases, retry=False) == ["dead"]


def a_fail_with_a_back_off(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.fail(leases, delay=2 * LONG) == ["retrying"]


def a_fail_with_a_retry_at_once(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.fail(leases, delay=0) == ["retrying"]


def a_release(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk)
    yield
    assert desk.release(leases) == ["released"]


def an_expiry(desk: Desk) -> Iterator[None]:
    held_back(desk, 50)
    yield
    desk.pass_time(50)


def an_expiry_for_good(desk: Desk) -> Iterator[None]:
    held_back(desk, 50, attempts_max=1)
    yield
    desk.pass_time(50)


def a_complete_of_a_cancelled_one(desk: Desk) -> Iterator[None]:
    id, leases = held_back(desk)
    desk.cancel(id)
    yield
    assert desk.complete(leases) == ["ended"]


def a_fail_of_a_cancelled_one(desk: Desk) -> Iterator[None]:
    id, leases = held_back(desk)
    desk.cancel(id)
    yield
    assert desk.fail(leases) == ["ended"]


def a_release_of_a_cancelled_one(desk: Desk) -> Iterator[None]:
    id, leases = held_back(desk)
    desk.cancel(id)
    yield
    assert desk.release(leases) == ["ended"]


def an_expiry_of_a_cancelled_one(desk: Desk) -> Iterator[None]:
    id, _ = held_back(desk, 50)
    desk.cancel(id)
    yield
    desk.pass_time(50)


def a_complete_of_a_cancelled_one_after_a_restart(desk: Desk) -> Iterator[None]:
    id, leases = held_back(desk)
    desk.cancel(id)
    desk.restart()
    yield
    assert desk.complete(leases) == ["ended"]


def a_complete_of_one_past_its_deadline(desk: Desk) -> Iterator[None]:
    _, leases = held_back(desk, deadline=20.0)
    desk.pass_time(30)
    yield
    assert desk.complete(leases) == ["ended"]


def a_complete_of_one_cancelled_and_redriven(desk: Desk) -> Iterator[None]:
    id, leases = held_back(desk)
    desk.cancel(id)
    desk.redrive(id)
    yield
    assert desk.complete(leases) == ["done"]


def a_client_that_said_goodbye(desk: Desk) -> Iterator[None]:
    put(desk, mode="y")
    client = desk.register()
    assert desk.call(Reserve(lease_seconds=50), client, 1).spans
    put(desk, mode="y")
    desk.call(Goodbye(), client)  # it may be at work all the same, so its lease counts until it runs out
    yield
    desk.pass_time(50)


def a_client_that_fell_silent(desk: Desk) -> Iterator[None]:
    desk.configure(client_silent_seconds=100.0)
    put(desk, mode="y")
    client = desk.register()
    assert desk.call(Reserve(lease_seconds=500), client, 1).spans
    put(desk, mode="y")
    desk.pass_time(200)
    assert client not in desk.state.clients
    yield
    desk.pass_time(300)


def a_named_consumer_that_fell_silent(desk: Desk) -> Iterator[None]:
    desk.configure(consumer_silent_seconds=50.0)
    put(desk, mode="y")
    desk.named("c", desk.join("c"), 1)
    put(desk, mode="y")
    yield
    desk.pass_time(60)


def a_trim_that_completes(desk: Desk) -> Iterator[None]:
    put(desk, mode="y")
    epoch = desk.join("c")
    desk.named("c", epoch, 1)
    put(desk, mode="y")
    yield
    desk.trim("c", epoch, 1, complete=True)


def a_named_chunk_given_up_at_a_takeover(desk: Desk) -> Iterator[None]:
    put(desk, mode="y", attempts_max=1)
    desk.named("c", desk.join("c"), 1)
    put(desk, mode="y")
    yield
    assert not desk.named("c", desk.join("c"), 1).spans


FREED: list[Cause] = [
    a_complete,
    a_complete_with_a_result,
    a_complete_after_a_restart,
    a_fail_for_good,
    a_fail_with_a_back_off,
    a_fail_with_a_retry_at_once,
    a_release,
    an_expiry,
    an_expiry_for_good,
    a_complete_of_a_cancelled_one,
    a_fail_of_a_cancelled_one,
    a_release_of_a_cancelled_one,
    an_expiry_of_a_cancelled_one,
    a_complete_of_a_cancelled_one_after_a_restart,
    a_complete_of_one_past_its_deadline,
    a_complete_of_one_cancelled_and_redriven,
    a_client_that_said_goodbye,
    a_client_that_fell_silent,
    a_named_consumer_that_fell_silent,
    a_trim_that_completes,
    a_named_chunk_given_up_at_a_takeover,
]


def name(cause: Cause) -> str:
    return cause.__name__


# -- each cause, with the reserve before and after it


@through_windows
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cause", CAUSES, ids=name)
def test_a_reserve_that_waits_is_answered_by(cause: Cause, strategy: str) -> None:
    desk = Desk()
    scene = cause(desk)
    next(scene)
    first, second = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(2)]
    assert not first.answered
    go_on(scene)
    assert len(chunks(answer(first))) == 1
    assert not second.answered, "one chunk became eligible, so one is woken"


@through_windows
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cause", CAUSES, ids=name)
def test_a_reserve_is_answered_at_once_after(cause: Cause, strategy: str) -> None:
    desk = Desk()
    scene = cause(desk)
    next(scene)
    assert not desk.reserve(strategy=strategy).spans
    go_on(scene)
    assert len(chunks(answer(desk.wait_for_work(LONG, strategy=strategy)))) == 1
    assert not desk.wait_for_work(LONG, strategy=strategy).answered


@through_windows
@pytest.mark.parametrize("known", [False, True], ids=["new plan", "live plan"])
@pytest.mark.parametrize("strategy", LIMITED)
@pytest.mark.parametrize("cause", FREED, ids=name)
def test_a_reserve_that_a_limit_holds_back_is_answered_by(cause: Cause, strategy: str, known: bool) -> None:
    desk = Desk()
    if known:
        assert not desk.reserve(strategy=strategy).spans
    scene = cause(desk)
    next(scene)
    first, second = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(2)]
    assert not first.answered, "the limit is full"
    go_on(scene)
    assert len(chunks(answer(first))) == 1
    assert not second.answered, "the limit is full again"


@through_windows
@pytest.mark.parametrize("known", [False, True], ids=["new plan", "live plan"])
@pytest.mark.parametrize("strategy", LIMITED)
@pytest.mark.parametrize("cause", FREED, ids=name)
def test_the_freed_limit_is_used_by_the_next_reserve_after(cause: Cause, strategy: str, known: bool) -> None:
    desk = Desk()
    scene = cause(desk)
    next(scene)
    if known:
        assert not desk.reserve(10, strategy).spans
    go_on(scene)
    assert len(chunks(desk.reserve(10, strategy, LONG))) == 1, "as many as the limit allows"
    assert not desk.wait_for_work(LONG, strategy=strategy).answered


@pytest.mark.parametrize("strategy", LIMITED)
def test_a_cancel_frees_no_limit_before_the_lease_is_answered(strategy: str) -> None:
    desk = Desk()
    id, leases = held_back(desk)
    wait = desk.wait_for_work(LONG, strategy=strategy)
    desk.cancel(id)
    assert not wait.answered, "its worker may be at work all the same"
    assert not desk.reserve(strategy=strategy).spans
    desk.restart()
    wait = desk.wait_for_work(LONG, strategy=strategy)
    assert not wait.answered, "nor after a restart"
    assert desk.complete(leases) == ["ended"]
    assert answer(wait).spans


@pytest.mark.parametrize("strategy", LIMITED)
def test_a_renewed_lease_goes_on_holding_its_limit(strategy: str) -> None:
    desk = Desk()
    _, leases = held_back(desk, 50)
    wait = desk.wait_for_work(LONG, strategy=strategy)
    desk.pass_time(40)
    assert desk.renew(leases, 50) == ["renewed"]
    desk.pass_time(40)
    assert not wait.answered
    desk.pass_time(10)
    assert answer(wait).spans


@pytest.mark.parametrize("strategy", LIMITED)
def test_a_lost_receipt_frees_no_limit_a_second_time(strategy: str) -> None:
    desk = Desk()
    _, leases = held_back(desk, 50)
    desk.pass_time(50)
    now = desk.reserve(2, strategy, LONG)
    assert len(chunks(now)) == 1
    wait = desk.wait_for_work(LONG, strategy=strategy)
    for late in (desk.fail, desk.release):
        late(leases)
    assert not wait.answered, "the lease that counts is another"
    desk.complete(now)
    assert answer(wait).spans


# -- a share of the consumers


def ask(desk: Desk, worker: int, strategy: str, seconds: float = LONG, max: int = 1) -> Draft:
    return desk.send(Reserve(max, strategy, LONG, seconds, worker=worker))


@pytest.mark.parametrize("strategy", SHARED)
def test_a_new_consumer_raises_a_share_and_wakes_who_waits_for_it(strategy: str) -> None:
    desk = Desk()
    put(desk, 9)
    assert answer(ask(desk, 1, strategy)).spans
    waits = [ask(desk, worker, strategy) for worker in (2, 3)]
    assert [wait.answered for wait in waits] == [False, False], "half of 3 is 1"
    assert not answer(ask(desk, 4, 'SelectOnly("mode", "none", Fair)', 0.0)).spans
    assert [wait.answered for wait in waits] == [True, False], "half of 4 is 2"


@pytest.mark.parametrize("strategy", SHARED)
def test_a_new_consumer_does_not_overtake_those_whose_share_it_raises(strategy: str) -> None:
    desk = Desk()
    put(desk, 9)
    assert answer(ask(desk, 1, strategy)).spans
    waits = [ask(desk, worker, strategy) for worker in (2, 3, 4)]
    assert [wait.answered for wait in waits] == [True, False, False], "half of 4 is 2, and the first is first"


@pytest.mark.parametrize("strategy", SHARED)
def test_a_reserve_after_a_new_consumer_has_the_larger_share_at_once(strategy: str) -> None:
    desk = Desk()
    put(desk, 9)
    assert answer(ask(desk, 1, strategy, 0.0)).spans
    assert not answer(ask(desk, 2, strategy, 0.0)).spans
    for worker in (3, 4):
        assert not answer(ask(desk, worker, 'SelectOnly("mode", "none", Fair)', 0.0)).spans
    assert len(chunks(answer(ask(desk, 2, strategy, max=5)))) == 1, "half of 4 is 2"
    assert not ask(desk, 2, strategy).answered


@pytest.mark.parametrize("strategy", SHARED)
def test_a_consumer_that_was_not_seen_for_a_minute_counts_no_more(strategy: str) -> None:
    desk = Desk()
    put(desk, 9)
    for worker in (2, 3, 4):
        ask(desk, worker, 'SelectOnly("mode", "none", Fair)', 0.0)
    held = answer(ask(desk, 1, strategy, 0.0, max=5))
    assert len(chunks(held)) == 2
    desk.pass_time(61)
    wait = ask(desk, 1, strategy)
    desk.complete(some(held, chunks(held)[0]))
    assert not wait.answered, "one consumer is left, so one chunk is the most"
    desk.complete(some(held, chunks(held)[1]))
    assert answer(wait).spans


# -- as many as became eligible, first come first served


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_event_wakes_as_many_as_it_made_eligible(strategy: str) -> None:
    desk = Desk()
    waits = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(3)]
    with desk.one_group():
        put(desk, tenant="a")
        put(desk, tenant="b")
    assert [wait.answered for wait in waits] == [True, True, False]
    assert len({chunks(answer(wait))[0] for wait in waits[:2]}) == 2


@pytest.mark.parametrize("strategy", LIMITED[:3])
def test_a_submit_wakes_no_more_than_the_limit_allows(strategy: str) -> None:
    desk = Desk()
    waits = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(4)]
    desk.call(offers(("a", 3), ("b", 3)))
    assert [wait.answered for wait in waits] == [True, True, False, False], "one of each tenant"
    desk.complete(answer(waits[0]))
    assert [wait.answered for wait in waits] == [True, True, True, False]


def offers(*wanted: tuple[str, int]) -> Submit:
    return Submit([offer(tenant, n, metadata={"mode": "y"}) for tenant, n in wanted])


@pytest.mark.parametrize("strategy", LIMITED[:3])
def test_one_complete_that_frees_two_limits_wakes_two_of_three(strategy: str) -> None:
    desk = Desk()
    desk.call(offers(("a", 5), ("b", 5)))
    held = desk.reserve(5, strategy, LONG)
    assert len(chunks(held)) == 2
    waits = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(3)]
    assert not any(wait.answered for wait in waits)
    desk.complete(held)
    assert [wait.answered for wait in waits] == [True, True, False]
    assert sorted(desk.tenants_of(answer(wait)) for wait in waits[:2]) == ["a", "b"]


def test_each_strategy_has_its_own_line_and_each_line_is_first_come_first_served() -> None:
    desk = Desk()
    limited, chosen = STRATEGIES[1], STRATEGIES[2]
    waits = [(text, desk.wait_for_work(LONG, strategy=text)) for text in (limited, chosen) * 3]
    put(desk, mode="y", tenant="b", n=5)  # for the first line only, and one at a time
    assert [wait.answered for _, wait in waits] == [True, False, False, False, False, False]
    put(desk, mode="x", tenant="b", n=2)  # the limit holds the first line back
    assert [wait.answered for _, wait in waits] == [True, True, False, True, False, False]
    for _, wait in (waits[0], waits[1]):
        desk.complete(answer(wait))
    assert not waits[2][1].answered, "the other strategy's lease of the tenant counts too"
    desk.complete(answer(waits[3][1]))
    assert [wait.answered for _, wait in waits] == [True, True, True, True, False, False]


@through_windows
@pytest.mark.parametrize("strategy", LIMITED)
def test_a_limit_that_one_waiter_abandoned_goes_to_the_next(strategy: str) -> None:
    desk = Desk()
    _, leases = held_back(desk)
    gone, there = [desk.wait_for_work(LONG, strategy=strategy) for _ in range(2)]
    desk.engine.abandon(gone)
    desk.complete(leases)
    assert answer(there).spans and gone.reply is None


# -- OrElse


FIRSTS = {
    "nothing selected": 'SelectOnly("mode", "none", Random)',
    "the first limit full": 'MaxSimultaneous("tenant", 1, Fair)',
    "both of two full": 'OrElse(SelectOnly("mode", "none", Fair), MaxSimultaneous("tenant", 1, Random))',
}


@through_windows
@pytest.mark.parametrize("first", FIRSTS.values(), ids=FIRSTS.keys())
def test_or_else_never_says_no_work_while_its_fallback_has_some(first: str) -> None:
    desk = Desk()
    put(desk, 6)
    got: list[Chunk] = []
    for _ in range(6):  # kept, so that limits stay full
        got += chunks(answer(desk.wait_for_work(LONG, strategy=f"OrElse({first}, OldestFirst)")))
    assert len(set(got)) == 6
    wait = desk.wait_for_work(LONG, strategy=f"OrElse({first}, OldestFirst)")
    assert not wait.answered
    put(desk)
    assert answer(wait).spans


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(1, 3)), max_size=5),
    st.lists(st.integers(1, 4), max_size=8),
    st.sampled_from(sorted(FIRSTS.values())),
)
def test_or_else_hands_out_all_that_its_fallback_would(
    submitted: list[tuple[str, str, int]], asked: list[int], first: str
) -> None:
    desk = Desk(audited=False)
    for tenant, mode, n in submitted:
        put(desk, n, tenant, mode)
    left = sum(n for _, _, n in submitted)
    for many in asked:
        got = chunks(desk.reserve(many, f"OrElse({first}, NewestFirst)", LONG))
        assert len(got) == min(many, left), "one call goes on in the fallback"
        left -= len(got)


def test_a_wait_that_ends_as_the_fallback_gets_work_is_given_the_work() -> None:
    desk = Desk()
    _, leases = held_back(desk, 50)
    wait = desk.wait_for_work(60, strategy=FALLBACK)
    desk.now += 70  # one late tick finds the lease over and the wait over
    desk.engine.tick(desk.now)
    desk.settle()
    assert answer(wait).spans
    assert parts(leases) != parts(answer(wait))


def test_the_fallback_is_left_as_soon_as_the_first_has_work_again() -> None:
    desk = Desk()
    put(desk, 3, mode="y", priority=9)
    wait = desk.reserve(1, FALLBACK, LONG)
    assert wait.runs[chunks(wait)[0][0]].metadata == {"mode": "y"}
    held = desk.wait_for_work(LONG, strategy=FALLBACK)
    assert not held.answered
    id = put(desk, 1, mode="x")
    assert chunks(answer(held)) == [(id, 0)], "the first has no limit"


# -- freed capacity is used within the same call


@pytest.mark.parametrize("strategy", LIMITED)
def test_what_a_complete_frees_the_next_reserve_has_before_anything_is_stored(strategy: str) -> None:
    desk = Desk()
    put(desk, 6, mode="y")
    held = desk.reserve(6, strategy, LONG)
    assert len(chunks(held)) == 1
    seen = chunks(held)
    for _ in range(5):
        with desk.one_group():
            assert desk.complete(held) == ["done"]
            held = desk.reserve(6, strategy, LONG)
        assert len(chunks(held)) == 1
        seen += chunks(held)
    assert len(set(seen)) == 6


@pytest.mark.parametrize("order", ["Fair", "Random", "OldestFirst", "NewestFirst", "CustomPriority"])
def test_one_reserve_of_several_fills_every_limit_and_passes_none(order: str) -> None:
    desk = Desk()
    strategy = f'MaxSimultaneous("tenant", 2, {order})'
    for _ in range(2):
        desk.call(offers(("a", 5), ("b", 1), ("c", 5)))
    held = desk.reserve(100, strategy, LONG)
    assert sorted(desk.tenants_of(held)) == list("aabbcc")
    assert not desk.reserve(100, strategy).spans
    of = dict(zip(chunks(held), desk.tenants_of(held), strict=True))
    desk.complete(some(held, *[chunk for chunk, tenant in of.items() if tenant in "ab"]))
    assert sorted(desk.tenants_of(desk.reserve(100, strategy, LONG))) == list("aa"), "b has no more"


@pytest.mark.parametrize("order", ["Fair", "Random", "OldestFirst", "NewestFirst", "CustomPriority"])
def test_one_complete_of_several_fills_a_waiting_reserve_of_several(order: str) -> None:
    desk = Desk()
    strategy = f'MaxSimultaneous("tenant", 2, {order})'
    desk.call(offers(("a", 9), ("b", 9), ("c", 9)))
    held = desk.reserve(100, strategy, LONG)
    wait = desk.wait_for_work(LONG, 5, strategy)
    assert not wait.answered
    desk.complete(held)
    assert len(chunks(answer(wait))) == 5, "all that came free with the call, not the first of it"
    assert len(chunks(desk.reserve(100, strategy, LONG))) == 1


@pytest.mark.parametrize("strategy", LIMITED)
def test_a_reserve_that_finds_leases_over_uses_what_they_held(strategy: str) -> None:
    desk = Desk()
    held_back(desk, 50)
    assert not desk.reserve(strategy=strategy).spans
    desk.now += 60  # nobody ticked
    assert len(chunks(desk.reserve(5, strategy, LONG))) == 1
