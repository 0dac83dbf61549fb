"""Queues to test on: attached to another process's host, and behind a server, in one process or in several."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from tests.server.live import Live, live

_names = itertools.count()
_HOST = """
import sys, fairway
names = [f"q{i}" for i in range(int(sys.argv[2]))]
queues = [fairway.open(sys.argv[1], name) for name in names]
print("ready", flush=True)
sys.stdin.read()
for queue in queues:
    queue.close()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("client")
    with live(folder, objects=[f"file://{folder.parent}", "memory://objects"]) as found:
        yield found


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Iterator[str]]]:
    """A file that another process hosts, with queues that nobody has used."""
    path = tmp_path_factory.mktemp("hosted") / "work.db"
    host = subprocess.Popen(
        [sys.executable, "-c", _HOST, str(path), "60"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None and host.stdin is not None
    assert host.stdout.readline() == "ready\n"
    yield path, (f"q{i}" for i in range(60))
    host.stdin.close()
    assert host.wait(60) == 0
    host.stdout.close()


@pytest.fixture(params=["attached", "http"])
def q(request: pytest.FixtureRequest) -> Iterator[fairway.Queue]:
    if request.param == "http":
        found = fairway.open(request.getfixturevalue("server").url, f"client-{next(_names)}")
    else:
        path, names = request.getfixturevalue("hosted")
        found = fairway.open(path, next(names), create=False, host=False)
    with found:
        yield found
