"""Clusters whose nodes have wrong clocks."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairway.errors import NeedMissing
from fairway.testing.cassandra import Cluster
from fairway.testing.cassandra.jars import jars
from fairway.testing.cassandra.java import find_java

SOURCE = Path(__file__).with_name("OffsetClock.java")


def skewed(folder: Path, *skew_millis: int) -> Cluster:
    """A cluster that is not started yet, one node for each clock. Raises NeedMissing without a compiler."""
    compiler = find_java().with_name("javac")
    if not compiler.exists():
        raise NeedMissing(
            "a node with a wrong clock is compiled, and there is no javac 17; run `make system`"
        )
    classes = folder / "classes"
    command = [str(compiler), "-cp", ":".join(map(str, jars())), "-d", str(classes), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return Cluster(folder, len(skew_millis), skew_millis=skew_millis, classes=(classes,))
