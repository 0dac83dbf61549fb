"""Ranges between rows that stay are joined: few are left, nothing that is there goes, no row is written often.

The store as shipped, on an imagined cluster, whose ranges can be counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.limits import CASSANDRA_JOIN_ROWS_MAX, CASSANDRA_RANGES_MAX
from fairway.model.stored import Drop, End, Kind, Put, Row
from fairway.store.cassandra.joining import Ranges
from fairway.testing.conformance import Owner
from fairway.testing.imagined.cluster import Bound, Cluster

MESSAGES = 1000
TOMBSTONES_MAX = 1000


class Counted(Cluster):
    """A cluster that keeps what was removed by range or by key, and what was written, of what a reload reads."""

    def __init__(self, seed: object) -> None:
        super().__init__(seed)
        self.ranges: dict[Any, dict[tuple[Any, Any], int]] = {}
        self.keys: dict[Any, dict[Any, int]] = {}
        self.put = Counter[Any]()

    def write(self, some: list[Bound]) -> None:
        for bound in some:
            verb, _, table = bound.name.partition("_")
            table = table.rstrip("s")
            if table not in ("level", "object"):
                continue
            if verb == "put":
                self.put[table, bound.values[:-1]] += 1
                continue
            stamp, where, key = bound.values[0], (table, bound.values[2]), bound.values[3:]
            if verb == "drop":
                self.keys.setdefault(where, {})[key] = stamp
            elif stamp:  # not what the first owner covered in the empty table
                half = len(key) // 2
                self.ranges.setdefault(where, {})[key[:half], key[half:]] = stamp
        super().write(some)

    def left(self) -> tuple[int, int]:
        """Ranges, and keys, that no later range covers."""
        ranges = keys = 0
        for where in self.ranges.keys() | self.keys.keys():
            widest: list[tuple[Any, Any, int]] = []
            wide_first = sorted(self.ranges.get(where, {}).items(), key=lambda one: one[0][1], reverse=True)
            for (after, upto), stamp in sorted(wide_first, key=lambda one: (-one[1], one[0][0])):
                if not any(low <= after and upto <= high for low, high, _ in widest):
                    widest.append((after, upto, stamp))
            ranges += len(widest)
            for key, stamp in self.keys.get(where, {}).items():
                keys += not any(low < key <= high and at >= stamp for low, high, at in widest)
        return ranges, keys


@pytest.mark.parametrize(
    ("stays", "batch"), [(20, 30), (3, 30), (3, 500)], ids=["few", "many", "many, by range"]
)
def test_rows_that_stay_leave_few_ranges_between_them(stays: int, batch: int) -> None:
    """One tenant of so many is paused: its rows stay, while those of the others come and go between them."""
    cluster = Counted("joining")
    owner = Owner(cluster.open("q"))
    for start in range(0, MESSAGES, 500):
        numbers = range(start, start + 500)
        rows = [
            Row(owner.id(n), n, "paused" if n % stays == 0 else "t", 0.0, {}, b"b%d" % n) for n in numbers
        ]
        owner.write(rows=rows, puts=[Put(Kind.PROGRESS, row.id, 0, b"p%d" % row.pass_) for row in rows])
        gone = [row for row in rows if row.tenant != "paused"]
        for at in range(0, len(gone), batch):
            some = gone[at : at + batch]
            ends = [End(row.id, row.pass_, row.tenant, "completed", 1.0, b"") for row in some]
            owner.write(ends=ends, drops=[Drop(Kind.PROGRESS, row.id, 0) for row in some])
    kept = list(range(0, MESSAGES, stays))
    assert owner.active() == kept
    assert [run.body for run in owner.store.active()] == [b"b%d" % n for n in kept]
    objects = [(id, body) for id, _, body in owner.store.objects(Kind.PROGRESS)]
    assert objects == [(owner.id(n), b"p%d" % n) for n in kept]
    ranges, keys = cluster.left()
    assert 2 * ranges + keys < TOMBSTONES_MAX, (ranges, keys)
    assert ranges <= CASSANDRA_RANGES_MAX + 20, "there was one between any two rows that stay"
    many = sum(cluster.put.values()) / len(cluster.put)
    assert many < 1 + 6 / stays, "a row that stays is written a few times, all others once"


def test_rows_that_are_many_between_few_ranges_are_left_alone() -> None:
    """Every fiftieth leaves: to write forty-nine again for each range would cost more than the range does."""
    cluster = Counted("joining")
    owner = Owner(cluster.open("q"))
    rows = [Row(owner.id(n), n, "t", 0.0, {}, b"b") for n in range(3000)]
    for at in range(0, len(rows), 1000):
        owner.write(rows=rows[at : at + 1000])
    for at in range(0, len(rows), 100):
        ends = [End(row.id, row.pass_, "t", "completed", 1.0, b"") for row in rows[at : at + 100 : 50]]
        owner.write(ends=ends)
    owner.store.close()
    assert max(cluster.put.values()) == 1
    ranges, keys = cluster.left()
    assert (ranges, keys) == (60, 0)


KEYS = st.tuples(st.integers(0, 60), st.integers(1, 9)).map(lambda one: ((one[0],), (one[0] + one[1],)))


@given(st.lists(KEYS, min_size=1, max_size=60))
def test_every_range_is_in_the_stretch_that_joins_it(made: list[Any]) -> None:
    ranges = Ranges()
    for after, upto in made:
        ranges.made(after, upto)
    assert len(ranges) <= len(made)
    stretch = ranges.stretch()
    assert (stretch.after, stretch.upto) == (min(one[0] for one in made), max(one[1] for one in made))
    assert stretch.rows_max <= CASSANDRA_JOIN_ROWS_MAX


def test_joined_stretches_are_joined_again_a_few_at_a_time() -> None:
    ranges, told, joins = Ranges(), [], Counter[int]()
    for n in range(256):
        for at in range(CASSANDRA_RANGES_MAX):
            ranges.made((n * 100 + at,), (n * 100 + at,))
        stretch = ranges.stretch()
        while stretch is not None:
            joins[stretch.size] += 1
            told.append(stretch)
            stretch = ranges.joined(stretch)
    assert joins == {0: 256, 1: 64, 2: 16, 3: 4, 4: 1}
    assert (told[-1].after, told[-1].ranges) == ((0,), 256 * CASSANDRA_RANGES_MAX)
    assert len(ranges) == 0
