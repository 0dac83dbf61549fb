"""A real cluster of three nodes whose clocks are 5 s apart, for one module to break.

Guards: nothing here weakens what is tested: patience ends, and what a cluster answers is final.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.policies import HostDistance, RoundRobinPolicy

from fairway.errors import GroupUnknown, NeedMissing, StoreFailed
from fairway.store.cassandra import Address, CassandraStore, Connection
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.jars import jars
from fairway.testing.cassandra.java import find_java
from fairway.testing.cassandra.sharing import needed

SKEW_MILLIS = (0, 5000, -5000)
CLOCK = Path(__file__).with_name("OffsetClock.java")
PATIENCE_SECONDS = 60.0


class Through(RoundRobinPolicy):
    """Requests go through these nodes and no others; which ones may change."""

    def __init__(self, *addresses: str) -> None:
        super().__init__()
        self.addresses = set(addresses)

    def distance(self, host: Any) -> int:
        return HostDistance.LOCAL

    def make_query_plan(self, working_keyspace: Any = None, query: Any = None) -> Iterator[Any]:
        for host in super().make_query_plan(working_keyspace, query):
            if host.address in self.addresses:
                yield host


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes with three copies of everything, clocks 5 s before and after the first."""
    folder = tmp_path_factory.mktemp("three")
    with needed():
        compiler = find_java().with_name("javac")
        if not compiler.exists():
            raise NeedMissing(
                "a node with a wrong clock is compiled, and there is no javac 17; run `make system`"
            )
        paths = ":".join(map(str, jars()))
        command = [str(compiler), "-cp", paths, "-d", str(folder / "classes"), str(CLOCK)]
        subprocess.run(command, check=True, capture_output=True)
        cluster = Cluster(folder, 3, skew_millis=SKEW_MILLIS, classes=(folder / "classes",))
    with cluster:
        connection = Connection.open(address_of(cluster))
        try:
            CassandraStore.open(connection, "first").close()  # the tables, once
        finally:
            connection.close()
        yield cluster


def address_of(cluster: Cluster) -> Address:
    return Address(tuple((host, cluster.port) for host in cluster.hosts), "fairway_faults")


def url_of(cluster: Cluster) -> str:
    hosts = ",".join(f"{host}:{cluster.port}" for host in cluster.hosts)
    return f"cassandra://{hosts}/fairway_faults?realm={uuid.uuid4().hex}"


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask until the cluster answers; what it answers is final."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except (StoreFailed, GroupUnknown):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
