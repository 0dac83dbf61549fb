"""Handing out: every chunk exactly once, in whatever mixture of orders, with restarts in between."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.engine import run
from fairway.limits import PASSED_CHUNKS_MAX
from fairway.model.dice import Shuffle
from tests.engine.desk import Chunk, Desk, chunks, small_journal, some, through_windows

ORDERS = ["Fair", "OldestFirst", "NewestFirst", "Random"]


@through_windows
@pytest.mark.parametrize("total", [1, 2, 3, 64, 257])
def test_random_hands_out_every_chunk_once(total: int) -> None:
    desk = Desk(audited=total < 100)
    x = desk.submit(n=total)
    got: list[Chunk] = []
    dice = Random(total)
    while (reserved := desk.reserve(dice.randint(1, 7), "Random")).spans:
        got += chunks(reserved)
        if dice.random() < 0.2:
            desk.restart()
    assert sorted(got) == [(x, i) for i in range(total)]
    assert total < 64 or got != sorted(got)
    desk.audit()


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([*ORDERS, "restart", "release", "expire"]), st.integers(1, 5)),
        min_size=4,
        max_size=25,
    ),
    total=st.integers(1, 40),
    groups=st.sampled_from([0, 1, 512]),
    window=st.sampled_from([0, 1, 2, 8]),
    passed=st.sampled_from([1, 2, 256]),
)
def test_mixed_orders_hand_out_every_chunk_exactly_once(
    steps, total: int, groups: int, window: int, passed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_journal(patch, groups, 1)
        patch.setattr(run, "PASSED_CHUNKS_MAX", passed)
        desk = Desk(window=window)
        x = desk.submit(n=total, attempts_max=1000)
        out: set[Chunk] = set()
        held = []
        for what, n in [*steps, ("Random", 10), ("OldestFirst", 50)]:
            if what == "restart":
                desk.restart()
            elif what == "release" and held:
                back = held.pop(0)
                desk.release(some(back, *chunks(back)[:n]))
                out -= set(chunks(back)[:n])
            elif what == "expire" and held:
                last = held.pop()
                desk.renew(last, 0.5)
                desk.pass_time(1)
                out -= set(chunks(last))
            elif what in ORDERS:
                reserved = desk.reserve(n, what, lease=10_000)
                got = chunks(reserved)
                assert not out & set(got), "a chunk that is out was handed out"
                assert len(got) == min(n, total - len(out)), 'never "no work" while there is some'
                out |= set(got)
                if got:
                    held.append(reserved)
        assert out == {(x, i) for i in range(total)}


@pytest.mark.parametrize("order", ORDERS)
def test_reserve_of_k_is_k_single_picks(order: str) -> None:
    words = []
    for sizes in ([1] * 24, [24], [5, 7, 12]):
        desk = Desk(audited=False)
        for tenant, n in [("a", 5), ("b", 9), ("c", 3), ("a", 7)]:
            desk.submit(tenant, n)
        words.append([chunk for size in sizes for chunk in chunks(desk.reserve(size, order))])
        desk.audit()
    assert words[0] == words[1] == words[2]


def test_the_orders_choose_as_they_say() -> None:
    desk = Desk()
    a, b, c = desk.submit("x", 2), desk.submit("y", 2), desk.submit("x", 2)
    assert [id for id, _ in chunks(desk.reserve(2, "NewestFirst"))] == [c, c]
    assert [id for id, _ in chunks(desk.reserve(3, "OldestFirst"))] == [a, a, b]


def test_random_is_uniform_over_chunks_not_submissions() -> None:
    desk = Desk(audited=False)
    small, big = desk.submit("a", 100), desk.submit("b", 900)
    picks = Counter(id for _ in range(10) for id, _ in chunks(desk.reserve(20, "Random")))
    assert picks[small] + picks[big] == 200
    assert 5 <= picks[small] <= 40, "about a tenth"
    desk.audit()


def test_nothing_is_crossed_between_queues_on_one_shelf() -> None:
    desk = Desk()
    x = desk.submit("a", 2)
    held = desk.reserve()
    other = Desk()
    y = other.submit("a", 2)
    assert other.complete(held) == ["lost"] * 1, "another queue has another secret"
    assert other.drain() == [(y, 0), (y, 1)] and desk.complete(held) == ["done"]
    assert desk.show(x).done == 1


@pytest.mark.parametrize(("first", "then"), [("OldestFirst", "Random"), ("Random", "OldestFirst")])
def test_the_last_chunks_of_a_large_submission_are_found_at_once(
    monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    looked = 0

    def counted(look):
        def one(self: Shuffle, at: int) -> int:
            nonlocal looked
            looked += 1
            return look(self, at)

        return one

    monkeypatch.setattr(Shuffle, "at", counted(Shuffle.at))
    monkeypatch.setattr(Shuffle, "place", counted(Shuffle.place))
    desk = Desk(audited=False)
    total, left = 60_006, 6
    x = desk.submit(n=total)
    got = [chunk for _ in range(6) for chunk in chunks(desk.reserve(10_000, first))]
    for n in (1, 2, 3):
        looked = 0
        got += chunks(desk.reserve(n, then))
        assert looked <= n * (PASSED_CHUNKS_MAX + left)
        desk.restart()
    assert sorted(got) == [(x, i) for i in range(total)]
    assert not desk.reserve(1, then).spans
