"""Workers that are killed at any moment: every chunk is worked off, and has the one result that it should have."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fairway
from tests.proving import number

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
KILLS = 5
LONG_KILLS = number("WORKER_KILLS", 1_000)  # in `make proof`
SEED = 3
WORKERS = 3
CHUNKS = 20  # of one submission
WAITING_MIN = 100  # so that nobody who is killed was idle
PATIENCE_SECONDS = 120.0

_SCRIPT = """
import sys
import fairway
from tests.work.functions import told_done, work_a_little
told_done(fairway.Queue)
fairway.work(sys.argv[1], work_a_little, batch=4, lease_seconds=1.5)
"""


class Storm:
    """Some workers on one file; a killed one is replaced at once."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path, self._folder = folder / "work.db", folder
        self.dice = random.Random(seed)
        self.kills = self.hits = 0  # a hit met a worker in the middle of a chunk
        self.submissions: list[int] = []
        self._workers: list[subprocess.Popen[bytes]] = []

    def _start(self) -> subprocess.Popen[bytes]:
        paths = f"{ROOT}:{ROOT / 'src'}"
        environment = os.environ | {"PYTHONPATH": paths, "FAIRWAY_TEST_FOLDER": str(self._folder)}
        return subprocess.Popen([sys.executable, "-c", _SCRIPT, str(self.path)], cwd=ROOT, env=environment)

    def blow(self, q: fairway.Queue, kills: int) -> None:
        """Kill workers until so many were in the middle of a chunk, then let the last ones finish."""
        self._workers = [self._start() for _ in range(WORKERS)]
        try:
            give_up = time.monotonic() + PATIENCE_SECONDS
            while self.hits < kills:
                assert time.monotonic() < give_up, "no worker is at work"
                if q.stats().chunks_waiting < WAITING_MIN:
                    self._submit(q)
                assert all(one.poll() is None for one in self._workers), "a worker ended by itself"
                busy = [n for n, one in enumerate(self._workers) if self._began(one)]
                time.sleep(self.dice.random() * 0.05)
                if busy:
                    self._kill(self.dice.choice(busy))
                    give_up = time.monotonic() + PATIENCE_SECONDS
            for id in self.submissions:
                assert q.wait(id, PATIENCE_SECONDS).state == "completed"
        finally:
            began = [self._began(one) for one in self._workers]
            for one in self._workers:
                one.terminate()
            ends = [one.wait(PATIENCE_SECONDS) for one in self._workers]
        # One that was just started may not listen to signals yet.
        assert all(end == 0 for end, at_work in zip(ends, began, strict=True) if at_work), ends

    def _submit(self, q: fairway.Queue) -> None:
        payloads = [b"%d of %d" % (n, len(self.submissions)) for n in range(CHUNKS)]
        self.submissions.append(q.submit(payloads, attempts_max=1000).id)

    def _began(self, worker: subprocess.Popen[bytes]) -> bool:
        return (self._folder / f"began-{worker.pid}").exists()

    def _kill(self, n: int) -> None:
        pid = self._workers[n].pid
        self._workers[n].kill()
        self._workers[n].wait()
        self.hits += any(self._folder.glob(f"at-{pid}-*"))
        self._workers[n] = self._start()
        self.kills += 1


def weather(folder: Path, kills: int, record: Callable[..., None] = lambda *_, **__: None) -> None:
    storm = Storm(folder, SEED)
    with fairway.open(storm.path) as q:
        storm.blow(q, kills)
        wrong, registered = 0, set[str]()
        for place, id in enumerate(storm.submissions):
            found = {result.index: result.data for result in q.results(id)}
            expected = {n: (b"%d of %d" % (n, place))[::-1] for n in range(CHUNKS)}
            wrong += found != expected
            registered |= {f"{id} {index}" for index in found}
        done = Counter((folder / "done").read_text().splitlines())
        # Told done, forgotten, and done again; or told done and not there.
        wrong += sum(many > 1 or chunk not in registered for chunk, many in done.items())
        stats = q.stats()
    chunks = CHUNKS * len(storm.submissions)
    print(f"{storm.kills} kills, {storm.hits} in a chunk, {chunks} chunks, {done.total()} told done")
    record(
        "workers killed",
        operations=chunks + done.total(),  # accepted, and told done
        faults=storm.hits,
        lost=wrong,
        seed=SEED,
        note=f"{storm.kills:,} kills; those in the middle of a chunk are counted",
    )
    assert not wrong
    assert stats.completed == chunks, "every chunk was completed once"
    assert stats.handed > chunks, "no killed worker held anything"


def test_workers_that_are_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    weather(tmp_path, KILLS)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_hundreds_of_workers_that_are_killed_lose_and_double_nothing(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    weather(tmp_path, LONG_KILLS, record_proof)
