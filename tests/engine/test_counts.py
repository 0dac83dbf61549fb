"""Counts at rest are the truth: what stats, tenants and listings tell is what the calls have done."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fairway.engine.commands import ListActive, Submit, Tenants
from fairway.model.page import payload_pages, payloads_of
from fairway.model.submission import Offer
from tests.engine.desk import Desk, chunks, offer, some, through_windows


@pytest.mark.parametrize("seed", range(12))
def test_counts_at_rest_are_the_truth(seed: int) -> None:
    dice = Random(seed)
    desk = Desk(window=(0, 1, 0, 2, 0, 8)[seed % 6])
    state: dict[tuple[int, int], str] = {}
    tenant_of: dict[int, str] = {}
    held = []
    for _ in range(60):
        what = dice.choice(
            ["submit", "reserve", "reserve", "complete", "fail", "release", "cancel", "restart"]
        )
        if what == "submit":
            tenant, n = dice.choice("abc"), dice.randint(1, 6)
            x = desk.submit(tenant, n, policy="dead_letter")
            tenant_of[x] = tenant
            state |= {(x, i): "waiting" for i in range(n)}
        elif what == "reserve":
            reserved = desk.reserve(dice.randint(1, 4), dice.choice(["Fair", "Random", "NewestFirst"]))
            held += [(reserved, chunk) for chunk in chunks(reserved)]
            state |= dict.fromkeys(chunks(reserved), "leased")
        elif what == "cancel" and tenant_of:
            x = dice.choice(list(tenant_of))
            if desk.show(x).state == "active":
                desk.cancel(x)
                state |= {c: "gone" for c in state if c[0] == x and state[c] == "waiting"}
        elif what == "restart":
            desk.restart()
        elif held:
            reserved, chunk = held.pop(dice.randrange(len(held)))
            answer = some(reserved, chunk)
            told = (
                desk.fail(answer, retry=False)
                if what == "fail"
                else getattr(desk, what, desk.release)(answer)
            )
            after = {"done": "done", "dead": "dead", "released": "waiting", "ended": "gone"}
            state[chunk] = after[told[0]]
        check(desk, state, tenant_of)


def check(desk: Desk, state: dict[tuple[int, int], str], tenant_of: dict[int, str]) -> None:
    active = {shown.id: shown for shown in desk.call(ListActive(limit=10_000))}
    stats = desk.stats()
    alive = Counter(s for (id, _), s in state.items() if id in active)
    everywhere = Counter(state.values())
    assert stats.submissions_active == len(active)
    assert (stats.chunks_waiting, stats.chunks_leased) == (alive["waiting"], everywhere["leased"])
    assert (stats.chunks_done, stats.chunks_dead) == (alive["done"], alive["dead"])
    for view in desk.call(Tenants()):
        mine = {chunk: s for chunk, s in state.items() if tenant_of[chunk[0]] == view.name}
        assert view.leased == sum(s == "leased" for s in mine.values())
        assert view.waiting == sum(s == "waiting" for (id, _), s in mine.items() if id in active)
        assert view.submissions == sum(shown.tenant == view.name for shown in active.values())
    for id, tenant in tenant_of.items():
        shown, mine = desk.show(id), Counter(s for (x, _), s in state.items() if x == id)
        assert (shown.tenant, shown.done, shown.failed, shown.leased) == (
            tenant,
            mine["done"],
            mine["dead"],
            mine["leased"],
        )


@through_windows
def test_listings_are_in_order_and_by_metadata() -> None:
    desk = Desk()
    ids = [desk.submit("ab"[i % 2], metadata={"mode": "x" if i % 3 else 1}) for i in range(9)]
    listed = desk.call(ListActive(tenant="a", after=ids[0], limit=2))
    assert [shown.id for shown in listed] == [ids[2], ids[4]]
    assert [shown.id for shown in desk.call(ListActive(metadata={"mode": 1}))] == ids[::3]
    assert desk.call(ListActive(metadata={"mode": "1"})) == [], "a text is not a number"
    assert len(desk.call(ListActive(metadata={"tenant": "b"}))) == 4
    assert desk.call(ListActive(tenant="nobody")) == []


def test_payload_pages_are_stored_as_they_were_given() -> None:
    desk = Desk()
    pages, starts = payload_pages([b"one", b"two" * 30_000, b"three"])
    given = offer("a", 3, page_starts=starts)
    (x,) = desk.call(Submit([Offer(given.described, pages)])).ids
    desk.restart()
    reserved = desk.reserve(3)
    assert reserved.runs[x].page_starts == starts
    stored = desk.store.pages([(x, n) for n in range(len(starts))])
    assert [payload for page in stored.values() for payload in payloads_of(page)] == [
        b"one",
        b"two" * 30_000,
        b"three",
    ]


@through_windows
def test_winners_of_any_range_are_those_that_there_are() -> None:
    desk = Desk()
    x = desk.submit(n=3)
    held = desk.reserve(3)
    desk.complete(some(held, (x, 1)))
    for _ in range(2):
        for start, count, found in [
            (0, 10**18, 1),
            (-5, 3, 0),
            (-5, 7, 1),
            (1, 0, 0),
            (2, 10**15, 0),
            (10**18, 5, 0),
        ]:
            assert len(desk.winners(x, start, count)) == found, (start, count)
        desk.cancel(x) if desk.show(x).state == "active" else None
        desk.release(held), desk.submit("z"), desk.submit("z")


def test_a_tenant_tells_what_it_was_handed_and_how_old_its_oldest_submission_is() -> None:
    desk = Desk()
    first = desk.submit("a", 2)
    desk.pass_time(60.0)
    desk.submit("a"), desk.submit("b")
    held = desk.reserve(3)
    desk.fail(some(held, (first, 0)), delay=0.0)
    desk.reserve(1)
    a, b = desk.call(Tenants())
    assert (a.handed, b.handed, desk.stats().handed) == (3, 1, 4), "a retry is handed out again"
    assert b.oldest - a.oldest == 60.0
    desk.cancel(first)
    (a, b) = desk.call(Tenants())
    assert a.oldest == b.oldest
    assert desk.stats().completed == 0
    desk.complete(desk.reserve(1)), desk.complete(held)
    assert desk.stats().completed == 2, "what ended before is not completed"
