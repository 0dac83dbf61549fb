"""The jars of a node: fetched once with Maven, checked against their locked hashes, kept in the user's cache.

Guards: nothing is run that is not exactly what was locked; a fetch that was interrupted leaves nothing that is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from fairway.errors import NeedMissing, OurError

NODE = files("fairway.testing.cassandra") / "node"
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_SECONDS: Final = 900  # 67 MB on a slow line
_TOLD_LINES: Final = 15  # of what Maven said last


def jars() -> list[Path]:
    """The jars, fetched if they are not here yet."""
    wanted = locked()
    key = hashlib.sha256("".join(sorted(wanted.values())).encode()).hexdigest()[:12]
    folder = cache() / f"cassandra-{key}"
    if not folder.is_dir():
        with _alone(cache() / "cassandra.lock"):
            if not folder.is_dir():
                _fetch(folder, wanted)
    return sorted(folder.glob("*.jar"))


def locked() -> dict[str, str]:
    """The SHA-256 of each jar by its name, which is group, artifact and version."""
    lines = (NODE / "jars.sha256").read_text(encoding="utf-8").split("\n")
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def cache() -> Path:
    """Where what was fetched is kept, for every checkout on this machine."""
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(above) / "fairway"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check(folder: Path, wanted: dict[str, str]) -> None:
    """Hold what was fetched against the lock."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    wrong = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    if wrong:
        raise OurError(f"these jars are not what was locked, and are not used: {', '.join(wrong)}")


def _fetch(folder: Path, wanted: dict[str, str]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NeedMissing("Cassandra is fetched with Maven, and there is no `mvn`; run `make system`")
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        work = Path(made)
        (work / "pom.xml").write_text((NODE / "pom.xml").read_text(encoding="utf-8"), encoding="utf-8")
        options = ["-DincludeScope=runtime", "-DoutputDirectory=jars", "-Dmdep.prependGroupId=true"]
        command = [maven, "-B", "-q", _PLUGIN, *options]
        try:
            run = subprocess.run(
                command, cwd=work, capture_output=True, text=True, timeout=_FETCH_SECONDS, stdin=subprocess.DEVNULL
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NeedMissing(f"Maven fetched nothing in {_FETCH_SECONDS} s; check the network") from error
        if run.returncode:
            told = "\n".join((run.stdout + run.stderr).splitlines()[-_TOLD_LINES:])
            raise NeedMissing(f"Maven cannot fetch Cassandra; check the network and its settings:\n{told}")
        check(work / "jars", wanted)
        (work / "jars").rename(folder)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
