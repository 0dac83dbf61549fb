"""A simulated world whose owners keep their queue on an imagined Cassandra cluster, with the store as shipped.

Guards: one seed is one history here too. Bounds of the store are small, so that pages go before groups, logs are long
enough to be trimmed, and what was removed is cleared by range, all within some hundred groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from fairway.store.cassandra import endings, fencing, joining, lives, planning, store, tables
from fairway.store.port import Store
from fairway.testing.imagined.cluster import Cluster
from fairway.testing.profile import Profile
from fairway.testing.simulate import STEPS, Outcome, Simulation
from fairway.testing.simulate import simulate as simulate_in
from fairway.testing.world import QUEUE, World

_SMALL: Final[tuple[tuple[Any, str, int], ...]] = (
    (fencing, "CASSANDRA_LOG_BYTES_MAX", 900),
    (fencing, "CASSANDRA_PAGE_BYTES", 300),
    (endings, "CASSANDRA_ENDING_IDS", 2),
    (lives, "CASSANDRA_LIVES_IDS", 2),
    (lives, "INLINE_PAGE_BYTES_MAX", 24),
    (planning, "CASSANDRA_STRETCH_IDS_MAX", 4),
    (planning, "INLINE_PAGE_BYTES_MAX", 24),
    (store, "CASSANDRA_LOG_GROUPS_MAX", 2),
    (store, "CASSANDRA_PLACES_MAX", 4),
    (tables, "CASSANDRA_TOMBSTONES_MAX", 6),
    (tables, "CASSANDRA_GAP_ROWS_MAX", 8),
    (tables, "CASSANDRA_RANGES_MAX", 3),
    (joining, "_JOINED", 2),
    (joining, "CASSANDRA_JOIN_ROWS_MAX", 6),
    (tables, "CASSANDRA_BATCH_ROWS", 3),
)


class ClusterWorld(World):
    """Owners come and go; the cluster stays, and with it whatever they had sent."""

    def __init__(self, profile: Profile) -> None:
        profile.by_range = False
        profile.faults.pop("power_loss", None)  # a quorum has it, or it was never acknowledged
        if not profile.faults:
            profile.fault_rate = 0.0
        dice = Random(f"{profile.seed} weather")
        self.cluster = Cluster(profile.seed, dice.choice((0.0, 0.1, 0.3)) if profile.faults else 0.0)
        super().__init__(profile, shelf=self.cluster)

    def open_store(self) -> Store:
        return self.cluster.open(QUEUE)

    def calm(self) -> None:
        self.cluster.trouble = 0.0
        super().calm()

    def down(self, what: str) -> None:
        super().down(what)
        self.faults["late_writes"] += len(self.cluster.under_way)
        self.cluster.power_loss()


@contextmanager
def small() -> Iterator[None]:
    """The bounds of the store are small."""
    before = [getattr(module, name) for module, name, _ in _SMALL]
    try:
        for module, name, value in _SMALL:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(_SMALL, before, strict=True):
            setattr(module, name, value)


def simulate(seed: int, steps: int = STEPS, *, keep: Iterable[int] | None = None) -> Simulation:
    """Run one seed on an imagined cluster."""
    with small():
        return simulate_in(seed, steps, keep=keep, make=ClusterWorld)


def outcome_of(seed: int, steps: int) -> Outcome:
    """One seed, without its history."""
    return simulate(seed, steps).outcome
