"""A backlog larger than the window: who waits for what is not in memory, and what must never happen to it."""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from typing import Any

import pytest

from fairway.engine import commands as c
from fairway.engine import lodging, windowing
from fairway.engine.backlog import bytes_of
from fairway.engine.engine import Engine
from fairway.engine.reads import Answer, Read
from fairway.errors import Fenced, StoreFailed
from fairway.limits import CALL_OFFERS_MAX, GC_SECONDS, READ_ROWS
from fairway.model.submission import Described, Offer
from tests.engine.desk import Desk, chunks, offer, small_reads

WHALE = 200_000
WINDOW = 2_000


def put_many(desk: Desk, tenant: str, n: int, delay: float = 0.0, **told: Any) -> list[int]:
    described = Described(tenant, 1, policy="dead_letter", **told)
    one = Offer(described, delay_seconds=delay)
    ids: list[int] = []
    for first in range(0, n, CALL_OFFERS_MAX):
        ids += desk.call(c.Submit([one] * min(CALL_OFFERS_MAX, n - first))).ids
    return ids


def far_behind(desk: Desk) -> None:
    """From now on what b puts lies behind ten thousand rows of w, several windows of them."""
    desk.weigh("w", 100_000)
    desk.weigh("b", 10)


def rows_before(desk: Desk, ids: list[int]) -> int:
    """How many stored rows lie before the first of these."""
    held = desk.shelf.queue("q")
    return bisect_left(held.sorted(), min((held.passes[id], id) for id in ids))


def in_memory(desk: Desk) -> int:
    return len(desk.state.runs)


def desk_of(**more: Any) -> Desk:
    return Desk(audited=False, window=WINDOW, **more)


def test_a_whale_of_paused_messages_does_not_hold_up_others() -> None:
    desk = desk_of()
    far_behind(desk)
    desk.pause(tenant="w")
    put_many(desk, "w", WHALE)
    others = put_many(desk, "b", 5)
    assert rows_before(desk, others) > 4 * WINDOW
    desk.restart()
    assert in_memory(desk) <= 2 * WINDOW
    assert desk.tenants_of(desk.reserve(9)) == "bbbbb"
    assert not desk.reserve(9).spans, "the whale is paused"
    desk.restart()
    assert in_memory(desk) <= 2 * WINDOW and not desk.reserve(9).spans
    assert desk.stats().submissions_active == WHALE + 5
    desk.resume(tenant="w")
    put_many(desk, "c", 2)
    assert desk.tenants_of(desk.reserve(4)) == "wwww"
    assert desk.tenants_of(desk.reserve(4, 'SelectOnly("tenant", "c", Fair)')) == "cc"
    assert in_memory(desk) <= 2 * WINDOW


@pytest.mark.parametrize("start_again", [False, True])
def test_large_rows_make_the_window_shorter_and_small_ones_longer_again(
    start_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded in bytes as well as in rows; nothing is lost by it."""
    most = 40_000
    monkeypatch.setattr(lodging, "WINDOW_BYTES_MAX", most)
    desk = Desk(window=100)
    ids = [desk.message("ab"[n % 2], info=bytes(4000)) for n in range(60)]
    if start_again:
        desk.restart()
    aside = desk.state.aside
    for leased in range(3):
        assert aside.bytes == sum(bytes_of(run) for run in desk.state.runs.values())
        assert desk.state.window.rows_max < 10
        assert 4000 * in_memory(desk) < aside.bytes <= most + 5000 * leased, "what is leased stays"
        assert chunks(desk.reserve(1))
    desk.restart(forget=True)
    assert sorted(desk.drain()) == [(id, 0) for id in ids]
    small = [desk.message() for _ in range(40)]
    assert desk.state.window.rows_max == 100 and in_memory(desk) == len(small)


@pytest.mark.parametrize("small", [0, 30])
def test_what_is_read_keeps_to_the_bound_in_bytes_before_room_is_made(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a start and on the way, also where small rows come before large ones: memory never holds far more."""
    most, held = 40_000, [0]
    monkeypatch.setattr(lodging, "WINDOW_BYTES_MAX", most)
    make_room = lodging.make_room

    def watched(state: Any) -> None:
        held[0] = max(held[0], state.aside.bytes)
        make_room(state)

    desk = Desk(window=2_000, audited=False)
    ids = [desk.message() for _ in range(small)] + [desk.message(info=bytes(4000)) for _ in range(100)]
    monkeypatch.setattr(windowing, "make_room", watched)
    desk.restart()
    assert 0 < held[0] <= most + 2 * 5000
    assert sorted(desk.drain()) == [(id, 0) for id in ids]
    assert held[0] <= most + 2 * 5000


def test_a_read_brings_so_few_rows_that_no_call_waits_for_long() -> None:
    """They are taken in under the lock: of a whale that is read on, resumed or due, some at a time."""
    desk = Desk(window=30_000, audited=False)
    sizes: list[int] = []

    def delivered(read: Read, answer: Answer, now: float) -> None:
        sizes.append(len(answer.rows))
        Engine.delivered(desk.engine, read, answer, now)

    desk.pause(tenant="w")
    put_many(desk, "w", 9_000)
    put_many(desk, "a", 25_000)
    desk.restart()
    desk.engine.delivered = delivered  # pyright: ignore[reportAttributeAccessIssue]
    desk.resume(tenant="w")
    desk.drain(max=1_000)
    assert desk.stats().submissions_active == 0
    assert READ_ROWS / 2 < max(sizes) <= READ_ROWS


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_tenant_that_is_resumed_is_read_page_by_page(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is paused and resumed again, or the window moves, between two pages."""
    small_reads(monkeypatch, rows)
    desk = Desk(window=6, audited=False)
    desk.pause(tenant="p")
    ids = [desk.message("p") for _ in range(15)] + [desk.message("a") for _ in range(15)]
    desk.restart()
    got = [id for id, _ in desk.drain()]
    desk.reads_go_on = False
    for turn in range(8):
        desk.resume(tenant="p")
        for read in desk.engine.begin_reads(desk.now):
            desk.engine.delivered(read, read.read(desk.store), desk.now)
        desk.settle()
        if turn % 2:
            desk.pause(tenant="p")
            ids.append(desk.message("a"))
    desk.resume(tenant="p")
    desk.reads_go_on = True
    desk.audited = True
    desk.settle()
    assert sorted(got + [id for id, _ in desk.drain()]) == sorted(ids)


def test_a_whale_that_is_not_due_does_not_hold_up_others() -> None:
    desk = desk_of()
    far_behind(desk)
    put_many(desk, "w", WHALE, delay=600.0)
    others = put_many(desk, "b", 5)
    assert rows_before(desk, others) > 4 * WINDOW
    desk.restart()
    assert in_memory(desk) <= 2 * WINDOW + 10
    assert desk.tenants_of(desk.reserve(9)) == "bbbbb"
    assert not desk.reserve(9).spans
    desk.now += 601.0
    desk.engine.tick(desk.now)
    desk.settle()
    put_many(desk, "c", 1)
    assert desk.tenants_of(desk.reserve(3)) == "www"
    assert desk.tenants_of(desk.reserve(3, 'SelectOnly("tenant", "c", Fair)')) == "c"


def test_a_saturated_tenant_does_not_hold_up_others() -> None:
    """All that the window holds is of a tenant at its limit; the others lie behind it, out of memory."""
    desk = desk_of()
    strategy = 'MaxSimultaneous("tenant", 2, OldestFirst)'
    far_behind(desk)
    put_many(desk, "w", WHALE // 4)
    others = put_many(desk, "b", 3)
    desk.restart()
    assert rows_before(desk, others) > 4 * WINDOW and not set(others) & set(desk.state.runs)
    assert desk.tenants_of(desk.reserve(5, strategy)) == "ww"
    assert desk.tenants_of(desk.reserve(5, strategy)) == "bb", "they are searched for in the store"
    assert not desk.reserve(5, strategy).spans, "both are at their limit, and everything was looked at"
    assert in_memory(desk) <= 3 * WINDOW


def test_an_unselected_lane_does_not_hold_up_others() -> None:
    desk = desk_of()
    put_many(desk, "a", WHALE // 4, metadata={"lane": "slow"})
    others = put_many(desk, "a", 3, metadata={"lane": "fast"})
    desk.restart()
    assert in_memory(desk) <= 2 * WINDOW and not set(others) & set(desk.state.runs)
    assert len(chunks(desk.reserve(9, 'SelectOnly("lane", "fast", Fair)'))) == 3
    assert not desk.reserve(9, 'SelectOnly("lane", "fast", Fair)').spans
    assert not desk.reserve(9, 'SelectOnly("lane", "none", Fair)').spans


def test_memory_is_bounded_by_the_window_and_counts_are_exact() -> None:
    desk = Desk(audited=False, window=100)
    put_many(desk, "a", 3_000)
    put_many(desk, "b", 2_000)
    most = 0
    done = 0
    while (reserved := desk.reserve(50)).spans:
        done += len(chunks(reserved))
        stats = desk.stats()
        assert stats.submissions_active == 5_000 - done + 50 and stats.chunks_leased == 50
        assert stats.chunks_waiting == 5_000 - done
        desk.complete(reserved)
        most = max(most, in_memory(desk))
    assert done == 5_000 and most <= 400
    assert desk.stats().submissions_active == 0


def test_a_queue_that_fits_wants_no_read_ever() -> None:
    desk = Desk(audited=False)

    def refuse(now: float) -> list[Read]:
        raise AssertionError("a read is wanted")

    desk.engine.begin_reads = refuse  # pyright: ignore[reportAttributeAccessIssue]
    desk.pause(tenant="b")
    for n in range(50):
        desk.message("ab"[n % 2], not_before=desk.now + n % 3)
    held = desk.reserve(10)
    desk.fail(held)
    desk.pass_time(500.0)
    desk.resume(tenant="b")
    assert desk.drain() and desk.state.window.at_end
    assert not desk.engine.wants_reads()


# -- by id, out of memory


def beyond(desk: Desk, **told: Any) -> int:
    """A submission that is certainly not in memory."""
    put_many(desk, "a", 20)
    id = desk.submit("a", **told)
    put_many(desk, "a", 20)
    desk.restart()
    assert id not in desk.state.runs
    return id


def test_what_needs_a_submission_that_is_not_in_memory_reads_it_first() -> None:
    desk = Desk(window=2)
    x = beyond(desk, n=3, metadata={"k": "v"}, info=b"hello")
    shown = desk.show(x)
    assert (shown.state, shown.total, shown.info) == ("active", 3, b"hello")
    desk.settle()
    assert x not in desk.state.runs, "and it leaves again"
    desk.pause(submission=x)
    assert desk.show(x).paused
    assert desk.call(c.ListActive(metadata={"k": "v"}))[0].id == x
    assert len(desk.call(c.ListActive())) == 41
    desk.resume(submission=x)
    assert desk.cancel(x).state == "cancelled"
    assert desk.redrive(x).state == "active"
    waits = desk.wait(x, 10.0)
    assert not waits.answered
    desk.pass_time(11.0)
    assert waits.answered and waits.reply is not None
    while desk.drain("NewestFirst", 5):
        pass
    assert desk.show(x).state == "completed"


def test_a_deadline_ends_a_submission_that_is_not_in_memory() -> None:
    desk = Desk(window=2)
    x = beyond(desk, deadline=100.0)
    desk.pass_time(101.0)
    assert desk.show(x).state == "failed" and "deadline" in desk.show(x).error


def test_a_submission_that_is_not_in_memory_is_due_in_time() -> None:
    desk = Desk(window=1)
    x = beyond(desk, not_before=desk.now + 100.0, metadata={"k": "v"})
    newest = 'SelectOnly("k", "v", Fair)'
    assert not desk.reserve(1, newest).spans
    waits = desk.wait_for_work(200.0, 1, newest)
    desk.pass_time(99.0)
    assert not waits.answered
    desk.pass_time(2.0)
    assert waits.answered and chunks(waits.reply) == [(x, 0)]  # pyright: ignore[reportArgumentType]


def test_a_result_for_an_expired_lease_of_a_run_that_left_memory_is_accepted() -> None:
    desk = Desk(window=1)
    x = desk.submit("z", 3)
    held = desk.reserve(1, "NewestFirst", 5.0)
    desk.pass_time(6.0)
    put_many(desk, "a", 30)
    for _ in range(3):
        desk.settle()
        desk.message("b")
    desk.state.window.cut(desk.state.window.ack)
    desk.message("c")
    desk.message("c")
    assert desk.complete(held) == ["done"]
    assert desk.show(x).done == 1


def test_a_run_cut_while_leased_is_not_leased_twice() -> None:
    desk = Desk(window=1)
    late = desk.submit("w", 2)
    held = desk.reserve(1)
    assert chunks(held) == [(late, 0)]
    for n in range(6):
        desk.message(f"t{n}")
    got = desk.drain(max=2)
    assert (late, 0) not in got and (late, 1) in got and len(got) == 7
    assert desk.complete(held) == ["done"]


# -- the same set of dispatches


def program(seed: int, window: int) -> set[tuple[int, int]]:
    """Submits, pauses, reserves, failures and time, without limits, cancels and deadlines; then a drain."""
    dice = Random(seed)
    desk = Desk(window=window, fetched=3, audited=False)
    got: set[tuple[int, int]] = set()
    held: list[c.Reserved] = []
    paused: set[str] = set()
    for _ in range(60):
        tenant, n, chance = dice.choice("abc"), dice.randint(1, 3), dice.random()
        strategy = dice.choice(("Fair", "NewestFirst", "OldestFirst", 'SelectOnly("k", "x", Fair)', "Random"))
        if chance < 0.4:
            told: dict[str, Any] = {"metadata": {"k": dice.choice("xy")}, "policy": "dead_letter"}
            desk.call(
                c.Submit([offer(tenant, n, delay=dice.choice((0.0, 0.0, 25.0)), attempts_max=1000, **told)])
            )
        elif chance < 0.7:
            reserved = desk.reserve(n, strategy, 60.0)
            got.update(chunks(reserved))
            held += [reserved] if reserved.spans else []
        elif chance < 0.8 and held:
            desk.complete(held.pop(0))
        elif chance < 0.85 and held:
            desk.fail(held.pop(0), delay=dice.choice((0.0, 7.0)))
        elif chance < 0.95:
            (desk.pause if chance < 0.9 else desk.resume)(tenant=tenant)
            paused.add(tenant)
        else:
            desk.pass_time(7.0)
    for tenant in paused:
        desk.resume(tenant=tenant)
    for _ in range(3):
        desk.pass_time(100.0)
        got.update(desk.drain(max=3))
    assert desk.stats().submissions_active == 0
    return got


@pytest.mark.parametrize("seed", range(25))
def test_a_program_that_ends_in_a_drain_dispatches_the_same_set_with_every_window(seed: int) -> None:
    everything = program(seed, 0)
    for window in (1, 2, 8):
        assert program(seed, window) == everything, f"window {window}"


def test_inside_what_the_window_sees_tenants_take_turns() -> None:
    desk = Desk(window=8, audited=False)
    for _ in range(50):
        for tenant in "abc":
            desk.message(tenant)
    desk.restart()
    order = ""
    while (reserved := desk.reserve(1)).spans:
        order += desk.tenants_of(reserved)
        desk.complete(reserved)
    assert len(order) == 150
    for first in range(0, 150, 3):
        assert sorted(order[first : first + 3]) == ["a", "b", "c"], first


# -- reads that are late, fail, or meet something in between


def test_a_failed_read_is_made_again_after_a_pause_and_nobody_is_forgotten() -> None:
    desk = Desk(window=2, audited=False)
    put_many(desk, "a", 10)
    desk.reads_go_on = False
    while (reserved := desk.send(c.Reserve(1))).answered and reserved.reply.spans:  # pyright: ignore
        desk.settle()
    waits = reserved
    assert not waits.answered, "nobody is told that there is no work before the store was asked"
    for tries in range(1, 4):
        (read,) = desk.engine.begin_reads(desk.now)
        desk.engine.read_failed(read, desk.now, StoreFailed())
        assert not desk.engine.wants_reads() and not waits.answered
        pause = desk.engine.next_due - desk.now
        assert pause == pytest.approx(0.05 * 2 ** (tries - 1))
        desk.now += pause
        desk.engine.tick(desk.now)
        assert desk.engine.wants_reads(), "the wake-up is not lost"
    desk.reads_go_on = True
    desk.settle()
    assert waits.answered and waits.reply.spans  # pyright: ignore


def test_what_was_finished_while_a_read_was_out_is_not_handed_out_again() -> None:
    desk = Desk(window=4, audited=False)
    put_many(desk, "a", 12)
    desk.reads_go_on = False
    held = desk.reserve(4)
    (read,) = desk.engine.begin_reads(desk.now)
    answer = read.read(desk.store)
    others = [run.id for run in answer.rows]
    for id in others[:2]:  # they end while the read is out
        desk.cancel(id)
    desk.engine.delivered(read, answer, desk.now)
    desk.reads_go_on = True
    got = [id for id, _ in desk.drain()]
    assert not set(others[:2]) & set(got)
    assert len(got) == 12 - 4 - 2
    assert set(desk.complete(held)) == {"done"}


def test_a_run_that_left_memory_after_a_read_began_comes_back_as_it_was() -> None:
    """The read has its older form; what is known of it is not forgotten before the read is over."""
    desk = Desk(window=1, audited=False)
    put_many(desk, "a", 6)
    desk.reads_go_on = False
    x = desk.submit("b", 3)
    call = c.Call(c.Show(x))
    put_many(desk, "c", 3)
    found = desk.look_up(call)
    run = desk.state.runs.get(x) or desk.state.aside.left.get(x, (0, None))[1]
    desk.reads_go_on = True
    desk.settle()
    held = desk.reserve(1, 'SelectOnly("tenant", "b", Fair)')
    desk.complete(held)
    put_many(desk, "c", 3)
    shown = desk.engine.execute(call, desk.now, found).reply
    desk.settle()
    assert shown.done == 1  # pyright: ignore
    assert run is None or run.id == x


@pytest.mark.parametrize("by_range", [False, True])
def test_a_submission_that_ended_and_was_redriven_while_a_read_was_out_is_handed_out(by_range: bool) -> None:
    """Its end is remembered for that read; its new life is not over when it leaves memory."""
    desk = Desk(window=1, by_range=by_range)
    put_many(desk, "a", 3)
    x = desk.submit("b", 2)
    put_many(desk, "a", 4)
    last = max(run.id for run in desk.store.active())
    slow = desk.engine.lookups(c.Call(c.Show(last)))
    assert slow is not None
    desk.cancel(x)
    desk.redrive(x)
    assert x not in desk.state.runs
    assert x in [shown.id for shown in desk.call(c.ListActive())]
    assert sorted(desk.drain())[3:5] == [(x, 0), (x, 1)]
    desk.engine.looked(slow)
    assert desk.stats().submissions_active == 0


def test_a_row_beside_the_window_that_a_read_brings_in_and_a_cut_takes_out_stands_nowhere() -> None:
    """It is no longer beside it either: it leaves memory like others, and is found again."""
    desk = Desk(window=1)
    first, second = desk.message("a"), desk.message("a")
    beside = desk.submit("a", 2, metadata={"lane": "fast"})
    assert chunks(desk.reserve(1, 'SelectOnly("lane", "fast", OldestFirst)')) == [(beside, 0)]
    assert chunks(desk.reserve(1, "OldestFirst")) == [(first, 0)]
    desk.reads_go_on = False
    assert chunks(desk.reserve(1, "OldestFirst")) == [(second, 0)]
    (read,) = desk.engine.begin_reads(desk.now)
    answer = read.read(desk.store)
    assert [row.id for row in answer.rows] == [beside] and beside in desk.state.window.fetched
    before = desk.message("b")  # it lies where the window is, and fills it
    desk.engine.delivered(read, answer, desk.now)
    desk.reads_go_on = True
    desk.settle()
    assert set(desk.drain()) == {(before, 0), (beside, 1)}


# -- stores that delete by range


def test_a_paused_row_does_not_keep_finished_places_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live rows are carried forward when finished places outnumber them: the table stays short."""
    monkeypatch.setattr("fairway.limits.GC_ROWS", 10)
    desk = Desk(window=8, by_range=True)
    desk.pause(tenant="z")
    stuck = [desk.message("z") for _ in range(3)]
    moves = longest = 0
    for n in range(150):
        desk.message("ab"[n % 2])
        desk.complete(desk.reserve(1))
        longest = max(longest, len(desk.shelf.queue("q").places))
    moves = sum(len(group.moves) for group in desk.groups)
    assert 0 < moves <= 150, "at most one rewrite for each finished row"
    assert longest <= 3 * (10 + 8)
    desk.resume(tenant="z")
    assert [id for id, _ in desk.drain()] == stuck


def until_carried(desk: Desk, id: int) -> None:
    """Others come and go, until the run has a new place."""
    before = desk.store.run(id).pass_  # pyright: ignore
    for _ in range(40):
        desk.message("a")
        desk.complete(desk.reserve(1))
        if desk.store.run(id).pass_ != before:  # pyright: ignore
            return
    raise AssertionError("it was never carried forward")


@pytest.mark.parametrize("command", [c.Show, c.Cancel, c.Redrive])
def test_a_run_that_was_carried_since_a_call_looked_it_up_stands_in_its_new_place(
    command: type[c.Show | c.Cancel | c.Redrive], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_reads(monkeypatch, 2)
    desk = Desk(window=1, by_range=True)
    desk.pause(tenant="p")
    x, y = desk.submit("p", 2), desk.submit("p", 2)
    put_many(desk, "a", 6)
    call = c.Call(command(x))
    found = desk.look_up(call)
    assert found is not None and x not in desk.state.runs
    until_carried(desk, x)
    assert x not in desk.state.runs
    desk.carry_out(call, found)
    desk.resume(tenant="p")
    cancelled = command is c.Cancel
    wanted = [(id, index) for id in ([y] if cancelled else [x, y]) for index in (0, 1)]
    assert [chunk for chunk in sorted(desk.drain()) if chunk[0] in (x, y)] == wanted
    assert desk.stats().submissions_active == 0


def test_a_run_that_was_carried_since_it_left_memory_comes_back_in_its_new_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A read from before it left is out, so it is kept as it was; its place is not as it was."""
    small_reads(monkeypatch, 2)
    desk = Desk(window=1, by_range=True)
    desk.pause(tenant="p")
    x = desk.submit("p", 2)
    slow = desk.engine.lookups(c.Call(c.Show(x + 1)))
    assert slow is not None
    put_many(desk, "a", 6)
    assert x in desk.state.aside.left
    until_carried(desk, x)
    assert x in desk.state.aside.left
    desk.resume(tenant="p")
    assert [index for id, index in desk.drain() if id == x] == [0, 1]
    desk.engine.looked(slow)


def test_a_run_that_was_carried_while_it_was_read_by_its_deadline_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_reads(monkeypatch, 2)
    desk = Desk(window=1, by_range=True, audited=False)  # a start would have ended it
    desk.pause(tenant="p")
    x = desk.submit("p", 2, deadline=100)
    put_many(desk, "a", 6)
    assert x not in desk.state.runs
    desk.now += 101
    desk.reads_go_on = False
    desk.engine.tick(desk.now)
    (read,) = [read for read in desk.engine.begin_reads(desk.now) if read.kind == "ids"]
    answer = read.read(desk.store)
    desk.reads_go_on = True
    until_carried(desk, x)
    desk.engine.delivered(read, answer, desk.now)
    desk.settle()
    assert desk.show(x).state == "failed"
    desk.drain()
    assert desk.stats().submissions_active == 0


def test_a_few_finished_places_are_given_up_after_a_while() -> None:
    """Far fewer than are given up together: a queue that rests keeps no finished places for ever."""
    desk = Desk(window=8, by_range=True)
    for n in range(6):
        desk.message("ab"[n % 2])
    for _ in range(3):
        desk.complete(desk.reserve(1))

    def deletes() -> int:
        return sum(group.delete_upto is not None for group in desk.groups)

    def places() -> int:
        return len(desk.shelf.queue("q").places)

    desk.pass_time(GC_SECONDS - 1.0)
    desk.message("a")
    assert (deletes(), places()) == (0, 7)
    desk.pass_time(1.0)
    desk.message("a")
    assert (deletes(), places()) == (1, 5), "three finished ones went with that group"
    desk.message("a")
    assert deletes() == 1, "and then there was nothing to give up"


def test_places_are_given_up_only_with_the_group_that_saves_their_a(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a deposed owner's delete is fenced with its group, and takes nothing of the new owner."""
    monkeypatch.setattr("fairway.limits.GC_ROWS", 1)
    desk = Desk(window=4, by_range=True)
    for n in range(20):
        desk.message("ab"[n % 2])
    desk.drain()
    deletes = [group for group in desk.groups if group.delete_upto is not None]
    assert deletes
    old, store = desk.engine, desk.store
    desk.message("a")
    desk.restart()
    new = desk.message("a")
    late: Engine = old
    late.state.next_count += 1  # something is to be stored
    closing = late.close_group(desk.now)
    assert closing is not None and closing.group is not None
    with pytest.raises(Fenced):
        store.commit(closing.group)
    assert new in [id for id, _ in desk.drain()]


def test_a_store_from_before_the_counts_is_counted_at_its_first_start() -> None:
    desk = Desk(window=2, audited=False)
    put_many(desk, "a", 7)
    desk.submit("b", 5)
    desk.complete(desk.reserve(2, 'SelectOnly("tenant", "b", Fair)'))
    before = desk.stats()
    held = desk.shelf.queue("q")
    import msgspec

    held.meta = msgspec.msgpack.encode(msgspec.msgpack.decode(held.meta)[:10])
    desk.restart()
    after = desk.stats()
    names = ("submissions_active", "chunks_waiting", "chunks_done", "chunks_leased", "chunks_dead")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]
    assert len(desk.drain()) == 7 + 3


def test_an_answer_for_an_engine_that_is_gone_is_not_taken() -> None:
    desk = Desk(window=2, audited=False)
    put_many(desk, "a", 10)
    desk.reads_go_on = False
    desk.reserve(2)
    reads = desk.engine.begin_reads(desk.now)
    assert reads
    other = Desk(window=2, audited=False)
    other.engine.delivered(reads[0], Answer(), other.now)
    assert not other.state.runs and other.state.window.at_end
