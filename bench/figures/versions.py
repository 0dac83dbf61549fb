"""Versions of what is measured besides Fairway itself: servers, clusters, drivers, Spark and Java.

Guards: a version is what the program says of itself when it is measured; one that says nothing is left out.
"""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def of_packages(*names: str) -> dict[str, str]:
    """Python packages that are installed, by their names."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def of_program(name: str, program: str, flag: str) -> dict[str, str]:
    """A program, under the name that people know it by."""
    try:
        ended = subprocess.run([program, flag], capture_output=True, text=True, timeout=60)
    except OSError:
        return {}
    words = f"{ended.stdout} {ended.stderr}".split()
    said = next((word for word in words if any(letter.isdigit() for letter in word)), "")
    return {name: said.removeprefix("v=").strip('",')} if said else {}


def of_cassandra(session: Any) -> dict[str, str]:
    """The node that a session of the driver talks to, and the driver."""
    (row,) = session.execute("SELECT release_version FROM system.local")
    return {"Cassandra": str(row[0]), **of_packages("cassandra-driver")}


def of_java() -> dict[str, str]:
    """The Java that nodes run on which a bench starts itself."""
    from fairway.testing.cassandra.java import find_java

    return of_program("Java", str(find_java()), "-version")


def of_spark(session: Any) -> dict[str, str]:
    """A session of Spark, and the Java below it."""
    java = session.sparkContext._jvm.java.lang.System.getProperty("java.version")
    return {"Spark": str(session.version), "Java": str(java)}
