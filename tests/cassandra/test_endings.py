"""What ended is kept as lists, and read as lists: every run is in one, and what is read by range is what was asked for.

The store as shipped, on an imagined cluster: no node is needed to see what it writes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.limits import (
    CASSANDRA_BATCH_BYTES,
    CASSANDRA_ENDING_IDS,
    CASSANDRA_LIVES_IDS,
    CASSANDRA_STRETCH_IDS_MAX,
)
from fairway.model.stored import End, Move, Row
from fairway.store.cassandra.endings import packed, unpacked
from fairway.store.cassandra.planning import by_shard, stretches
from fairway.testing.conformance import Owner
from fairway.testing.imagined.cluster import Cluster

IDS = st.lists(st.integers(0, 2**62), unique=True).map(sorted)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster("endings")


@pytest.fixture
def owner(cluster: Cluster) -> Owner:
    return Owner(cluster.open("q"))


def lists(cluster: Cluster) -> dict[Any, list[int]]:
    """The lists that are there, by when, group and part."""
    return {
        key: unpacked(row.cells["ids"][1])
        for partition in cluster.tables["endings"].partitions.values()
        for key, row in partition.rows.items()
    }


def in_a_row(owner: Owner, many: int) -> list[Row]:
    """Messages of one submit: their ids follow each other."""
    return [Row(owner.id(1) + n, n, "t", 0.0, {}, b"body", (b"payload %d" % n,)) for n in range(many)]


def oldest(owner: Owner, before: float, limit: int) -> list[int]:
    return [id for _, id in owner.store.ended_before(before, limit)]


def ends(rows: list[Row], at: float = 1.0) -> list[End]:
    return [End(row.id, row.pass_, "t", "completed", at, b"end") for row in rows]


@given(IDS)
def test_a_list_is_read_as_it_was_written(ids: list[int]) -> None:
    assert unpacked(packed(ids)) == ids


def test_those_that_end_together_are_one_row(cluster: Cluster, owner: Owner) -> None:
    rows = in_a_row(owner, CASSANDRA_ENDING_IDS + 1)
    owner.write(rows=rows)
    owner.write(ends=ends(rows))
    ids = [row.id for row in rows]
    assert oldest(owner, 2.0, 10_000) == ids
    assert [len(ids) for ids in lists(cluster).values()] == [CASSANDRA_ENDING_IDS, 1], "a long one is two"
    assert not any(len(one.rows) for one in cluster.tables["times"].partitions.values())


def test_a_run_is_in_one_list_for_as_long_as_it_is_ended(cluster: Cluster, owner: Owner) -> None:
    rows = in_a_row(owner, 4)
    ids = [row.id for row in rows]
    owner.write(rows=rows)
    owner.write(ends=ends(rows))
    owner.write(moves=[Move(ids[1], 1, 9)])
    assert oldest(owner, 2.0, 9) == [ids[0], ids[2], ids[3]], "one lives again"
    owner.write(ends=[End(ids[1], 9, "t", "completed", 1.0, b"end")])
    assert oldest(owner, 2.0, 9) == ids, "and ended again, at the same time, in another group"
    owner.write(moves=[Move(ids[2], 2, 7)], ends=[End(ids[2], 7, "t", "completed", 5.0, b"end")])
    assert oldest(owner, 9.0, 9) == [ids[0], ids[1], ids[3], ids[2]]
    assert sorted(lists(cluster).values()) == [[ids[0], ids[3]], [ids[1]], [ids[2]]]
    owner.write(purge=[ids[0], ids[1]])
    assert oldest(owner, 9.0, 9) == [ids[3], ids[2]]
    assert sorted(lists(cluster).values()) == [[ids[2]], [ids[3]]], "an empty list is gone"
    owner.write(purge=ids)
    assert oldest(owner, 9.0, 9) == [] and not lists(cluster)


def test_the_oldest_come_first_whatever_group_ended_them(owner: Owner) -> None:
    rows = in_a_row(owner, 6)
    owner.write(rows=rows)
    for place in (5, 3, 1):
        owner.write(ends=ends([rows[place]]))
    owner.write(ends=ends([rows[4]], at=0.5))
    expected = [rows[place].id for place in (4, 1, 3, 5)]
    assert [oldest(owner, 2.0, limit) for limit in (1, 2, 9)] == [
        expected[:1],
        expected[:2],
        expected,
    ]


@given(st.lists(st.integers(0, 3000), unique=True, min_size=1).map(sorted))
def test_stretches_hold_every_id_once_and_at_most_as_many_others(ids: list[int]) -> None:
    found = list(stretches(ids))
    assert [id for one in found for id in one] == ids
    for one in found:
        assert len(one) <= CASSANDRA_STRETCH_IDS_MAX
        assert one[-1] - one[0] + 1 < 2 * len(one), "a range reads less than twice what is wanted"
    assert all(one[-1] < other[0] for one, other in pairwise(found))


def test_a_long_stretch_is_several_reads() -> None:
    found = [len(one) for one in stretches(range(2 * CASSANDRA_STRETCH_IDS_MAX + 1))]
    assert found == [CASSANDRA_STRETCH_IDS_MAX, CASSANDRA_STRETCH_IDS_MAX, 1]


def test_payloads_of_one_submit_are_read_by_range_and_others_by_list(owner: Owner) -> None:
    rows = in_a_row(owner, 40)
    owner.write(rows=rows)
    near = [row.id for row in rows[:20] if row is not rows[7]]
    far = [rows[25].id, rows[30].id]
    names = [name for name, _ in by_shard("first_pages", "queue", [*near, *far])]
    assert names == ["first_pages_range", "first_pages"]
    wanted = [(id, 0) for id in (*near, *far)]
    bodies = {(row.id, 0): row.pages[0] for row in rows}
    assert owner.store.pages(wanted) == {where: bodies[where] for where in wanted}
    assert (rows[7].id, 0) not in owner.store.pages(wanted), "what lies between is not given"


def test_payloads_wait_for_groups_with_payloads_only(cluster: Cluster, owner: Owner) -> None:
    rows = in_a_row(owner, 8)
    where = [(rows[0].id, 0)]
    owner.write(rows=rows)
    assert cluster.under_way and owner.store.pages(where) == {where[0]: b"payload 0"}
    assert not cluster.under_way, "they were waited for"
    owner.write(ends=ends(rows[1:]))
    under_way = list(cluster.under_way)
    assert under_way and owner.store.pages(where) == {where[0]: b"payload 0"}
    assert cluster.under_way == under_way, "the ends are not"
    owner.write(ends=ends(rows[:1]))
    owner.write(purge=[rows[0].id])
    assert owner.store.pages(where) == {}, "and what was purged is gone at once"


@pytest.mark.parametrize(
    ("many", "end", "parts"),
    [
        (CASSANDRA_LIVES_IDS, b"end", [CASSANDRA_LIVES_IDS]),
        (CASSANDRA_LIVES_IDS + 1, b"end", [CASSANDRA_LIVES_IDS, 1]),
        (20, bytes(CASSANDRA_BATCH_BYTES // 10), [9, 9, 2]),  # ten are more than a message may hold
    ],
)
def test_runs_that_end_alike_are_few_statements_and_small_ones(
    cluster: Cluster, owner: Owner, many: int, end: bytes, parts: list[int]
) -> None:
    rows = in_a_row(owner, many)
    owner.write(rows=rows)
    owner.store.last_number()
    owner.write(ends=[End(row.id, row.pass_, "t", "completed", 1.0, end) for row in rows])
    sent = [one for future in cluster.under_way for one in future._some if one.name == "put_lives"]
    assert [len(one.values[-1]) for one in sent] == parts
    assert len(owner.store.ended("", None, {}, 0, 10_000)) == many


def test_what_is_as_usual_is_not_written(cluster: Cluster, owner: Owner) -> None:
    (row,) = in_a_row(owner, 1)
    owner.write(rows=[row])
    owner.store.last_number()
    (stored,) = (row for one in cluster.tables["runs"].partitions.values() for row in one.rows.values())
    written = {name for name, (_, value) in stored.cells.items()}
    assert written == {"pass", "tenant", "body", "page", "pages", "state", "size"}
    assert owner.store.times("due", (0.0, 0), 9) == []
    owner.write(moves=[Move(row.id, 0, 3)])
    assert [(run.id, run.pass_) for run in owner.store.active()] == [(row.id, 3)]
