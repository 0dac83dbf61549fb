"""Pages that go before a group which is never stored: somebody removes them, whenever its owner dies.

The store as shipped, on an imagined cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairway.errors import GroupUnknown, StoreFailed
from fairway.store.cassandra.fencing import Fencing
from fairway.store.memory.shelf import Fault
from fairway.testing.conformance import Owner
from fairway.testing.imagined.cluster import Cluster

LARGE = b"x" * 5000


@pytest.fixture
def cluster() -> Cluster:
    return Cluster("pages")


def bundles(cluster: Cluster) -> list[tuple[int, int]]:
    """The groups of which pages are there, as (range id, number)."""
    partitions = cluster.tables["bundles"].partitions
    return [(range_id, number) for (_, range_id, number), one in partitions.items() if one.rows]


def burn(cluster: Cluster, owner: Owner) -> None:
    """A group with a large page gets lost on its way, and its number is burnt."""
    group = owner.group(rows=[owner.row(owner.number + 1, pages=(LARGE,))])
    cluster.faults = lambda group: Fault.UNKNOWN_LOST
    with pytest.raises(GroupUnknown):
        owner.store.commit(group)
    cluster.faults = lambda group: Fault.OK
    assert owner.store.settle(group) is False
    owner.number += 1


def cannot(*_: object) -> None:
    raise StoreFailed


def test_pages_of_a_burnt_group_leave_although_its_owner_dies_before_it_removes_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(cluster.open("q"))
    with monkeypatch.context() as patch:
        patch.setattr(Fencing, "drop_bundle", cannot)
        burn(cluster, owner)
    assert bundles(cluster) == [(1, 1)]
    Owner(cluster.open("q"))
    assert bundles(cluster) == [], "the next owner removed them"


def test_no_pages_are_written_before_those_of_a_burnt_group_are_gone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So there is at most one such bundle, and its number is in the fence."""
    owner = Owner(cluster.open("q"))
    with monkeypatch.context() as patch:
        patch.setattr(Fencing, "drop_bundle", cannot)
        burn(cluster, owner)
        for _ in range(2):
            with pytest.raises(StoreFailed):
                owner.write(rows=[owner.row(7, pages=(LARGE,))])
    assert bundles(cluster) == [(1, 1)]
    owner.write(rows=[owner.row(7, pages=(LARGE,))])
    assert bundles(cluster) == [(1, 2)]


def test_a_stored_group_keeps_its_pages_when_others_are_swept(cluster: Cluster) -> None:
    owner = Owner(cluster.open("q"))
    burn(cluster, owner)
    owner.write(rows=[owner.row(7, pages=(LARGE,))])
    other = Owner(cluster.open("q"))
    found: dict[Any, bytes] = other.store.pages([(owner.id(7), 0)])
    assert found == {(owner.id(7), 0): LARGE}
