"""Local sessions use an archive of classes if there is one of their Java and their Spark; it is made once and whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from fairway.cli import dev_spark
from fairway.errors import BadArgument
from fairway.spark import archive, java, sessions
from tests.spark.test_session import fake_java

pytestmark = pytest.mark.real


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(archive, "_FOLDER", tmp_path / "archives")
    monkeypatch.setenv("JAVA_HOME", home := str(fake_java(tmp_path / "java", "17.0.15")))
    return os.path.join(home, "bin", "java")


class Job:
    """A session whose JVM writes, when it is ended, what it was told to write, or nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, writes: bool = True) -> None:
        self.runs, self._writes, self._options = 0, writes, ""
        monkeypatch.setattr(sessions, "session", self._begin)
        monkeypatch.setattr(archive, "_use", lambda spark, folder: None)
        monkeypatch.setattr(sessions, "end", self._end)

    def _begin(self, *, app: str, conf: dict[str, str]) -> Job:
        self.runs, self._options = self.runs + 1, conf["spark.driver.extraJavaOptions"]
        return self

    def _end(self, spark: Job, seconds: float) -> None:
        told = re.search(r"-XX:ArchiveClassesAtExit=(\S+)", self._options)
        assert told is not None
        if self._writes:
            Path(told[1]).write_bytes(b"classes")


def test_an_archive_is_made_once_and_then_used(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(monkeypatch)
    assert archive.option(program) == ""
    made = archive.make()
    assert made is not None
    assert f"-XX:SharedArchiveFile={made} " in archive.option(program)
    assert (archive.make(), job.runs) == (made, 1)
    assert os.listdir(made.parent) == [made.name]


def test_an_archive_of_another_java_is_not_used(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Job(monkeypatch)
    archive.make()
    os.utime(program, ns=(1, 1))
    assert archive.option(program) == ""


@pytest.mark.parametrize(
    ("folder", "why"), [("two words", "cuts options at white space"), ("file/archives", "cannot be made")]
)
def test_a_place_where_no_archive_can_be_is_told(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, why: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(archive, "_FOLDER", tmp_path / folder)
    with pytest.raises(BadArgument, match=why):
        archive.make()


def test_a_java_that_writes_no_archive_leaves_nothing_and_is_told(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Job(monkeypatch, writes=False)
    assert archive.make() is None
    assert archive.option(program) == ""
    assert dev_spark.spark() == 1
    assert "keeps no classes" in capsys.readouterr().err


def test_the_command_says_where_the_archive_is(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Job(monkeypatch)
    assert dev_spark.spark(json=True) == 0
    assert json.loads(capsys.readouterr().out)["archive"] == str(archive.make())


def test_the_jvm_of_a_local_session_maps_the_archive_that_is_there(spark: Any) -> None:
    from pyspark import SparkContext

    found = java.find()
    assert found is not None
    told = archive.option(found[1])
    maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    mapped = set(re.findall(r"\S+/spark-\w+\.jsa", maps))
    assert mapped == set(re.findall(r"\S+/spark-\w+\.jsa", told.replace("=", " ")))
