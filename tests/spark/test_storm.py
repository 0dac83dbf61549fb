"""Random instants: drivers and executors are killed whenever it pleases, in each mode, and every row is there once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairway
import fairway.spark
from tests.proving import number
from tests.spark.conftest import end_session
from tests.spark.executors import CONF, Killer, folder_for_marks, slow, told
from tests.spark.killing import MODES, QUERIES
from tests.spark.pipeline import collected, numbers, submit
from tests.spark.test_driver_kills import ROOT, last_counts

pytestmark = [pytest.mark.real, pytest.mark.proof]
SEEDS = number("SPARK_SEEDS", 4)
CHUNKS = number("SPARK_CHUNKS", 120)  # of each query
DRIVER_KILLS = number("SPARK_DRIVER_KILLS", 5)  # that must land in a batch
# A kill falls so many lines of the log after a driver's first batch began, at most; three queries write some twenty
# lines for a batch of each. So it falls at any place of a batch, however slow the machine is.
LINES, SECONDS = 40, 0.5
EXECUTOR_KILLS = number("SPARK_EXECUTOR_KILLS", 20)  # that must land on a task at work


def written(top: Path) -> list[list[str]]:
    """What the drivers logged of each query."""
    logs = [top / query / "log" for query in QUERIES]
    return [log.read_text().splitlines() if log.exists() else [] for log in logs]


def since(before: list[list[str]], top: Path) -> list[list[str]]:
    return [now[len(then) :] for then, now in zip(before, written(top), strict=True)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_drivers_killed_at_random_instants_lose_and_double_nothing(
    tmp_path: Path, seed: int, record_proof: Callable[..., None]
) -> None:
    dice = random.Random(seed)
    urls = {query: str(tmp_path / query / "q.db") for query in QUERIES}
    for url in urls.values():
        Path(url).parent.mkdir()
        for tenant in range(3):
            submit(url, numbers(CHUNKS)[tenant::3], tenant=f"t{tenant}")
        with fairway.open(url) as q:
            q.configure(
                attempts_max=1000
            )  # every kill of a single chunk counts, and none of them is its fault
    command = [sys.executable, "-m", "tests.spark.killing", str(tmp_path), "none", "0", *QUERIES]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    kills = landed = 0
    for _ in range(200):
        before, due = written(tmp_path), dice.randint(1, LINES)
        with open(tmp_path / "out", "ab") as out:
            program = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=out, stderr=out, start_new_session=True
            )
        while landed < DRIVER_KILLS and program.poll() is None:
            if sum(len(lines) for lines in since(before, tmp_path)) >= due:
                break
            time.sleep(0.02)
        try:
            if program.wait(dice.uniform(0.0, SECONDS) if landed < DRIVER_KILLS else 1200) == 0:
                break
        except subprocess.TimeoutExpired:
            kills += 1
            # The driver, its JVM and all their workers, at one instant.
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            time.sleep(0.5)
            # What a driver logs last of a batch says that it was committed.
            landed += any(
                lines and not lines[-1].startswith("committed") for lines in since(before, tmp_path)
            )
    assert program.returncode == 0, (tmp_path / "out").read_text()[-3000:]
    pairs = [
        (collected(urls["references"]), Counter(range(CHUNKS * 10))),
        (collected(urls["sink"]), Counter(range(CHUNKS * 10))),
        (last_counts(urls["rows"]), Counter(x % 7 for x in range(CHUNKS * 10))),
    ]
    wrong = sum(((expected - found) + (found - expected)).total() for found, expected in pairs)
    rows = sum(expected.total() for _, expected in pairs)
    name = f"Spark drivers killed, both modes and a sink by hand, seed {seed}"
    note = f"operations are rows; {kills} kills; those in a batch are counted"
    record_proof(name, operations=rows, faults=landed, lost=wrong, seed=seed, note=note)
    assert landed >= DRIVER_KILLS
    assert all(found == expected for found, expected in pairs)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = fairway.spark.session("local-cluster[2,1,1024]", conf=CONF)
    yield made
    end_session(made)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_executors_killed_at_random_instants_lose_and_double_nothing_however_often(
    cluster: Any, tmp_path: Path, seed: int, mode: str, record_proof: Callable[..., None]
) -> None:
    """In rows mode the query is stateful, with a shuffle: an executor takes what it had written with it."""
    url, marks = str(tmp_path / "q.db"), folder_for_marks(tmp_path)
    for tenant in range(3):
        submit(url, numbers(CHUNKS)[tenant::3], tenant=f"t{tenant}")
    with fairway.open(url) as q:
        q.configure(attempts_max=1000)
    work = told(mode, slow(marks, 0.3, last=(CHUNKS - 1) * 10))
    if mode == "rows":
        each = work["rows"]
        work |= {
            "rows": lambda df: each(df).selectExpr("x % 7 k").groupBy("k").count(),
            "output_mode": "complete",
        }
    with Killer(marks, seed, EXECUTOR_KILLS, (0.2, 6.0)) as killer:
        fairway.spark.process(cluster, url, max_chunks=12, chunks_per_task=2, progress=False, **work)
    rows = CHUNKS * 10
    if mode == "references":
        found, expected = collected(url), Counter(range(rows))
    else:
        found, expected = last_counts(url), Counter(x % 7 for x in range(rows))
    wrong = ((expected - found) + (found - expected)).total()
    name = f"Spark executors killed, {mode}, seed {seed}"
    note = f"operations are rows; {killer.kills} kills; those of executors with a chunk at work are counted"
    record_proof(name, operations=rows, faults=killer.landed, lost=wrong, seed=seed, note=note)
    assert killer.landed >= EXECUTOR_KILLS
    assert found == expected
