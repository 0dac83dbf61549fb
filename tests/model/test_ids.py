"""Ids: strictly rising, of their queue, and the same by the hundred as one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.model.ids import all_of, next_id, next_ids, queue_of, seconds_of

MOMENTS = st.floats(min_value=1.5e9, max_value=1.9e9) | st.just(0.0)
LASTS = st.integers(0, 2**62)


@given(MOMENTS, LASTS, st.integers(0, 1023))
def test_an_id_is_above_the_last_one_and_of_its_queue(now: float, last: int, queue: int) -> None:
    # The last one is of this queue too, as it always is.
    last = last & ~(1023 << 12) | queue << 12
    id = next_id(now, last, queue)
    assert id > last and queue_of(id) == queue


@given(MOMENTS, LASTS, st.integers(0, 1023), st.integers(0, 10_000))
def test_many_ids_are_those_that_one_by_one_would_give(now: float, last: int, queue: int, n: int) -> None:
    last = last & ~(1023 << 12) | queue << 12
    one_by_one: list[int] = []
    at = last
    for _ in range(n):
        at = next_id(now, at, queue)
        one_by_one.append(at)
    assert next_ids(now, last, queue, n) == one_by_one


def test_the_time_in_an_id_is_that_of_its_making() -> None:
    assert abs(seconds_of(next_id(1_800_000_000.5, 0, 3)) - 1_800_000_000.5) < 0.001


@given(st.lists(st.integers(1, 2**62), min_size=1, max_size=5), st.integers(0, 1023), st.booleans())
def test_all_of_a_queue_are_those_of_which_each_is(ids: list[int], queue: int, near: bool) -> None:
    if near:
        ids = [(ids[0] >> 12 << 12) | (id & 4095) for id in ids]
    assert all_of(queue_of(ids[0]), ids) == (len({queue_of(id) for id in ids}) == 1)
    assert all_of(queue, ids) == all(queue_of(id) == queue for id in ids)
