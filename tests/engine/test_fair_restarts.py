"""Fairness across restarts: the order of what is not yet leased does not notice them (plain Fair)."""

from __future__ import annotations

from random import Random

import pytest

from tests.engine.desk import Chunk, Desk, chunks, small_journal, some, through_windows

Step = tuple[str, int, int]


def program(seed: int) -> list[Step]:
    """Steps as (what, two numbers that each step reads as it likes)."""
    dice = Random(seed)
    what = (
        ["submit"] * 5
        + ["reserve"] * 7
        + ["complete"] * 3
        + ["fail", "release", "weigh", "pause", "resume", "time"]
    )
    what += ["cancel", "redrive"]
    some = [("submit", dice.randrange(1000), dice.randrange(1000)) for _ in range(3)]
    return some + [(dice.choice(what), dice.randrange(1000), dice.randrange(1000)) for _ in range(23)]


def played(steps: list[Step], restart_at: int | None, audited: bool = False) -> list[Chunk]:
    """The chunks in the order in which they were handed out, to the end of the queue."""
    desk = Desk(audited=audited)
    ids: list[int] = []
    held = []
    got: list[Chunk] = []
    for at, (what, one, two) in enumerate(steps):
        tenant = "abcd"[one % 4]
        if at == restart_at:
            desk.restart()
        if what == "submit":
            ids.append(desk.submit(tenant, 1 + two % 6, policy="dead_letter"))
        elif what == "reserve":
            reserved = desk.reserve(1 + one % 5, "Fair", lease=10_000)
            got += chunks(reserved)
            held += [some(reserved, chunk) for chunk in chunks(reserved)]
        elif what in ("complete", "fail", "release") and held:
            getattr(desk, what)(held.pop(one % len(held)))
        elif what == "weigh":
            desk.weigh(tenant, [1000, 333, 7000, 10][two % 4])
        elif what in ("pause", "resume"):
            getattr(desk, what)(tenant=tenant)
        elif what == "time":
            desk.pass_time(one % 5)
        elif what == "cancel" and ids:
            if desk.show(ids[one % len(ids)]).state == "active":
                desk.cancel(ids[one % len(ids)])
        elif what == "redrive" and ids:
            shown = desk.show(ids[one % len(ids)])
            if shown.failed or shown.state in ("failed", "cancelled"):
                desk.redrive(shown.id)
    if restart_at == len(steps):
        desk.restart()
    for tenant in "abcd":
        desk.resume(tenant=tenant)
    desk.pass_time(10)
    while (reserved := desk.reserve(3, "Fair", lease=10_000)).spans:
        got += chunks(reserved)
    return got


@pytest.mark.parametrize("seed", range(24))
def test_the_order_of_what_is_not_yet_leased_is_unchanged_by_a_restart_at_any_point(
    monkeypatch, seed: int
) -> None:
    small_journal(monkeypatch, [0, 2, 512][seed % 3], [1, 256][seed % 2])
    steps = program(seed)
    expected = played(steps, None, audited=True)
    assert len(expected) > 5
    for at in range(len(steps) + 1):
        assert played(steps, at) == expected, f"restart before step {at}"


def test_a_newcomer_after_a_crash_waits_one_turn_and_takes_nothing_more() -> None:
    desk = Desk()
    desk.submit("a", 200)
    desk.complete(desk.reserve(50))
    desk.restart()
    desk.submit("new", 100)
    assert desk.tenants_of(desk.reserve(20)).replace("new", "n") == "na" * 10


def test_a_returning_tenant_collects_no_turns_while_anothers_chunk_is_under_a_one_hour_lease() -> None:
    desk = Desk()
    desk.submit("back", 1), desk.submit("long", 1), desk.submit("busy", 400)
    first = desk.reserve(3, lease=3600)
    desk.complete(some(first, *(chunk for chunk in chunks(first) if first.runs[chunk[0]].tenant == "back")))
    stands = desk.state.window.ack
    for step in range(10):
        desk.pass_time(60)
        desk.complete(desk.reserve(10))
        if step == 5:
            desk.restart()
    desk.submit("back", 50)
    assert desk.tenants_of(desk.reserve(20)).replace("back", "r").replace("busy", "b").count("r") in (10, 11)
    assert desk.state.window.ack == stands, "A stood still all the time"


def test_newest_first_consumers_and_then_a_newcomer() -> None:
    """Picks of other orders charge no turn, so V stands still and the newcomer starts level with the others."""
    desk = Desk()
    desk.submit("a", 200), desk.submit("b", 200)
    for _ in range(10):
        desk.complete(desk.reserve(10, "NewestFirst"))
    desk.restart()
    desk.submit("new", 50)
    word = desk.tenants_of(desk.reserve(30)).replace("new", "n")
    assert {word.count(tenant) for tenant in "abn"} == {10}


def test_idle_paused_and_delayed_time_earns_at_most_one_turn() -> None:
    desk = Desk()
    desk.submit("paused", 50), desk.submit("delayed", 50, delay=60), desk.submit("a", 300)
    desk.submit("idle", 1)
    desk.pause(tenant="paused")
    desk.complete(desk.reserve(101))
    desk.restart()
    desk.pass_time(60)
    desk.resume(tenant="paused")
    desk.submit("idle", 50)
    word = desk.tenants_of(desk.reserve(40))
    counts = {tenant: word.count(tenant) for tenant in ("paused", "delayed", "idle")}
    assert all(abs(count - 10) <= 1 for count in counts.values()), counts


@through_windows
def test_turns_and_v_are_exactly_what_was_stored() -> None:
    desk = Desk()
    for tenant, weight in [("a", 333), ("b", 70_000), ("c", 33_333)]:
        desk.submit(tenant, 500, weight=weight)
    for _ in range(20):
        desk.reserve(37)
        turns = desk.state.tables.plain
        before = (turns.v, dict(turns.turn), dict(turns.rest))
        desk.restart()
        turns = desk.state.tables.plain
        assert (turns.v, turns.turn, turns.rest) == before


def test_ping_pong_gets_half_with_a_restart_after_every_step() -> None:
    desk = Desk()
    desk.submit("whale", 1000)
    desk.submit("ping")
    word = ""
    for _ in range(40):
        got = desk.tenants_of(desk.reserve())
        word += got
        if got == "ping":
            desk.submit("ping")
        desk.restart()
    assert abs(word.count("ping") - word.count("whale")) <= 1


def test_a_retry_is_charged_like_any_dispatch() -> None:
    desk = Desk()
    desk.submit("a", 100, attempts_max=1000, policy="dead_letter"), desk.submit("b", 100)
    word = ""
    for _ in range(40):
        held = desk.reserve()
        tenant = desk.tenants_of(held)
        word += tenant
        desk.fail(held, delay=0) if tenant == "a" else desk.complete(held)
    assert word in ("ab" * 20, "ba" * 20)


@through_windows
def test_inside_a_tenant_it_is_first_in_first_out_and_what_came_back_is_first() -> None:
    desk = Desk()
    x, y = desk.submit("a", 3), desk.submit("a", 2)
    held = desk.reserve(2)
    desk.release(some(held, (x, 1)))
    assert desk.drain() == [(x, 1), (x, 2), (y, 0), (y, 1)]
