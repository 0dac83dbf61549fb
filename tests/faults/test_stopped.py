"""SIGSTOP of a worker for twice its lease, and back: its stale results are refused, its chunks were done by others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import fairway
from fairway.testing.checker import check_history
from fairway.testing.history import Begin, End, Header, History, Line, Note
from tests.faults.sleeper import LEASE_SECONDS
from tests.kill.draining import drain
from tests.kill.recorded import Given, Lines, Recorded
from tests.kill.unseen import leave_out_unseen_leases
from tests.kill.worker import CALLS_PER_LIFE

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent.parent
SLEEPER = [sys.executable, "-m", "tests.faults.sleeper"]
WAITING = 40  # chunks that always wait for somebody
PATIENCE_SECONDS = 120.0


class Sleeper:
    """One worker process, and a thread that stops it whenever it holds something.

    A stop counts if the worker sent its complete after it: on a busy machine the signal may come too late for that.
    """

    def __init__(self, command: list[str], stops: int, enough: threading.Event) -> None:
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.outcomes: Counter[str] = Counter()
        self.stops = 0
        self._wanted, self._enough = stops, enough
        self.thread = threading.Thread(target=self._follow)
        self.thread.start()

    def _follow(self) -> None:
        assert self.process.stdout is not None
        resumed = float("inf")
        for line in self.process.stdout:
            if (
                line == "held\n"
                and self._wanted
                and not (self.stops >= self._wanted and self._enough.is_set())
            ):
                os.kill(self.process.pid, signal.SIGSTOP)
                time.sleep(2 * LEASE_SECONDS)
                resumed = time.monotonic()
                os.kill(self.process.pid, signal.SIGCONT)
            elif line not in ("held\n", "ready\n"):
                sent, *outcomes = line.split()
                self.stops += float(sent) >= resumed
                self.outcomes.update(outcomes)
                resumed = float("inf")

    def end(self) -> None:
        self.process.kill()
        self.thread.join(PATIENCE_SECONDS)
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


def offer(n: int) -> Given:
    return {
        "tenant": f"t{n % 3}",
        "total": 1,
        "payloads": [f"{n}"],
        "metadata": {"mark": n},
        "policy": "dead_letter",
        "key": f"key {n}",
        "attempts_max": 1000,
    }


def merged(files: list[Path]) -> History:
    """The lines of all processes in the order of their times; the last one of a killed process may be cut off."""
    decode = msgspec.json.Decoder(Line).decode
    lines = [decode(raw) for file in files for raw in file.read_bytes().split(b"\n")[:-1]]
    told = [line for line in lines if isinstance(line, Begin | End | Note)]
    return History([lines[0], *sorted(told, key=lambda line: line.t)])


def told_to(workers: list[Sleeper]) -> Counter[str]:
    return sum((worker.outcomes.copy() for worker in workers), Counter[str]())


def stale_of(told: Counter[str]) -> int:
    """Taken by another since, or done by it."""
    return told["lost"] + told["ended"]


def stop_holders(folder: Path, sleepers: int, stops_each: int, record: Callable[..., None]) -> None:
    queue, history = folder / "work.db", folder / "history.jsonl"
    offset = time.time() - time.monotonic()
    lines = Lines(history, offset, 0)
    lines.write(Header(drained=True, origin={"stops": sleepers * stops_each}))
    lines.started()
    with fairway.open(queue) as q:
        recorded = Recorded(q, lines, 0)
        enough = threading.Event()  # somebody has done most of it, and somebody woke up too late
        # The last one is never stopped and takes what the others' leases let go.
        workers = [
            Sleeper(
                [*SLEEPER, str(queue), str(folder / f"sleeper{n}"), str(offset), str(n)],
                stops_each * (n <= sleepers),
                enough,
            )
            for n in range(1, sleepers + 2)
        ]
        try:
            made = 0
            give_up = time.monotonic() + PATIENCE_SECONDS + stops_each * 6 * LEASE_SECONDS
            while not enough.is_set() or any(worker.stops < stops_each for worker in workers[:-1]):
                assert time.monotonic() < give_up, [(worker.stops, worker.outcomes) for worker in workers]
                told = told_to(workers)
                if stale_of(told) and told["done"] > made // 2:
                    enough.set()
                if q.stats().chunks_waiting < WAITING:
                    made += 1
                    recorded.submit("producer", "put", [offer(made)], 1, made)
                else:
                    time.sleep(0.01)
        finally:
            for worker in workers:
                worker.end()
    lines.close()
    drain(queue, Lines(history, offset, (sleepers + 2) * CALLS_PER_LIFE), sleepers + 2, [])
    told = told_to(workers)
    found = merged([history, *(one for one in folder.glob("sleeper*"))])
    leave_out_unseen_leases(found)  # the workers were killed whatever they were doing
    violations = [violation.story(found) for violation in check_history(found)]
    print(f"{sleepers * stops_each} stops of holders, {made} chunks, told {dict(told)}")
    assert not violations, "\n".join(violations[:5])
    stale = stale_of(told)
    assert stale, "somebody woke up with a stale result"
    assert told["done"] > made // 2
    record(
        "workers stopped (SIGSTOP) for twice their lease while they hold leases",
        operations=made + sum(told.values()),
        faults=sleepers * stops_each,
        lost=len(violations),
        note=f"{stale:,} stale results came, none was accepted",
        history=found,
    )


@pytest.mark.parametrize(
    ("play", "stops"),
    [
        ("print('held', time.monotonic(), sep='\\n', end=' done\\n', flush=True)", 0),
        ("print('held', flush=True); time.sleep(1); print(time.monotonic(), 'done', flush=True)", 1),
    ],
    ids=["after", "before"],
)
def test_a_stop_that_comes_after_the_complete_is_not_counted(play: str, stops: int) -> None:
    worker = Sleeper([sys.executable, "-c", f"import time; {play}; time.sleep(60)"], 1, threading.Event())
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not worker.outcomes:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    worker.end()
    assert worker.stops == stops


def test_a_worker_stopped_for_twice_its_lease_never_leaves_a_stale_result(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    stop_holders(tmp_path, 3, 1, record_proof)


@pytest.mark.proof
def test_two_hundred_stops_of_workers_leave_no_stale_result(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    stop_holders(tmp_path, 8, 25, record_proof)
