"""A command line in this process, and a process that hosts a file beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.cli.app import run

HOST = """
import sys, fairway
with fairway.open(sys.argv[1]) as q:
    print("ready", flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Told:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def jsons(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, str]:
        return json.loads(self.err)["error"]


Cli = Callable[..., Told]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Carry out a command in this process, in a folder of its own."""
    for name in ("FAIRWAY_STORE", "FAIRWAY_QUEUE", "FAIRWAY_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Told:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        said = capfd.readouterr()
        return Told(code, said.out, said.err)

    yield call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A queue that nobody hosts, with some work in it."""
    with fairway.open(tmp_path / "work.db") as q:
        q.submit([b"one", b"two", b"three"], tenant="acme", metadata={"mode": "preview"})
        q.submit(chunks=10, tenant="whale")
    return tmp_path / "work.db"


@pytest.fixture
def hosted(file: Path) -> Iterator[Path]:
    """The same, hosted by another process."""
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdin is not None and host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        yield file
        host.stdin.close()
        assert host.wait(60) == 0
