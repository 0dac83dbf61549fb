"""Listing active submissions: a page is exact, however late it is, and costs what is on it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairway import limits
from fairway.engine import listing
from fairway.engine.commands import Call, ListActive
from tests.engine.desk import Desk, answer

MANY = 5 * limits.LIST_WALK_RUNS


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs that listings looked at."""
    seen: list[int] = []
    real = listing._fits

    def fits(run: Any, command: ListActive) -> bool:
        seen.append(run.id)
        return real(run, command)

    monkeypatch.setattr(listing, "_fits", fits)
    return seen


def desk_of(n: int) -> tuple[Desk, list[int]]:
    desk = Desk(audited=False)
    ids = []
    with desk.one_group():
        for i in range(n):
            tenant = "whale" if i % 10 else f"t{i % 100}"
            ids.append(desk.submit(tenant, 1, metadata={"mode": "x", "part": i}))
    return desk, ids


def test_a_page_costs_what_is_on_it(looked_at: list[int]) -> None:
    desk, ids = desk_of(MANY)

    def page(most: int, **wanted: Any) -> list[int]:
        looked_at.clear()
        shown = [one.id for one in desk.call(ListActive(limit=10, **wanted))]
        assert len(looked_at) <= most, wanted
        return shown

    assert page(10) == ids[:10]
    assert page(10, after=ids[-20]) == ids[-19:-9]
    assert page(20, tenant="whale") == [id for i, id in enumerate(ids) if i % 10][:10]
    assert page(10, tenant="t10", after=ids[20]) == ids[110::100][:10]
    assert page(10, metadata={"mode": "x"}, after=ids[50]) == ids[51:61]
    assert page(1, metadata={"part": MANY - 1}) == ids[-1:]
    assert (
        page(0, metadata={"mode": "none"})
        == page(0, metadata={"part": "1"})
        == page(0, tenant="nobody")
        == []
    )
    late = desk.submit("whale", 1, metadata={"mode": "late"})
    assert page(1, metadata={"mode": "late"}) == [late]


def test_a_page_does_not_walk_over_what_is_gone_again_and_again() -> None:
    desk, ids = desk_of(MANY)
    assert desk.call(ListActive(limit=1))[0].id == ids[0]
    for _ in range(MANY // 100 - 1):
        desk.complete(desk.reserve(100, "OldestFirst"))
    for _ in range(2):
        assert [one.id for one in desk.call(ListActive(limit=10))] == ids[-100:-90]
    assert desk.state.roll._ids is None or len(desk.state.roll._ids) <= 100
    for _ in range(3 * MANY):
        desk.state.roll.add((desk.state.runs[ids[-1]],))
    assert len(desk.state.roll._late) <= 2 * limits.LIST_WALK_RUNS, "nor is it kept if nobody lists"


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("walk", [0, 1_000])
@pytest.mark.parametrize("seed", range(6))
def test_a_listing_that_was_looked_up_long_ago_is_as_things_are_now(
    seed: int, walk: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was submitted, ended and redriven since the store was read, stored or not."""
    monkeypatch.setattr(listing, "LIST_WALK_RUNS", walk)
    rng, desk = Random(seed), Desk(window=window)
    known: dict[int, tuple[str, str]] = {}
    ended: dict[int, tuple[str, str]] = {}

    def change() -> None:
        what = rng.random()
        if what < 0.5 or not known:
            tenant, mode = rng.choice("ab"), rng.choice("xy")
            known[desk.submit(tenant, 1, metadata={"mode": mode})] = (tenant, mode)
        elif what < 0.8 or not ended:
            id = rng.choice(list(known))
            desk.cancel(id)
            ended[id] = known.pop(id)
        else:
            id = rng.choice(list(ended))
            desk.redrive(id)
            known[id] = ended.pop(id)

    for _ in range(25):
        tenant, mode = rng.choice([None, None, "a"]), rng.choice([None, "x", "x"])
        after = rng.choice([0, *known])
        command = ListActive(tenant, {} if mode is None else {"mode": mode}, after, rng.choice([2, 100]))
        call = Call(command)
        with desk.one_group():
            for _ in range(rng.randrange(3)):
                change()
            found = desk.look_up(call)
            for _ in range(rng.randrange(3) if found is not None else 0):  # else it is carried out at once
                change()
                if rng.random() < 0.3:
                    desk.settle()
            draft = desk.carry_out(call, found)
        wanted = [id for id, (t, m) in sorted(known.items()) if tenant in (None, t) and mode in (None, m)]
        shown: Any = answer(draft)
        assert [one.id for one in shown] == [id for id in wanted if id > after][: command.limit]
