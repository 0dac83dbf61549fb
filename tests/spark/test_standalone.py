"""A cluster of its own, with a master and a worker as processes: a killed executor loses and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairway.spark
from fairway.spark.archive import option
from fairway.spark.java import prepare
from fairway.spark.sessions import LOCAL
from tests.spark.conftest import end_session
from tests.spark.executors import CONF, MODES, folder_for_marks, kills, told
from tests.spark.pipeline import collected, numbers, submit

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and a worker, as on a real cluster."""
    import pyspark

    options = LOCAL + option(prepare())
    folder = tmp_path_factory.mktemp("standalone")
    home = os.path.dirname(pyspark.__file__)
    environment = os.environ | {
        "SPARK_HOME": home,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": options,
    }
    started: list[subprocess.Popen[bytes]] = []
    out = folder / "master.log"

    def start(kind: str, *more: str) -> None:
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *more]
        with open(out, "ab") as log:
            started.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            )

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        address = _said(out, "Starting Spark master at ", "spark://")
        start("worker.Worker", "--cores", "2", "--memory", "2g", "--webui-port", "0", address)
        _said(out, "Successfully registered with master", "")
        yield address
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _said(log: Path, text: str, start: str) -> str:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for line in log.read_text().splitlines() if log.exists() else ():
            if text in line:
                return start + line.partition(start)[2].strip() if start else line
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-2000:])


@pytest.fixture(scope="module")
def spark(standalone: str) -> Iterator[Any]:
    """One application for all modes: the second finds its executors there, but for the one that was killed."""
    options = LOCAL + option(prepare())  # as for local sessions: all of it is on this machine
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
    }
    made = fairway.spark.session(standalone, conf=CONF | local)
    yield made
    end_session(made)


@pytest.mark.parametrize("mode", MODES)
def test_on_a_standalone_cluster_a_killed_executor_loses_and_doubles_nothing(
    standalone: str, spark: Any, tmp_path: Path, mode: str
) -> None:
    url, marks = str(tmp_path / "q.db"), folder_for_marks(tmp_path)
    submit(url, numbers(6))
    assert spark.sparkContext.master == standalone
    work = told(mode, kills(20, marks, 1))
    fairway.spark.process(spark, url, max_chunks=3, chunks_per_task=1, progress=False, **work)
    assert len(os.listdir(marks)) == 1, "the kill came"
    assert collected(url) == Counter(range(60))
