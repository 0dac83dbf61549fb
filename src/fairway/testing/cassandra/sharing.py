"""One cluster for a whole run of pytest, whichever of its workers needs it first.

Guards: the workers of a run share one node; it ends with the run, even if the run is killed. Where the machine lacks
what a cluster needs its tests skip, or fail if FAIRWAY_REQUIRE_CASSANDRA=1.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from fairway.errors import NeedMissing
from fairway.testing.cassandra.cluster import Cluster

REQUIRE: Final = "FAIRWAY_REQUIRE_CASSANDRA"
RUNNING: Final = "FAIRWAY_TEST_CASSANDRA"  # host:port of `fairway dev cassandra`, to start none


@dataclass(frozen=True)
class Address:
    """Where a cluster is; `nodes` is also how many copies of everything it keeps."""

    hosts: tuple[str, ...]
    port: int

    @property
    def url(self) -> str:
        """As `fairway.open` wants it, up to and with the slash before the keyspace."""
        return f"cassandra://{','.join(f'{host}:{self.port}' for host in self.hosts)}/"


@contextmanager
def needed() -> Iterator[None]:
    """What is missing on this machine makes a test skip, or fail where it is required."""
    try:
        yield
    except NeedMissing as error:
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{REQUIRE}=1, and {error}", pytrace=False)
        pytest.skip(f"needs Cassandra: {error}")


def shared(folder: Path) -> Address:
    """The one-node cluster of this run, started if nobody has. `folder` is the same for all workers of a run."""
    running = os.environ.get(RUNNING)
    if running:
        host, _, port = running.rpartition(":")
        return Address((host,), int(port))
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "address.json"
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not told.exists():
            with needed():
                cluster = Cluster(folder, 1, user=_run_pid()).start()
            told.write_text(json.dumps({"hosts": cluster.hosts, "port": cluster.port}), encoding="utf-8")
            cluster.leave()
        found = json.loads(told.read_text(encoding="utf-8"))
    return Address(tuple(found["hosts"]), found["port"])


def run_folder(basetemp: Path) -> Path:
    """A folder that all workers of this run see: above a worker's own, or that of a run without workers."""
    return (basetemp.parent if "PYTEST_XDIST_WORKER" in os.environ else basetemp) / "cassandra"


def _run_pid() -> int:
    """The process whose end is the end of the run: that of pytest, not of a worker, which may be done earlier."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
