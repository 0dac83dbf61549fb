"""The imagined cluster is a cluster: the shipped store passes its conformance suite there."""

from __future__ import annotations

from itertools import permutations

import pytest

from fairway.store.cassandra.connection import statements
from fairway.testing.conformance import Make, StoreConformance
from fairway.testing.imagined.cluster import Bound, Cluster
from fairway.testing.imagined.cql import understand
from fairway.testing.imagined.world import simulate

SEEDS = 60
SLICES = 4


class TestImaginedCluster(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        return Cluster("conformance").open  # where writes time out a call may fail, as the simulation shows


@pytest.mark.parametrize("part", range(SLICES))
def test_nothing_is_wrong_on_an_imagined_cluster(part: int) -> None:
    for seed in range(part, SEEDS, SLICES):
        simulation = simulate(seed)
        history = simulation.recorder.history()
        told = [violation.story(history) for violation in simulation.outcome.violations[:3]]
        assert not told, f"seed {seed}\n" + "\n".join(told)


def test_one_seed_is_one_history_on_the_cluster_too() -> None:
    assert simulate(4, 60).recorder.dump() == simulate(4, 60).recorder.dump()


def test_writes_of_dead_owners_arrive_late() -> None:
    faults = [simulate(seed, 60).outcome.faults for seed in range(6)]
    assert sum(one.get("late_writes", 0) for one in faults) > 20, faults


def test_writes_give_the_same_rows_in_any_order_and_however_often() -> None:
    where = ("queue", 1, 0, 5, "")
    writes = [
        Bound("put_object", (*where, 0, b"old", 3)),
        Bound("drop_object", (4, *where, 0)),
        Bound("put_object", (*where, 0, b"new", 7)),
        Bound("clear_objects", (6, "queue", 1, 0, 0, "", 0, 0, 9, "", 0)),
    ]
    for some in permutations(writes + writes[:1]):
        cluster = Cluster()
        for one in some:
            cluster.write([one])
        assert cluster.open("q")._connection.read("object", ("queue", 1, 0, 5, "", 0)) == [(b"new",)]


def test_every_statement_of_the_store_is_understood() -> None:
    for file in ("fence.cql", "write.cql", "read.cql"):
        for name, text in statements(file).items():
            assert understand(text).table, name
    with pytest.raises(ValueError, match="not understood"):
        understand("DELETE FROM runs WHERE queue = ? ALLOW FILTERING")


def test_a_clearing_that_times_out_stops_no_owner() -> None:
    """Seed 33: the range that covers removed rows times out after its group was stored; a later group covers them."""
    assert not simulate(33).outcome.violations
