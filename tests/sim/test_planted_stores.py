"""Bugs planted in the shipped stores are found: Cassandra's by the simulator on an imagined cluster, SQLite's by the
suite that every store has to pass."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fairway.store.port import Store
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import Make, Owner, StoreConformance
from fairway.testing.imagined.world import simulate
from fairway.testing.planted import planted
from fairway.testing.planted.clustering import CLUSTER_BUGS
from fairway.testing.planted.filing import FILE_BUGS
from fairway.testing.planted.searching import found_by
from tests.sim.found import FOUND_IN_FILES, FOUND_ON_CLUSTERS
from tests.sim.scratch import Scratch

SEEDS_MAX = 2_000
PROOF = Path(__file__).parents[2] / "docs" / "proof.md"


@cache
def is_clean(seed: int) -> bool:
    return not simulate(seed).outcome.violations


@pytest.mark.parametrize("bug", CLUSTER_BUGS)
def test_a_bug_of_the_cassandra_store_is_found_on_an_imagined_cluster(bug: str) -> None:
    seed, check = FOUND_ON_CLUSTERS[bug]
    assert check in found_by(bug, seed, bugs=CLUSTER_BUGS, run=simulate), f"seed {seed} does not show it"
    assert is_clean(seed), f"seed {seed} fails without the bug"


@pytest.mark.proof
def test_every_bug_of_the_cassandra_store_is_found_from_scratch(record_proof: Callable[..., None]) -> None:
    scratch = Scratch(CLUSTER_BUGS, simulate, SEEDS_MAX)
    record_proof("planted bugs of the Cassandra store found from scratch", **scratch.figures())
    assert not scratch.hidden, f"{SEEDS_MAX} seeds do not show that {scratch.hidden}"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    opened: list[Store] = []

    def make(queue: str = "q") -> Store:
        opened.append(SqliteStore.open(tmp_path / "work.db", queue))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def conforms(rule: str, make: Make) -> None:
    """One rule of the suite, with what it asks for."""
    store = make()
    given: dict[str, Any] = {"make": make, "store": store, "bad": "wrong place"}
    method = getattr(StoreConformance(), rule)
    asked = inspect.signature(method).parameters
    if "owner" in asked:
        given["owner"] = Owner(store)
    method(**{name: given[name] for name in asked})


@pytest.mark.parametrize("bug", FILE_BUGS)
def test_a_bug_of_the_sqlite_store_is_found_by_the_suite_of_stores(bug: str, make: Make) -> None:
    with planted(bug, FILE_BUGS), pytest.raises((AssertionError, pytest.fail.Exception)):
        conforms(FOUND_IN_FILES[bug], make)


@pytest.mark.parametrize("rule", sorted(set(FOUND_IN_FILES.values())))
def test_the_rules_that_find_them_hold_without_a_bug(rule: str, make: Make) -> None:
    conforms(rule, make)


def test_each_bug_of_a_store_is_in_the_proof_with_what_finds_it() -> None:
    assert set(FOUND_ON_CLUSTERS) == set(CLUSTER_BUGS) and set(FOUND_IN_FILES) == set(FILE_BUGS)
    page = PROOF.read_text(encoding="utf-8")
    clusters = re.findall(r"^\| Cassandra: ([^|]+) \| seed ([\d,]+), `(\w+)` \|$", page, re.MULTILINE)
    files = re.findall(r"^\| SQLite: ([^|]+) \| `(\w+)` \|$", page, re.MULTILINE)
    assert {bug: (int(seed.replace(",", "")), check) for bug, seed, check in clusters} == FOUND_ON_CLUSTERS
    assert dict(files) == FOUND_IN_FILES
