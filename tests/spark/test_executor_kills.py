"""Executors are killed in the middle of a batch, by the machine or by a chunk: every row once, and nobody helps."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairway
import fairway.spark
from tests.spark.conftest import end_session
from tests.spark.executors import CONF, MODES, Killer, at_work, folder_for_marks, kills, slow, told
from tests.spark.pipeline import collected, numbers, submit

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = fairway.spark.session("local-cluster[2,1,1024]", conf=CONF)
    yield made
    end_session(made)


@pytest.mark.parametrize("mode", MODES)
def test_an_executor_killed_in_a_batch_loses_and_doubles_nothing(
    cluster: Any, tmp_path: Path, mode: str
) -> None:
    url, marks = str(tmp_path / "q.db"), folder_for_marks(tmp_path)
    submit(url, numbers(8))
    work = told(mode, kills(30, marks, 1))
    fairway.spark.process(cluster, url, max_chunks=4, chunks_per_task=1, progress=False, **work)
    assert len(os.listdir(marks)) == 1, "the kill came"
    assert collected(url) == Counter(range(80))


@pytest.mark.parametrize("mode", MODES)
def test_executors_killed_at_random_instants_lose_and_double_nothing(
    cluster: Any, tmp_path: Path, mode: str
) -> None:
    url, marks = str(tmp_path / "q.db"), folder_for_marks(tmp_path)
    submit(url, numbers(12))
    with fairway.open(url) as q:
        q.configure(attempts_max=1000)  # a kill of a batch of one chunk counts, and none is its fault
    work = told(mode, slow(marks, 0.3, last=110))
    with Killer(marks, seed=7, enough=2, pause_seconds=(0.2, 2.0)) as killer:
        fairway.spark.process(cluster, url, max_chunks=6, chunks_per_task=1, progress=False, **work)
    assert killer.landed >= 2, f"{killer.kills} were killed, {killer.landed} of them at work"
    assert collected(url) == Counter(range(120))
    with fairway.open(url) as q:
        assert [(one.state, one.done) for one in q.submissions()] == [("completed", 12)]
        assert list(q.dead()) == []


def test_a_kill_lands_only_where_a_chunk_was_at_work_and_is_begun_again(tmp_path: Path) -> None:
    killer, log = Killer(str(tmp_path), 1, 1, (0.0, 1.0)), tmp_path / "log"
    log.write_text("begin 5 10\nend 5 10\nbegin 5 20\nbegin 6 30\n")
    assert (at_work(killer.log(), 5), at_work(killer.log(), 6)) == ({20}, {30})
    killer.cut = [(4, {20}), (4, set())]
    assert killer.landed == 0
    log.write_text(log.read_text() + "begin 6 10\n")
    assert killer.landed == 0, "that one had ended"
    log.write_text(log.read_text() + "begin 6 20\n")
    assert killer.landed == 1


def test_a_chunk_that_kills_its_executor_ends_in_the_dead_letters(cluster: Any, tmp_path: Path) -> None:
    url, marks = str(tmp_path / "q.db"), folder_for_marks(tmp_path)
    sub = submit(url, numbers(2))
    with fairway.open(url) as q:
        q.configure(attempts_max=2, retry_delay_seconds=0.1)
    done = fairway.spark.process(cluster, url, fn=kills(10, marks, 99), chunks_per_task=1, progress=False)
    assert done.restarts >= 2 and len(os.listdir(marks)) >= 4, "each start tries it twice"
    assert collected(url) == Counter(range(10))
    with fairway.open(url) as q:
        assert [(dead.submission, dead.index) for dead in q.dead()] == [(sub.id, 1)]
