"""Clearing by range: every removed key is covered, nothing that is there is."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairway.store.cassandra.gaps import gaps

KEYS = st.lists(st.integers(0, 40), unique=True).map(lambda numbers: sorted((n,) for n in numbers))


@given(KEYS, KEYS)
def test_ranges_cover_what_was_dropped_and_nothing_that_is_there(live: list, dropped: list) -> None:
    first = dropped[0] if dropped else (0,)
    below = max([key for key in live if key < first], default=(-1,))
    above = [key for key in live if below < key and dropped and key <= dropped[-1]]
    found = gaps(below, above, dropped)
    covered = {(n,) for after, upto in found for n in range(after[0] + 1, upto[0] + 1)}
    assert covered >= set(dropped) - set(live)
    assert not covered & set(live)
    assert all(one[1] < other[1] for one, other in pairwise(found))


def test_a_range_reaches_back_to_the_last_thing_that_is_there() -> None:
    assert gaps((-1,), [], [(5,), (7,)]) == [((-1,), (7,))], "so it covers every range before it"
    assert gaps((3,), [(6,)], [(5,), (7,)]) == [((3,), (5,)), ((6,), (7,))]
