"""Executors that are killed: by a chunk, or by somebody outside at random instants.

Guards: only executors below this program are killed; a kill counts as landed when a chunk that was begun and not ended
on that executor was begun again afterwards, so no clock is believed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from tests.spark.pipeline import doubled

MODES = ("references", "rows")
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.task.maxFailures": "2",
    "spark.executor.instances": "2",
    "spark.deploy.maxExecutorRetries": "-1",  # a cluster that gives up on us would end a storm
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).resolve().parents[2]),  # the functions of these tests
}
_BACKEND = b"CoarseGrainedExecutorBackend"
_HELD_SECONDS = 600  # a killer that died must not hold a task for ever


def parent_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid")).split()[1])


def is_executor(pid: int) -> bool:
    return _BACKEND in Path(f"/proc/{pid}/cmdline").read_bytes()


def executor_of(pid: int) -> int:
    """The executor's JVM, which is above a Python worker and its daemon."""
    while pid > 1:
        pid = parent_of(pid)
        if is_executor(pid):
            return pid
    raise AssertionError("no executor above this process")


def executors() -> list[int]:
    """The executors that live below this program; others on this machine are not ours."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and is_executor(int(entry.name)) and _is_below(int(entry.name)):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue  # it ended while we looked
    return sorted(found)


def _is_below(pid: int) -> bool:
    while pid > 1:
        pid = parent_of(pid)
        if pid == os.getpid():
            return True
    return False


def kills(first: int, marks: str, times: int) -> Any:
    """A function that kills its executor on the chunk that begins with `first`, a number of times."""

    def run(table: pa.Table) -> pa.Table:
        if table.num_rows and table["x"][0].as_py() == first and len(os.listdir(marks)) < times:
            Path(marks, str(time.time_ns())).touch()
            os.kill(executor_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)
        return doubled(table)

    return run


def told(mode: str, fn: Any, rows: Any = None) -> dict[str, Any]:
    """What `process` is told: a function of chunks, or the same function over rows."""
    if mode == "references":
        return {"fn": fn}
    return {"rows": rows or in_rows(fn), "schema": "x long"}


def in_rows(fn: Any) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from fn(pa.Table.from_batches([batch])).to_batches()

    return lambda df: df.mapInArrow(run, "x long, y long")


def folder_for_marks(folder: Path) -> str:
    (marks := folder / "marks").mkdir()
    return str(marks)


def slow(marks: str, seconds: float, last: int) -> Any:
    """A function that notes where chunks begin and end; the one with the row `last` waits until enough were killed."""

    def run(table: pa.Table) -> pa.Table:
        if table.num_rows:
            rows, pid = table["x"].to_pylist(), executor_of(os.getpid())
            _note(marks, "begin", pid, rows[0])
            time.sleep(seconds)
            until = time.monotonic() + _HELD_SECONDS
            while last in rows and not os.path.exists(f"{marks}/enough") and time.monotonic() < until:
                time.sleep(0.05)
            _note(marks, "end", pid, rows[0])
        return doubled(table)

    return run


def _note(marks: str, *words: object) -> None:
    """One write to the end of the log, so that lines of several processes stay whole."""
    log = os.open(f"{marks}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, (" ".join(map(str, words)) + "\n").encode())
    os.close(log)


class Killer:
    """Kills executors of this program at random instants until so many kills have landed, or it is over."""

    def __init__(self, marks: str, seed: int, enough: int, pause_seconds: tuple[float, float]) -> None:
        self._marks, self._dice = Path(marks), random.Random(seed)
        self._enough, self._pause = enough, pause_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="executor-killer", daemon=True)
        self.cut: list[tuple[int, set[int]]] = []  # lines of the log before a kill, and chunks it cut off
        self.kills = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while self.landed < self._enough:
            if self._over.wait(self._dice.uniform(*self._pause)):
                return
            alive, lines = executors(), self.log()
            # A machine that starts executors slower than we kill would never come to work: one must have begun some,
            # and after a kill that cut nothing off the next one waits for something to cut off.
            missed = bool(self.cut) and not self.cut[-1][1]
            some = [pid for pid in alive if at_work(lines, pid)] if missed else alive
            if not some or not any(pid in alive for _, pid, _ in lines):
                continue
            victim = self._dice.choice(some)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            self.kills += 1
            self.cut.append((len(lines), at_work(lines, victim)))
        (self._marks / "enough").touch()

    def log(self) -> list[tuple[str, int, int]]:
        """(begin or end, executor, first row of the chunk)."""
        try:
            lines = (self._marks / "log").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [(what, int(pid), int(first)) for what, pid, first in map(str.split, lines)]

    @property
    def landed(self) -> int:
        """Kills of an executor with a chunk at work, which was begun again afterwards."""
        lines = self.log()
        again = [{first for what, _, first in lines[at:] if what == "begin"} for at, _ in self.cut]
        return sum(bool(chunks & begun) for (_, chunks), begun in zip(self.cut, again, strict=True))


def at_work(lines: list[tuple[str, int, int]], executor: int) -> set[int]:
    """The chunks that this executor began and did not end."""
    found: set[int] = set()
    for what, pid, first in lines:
        if pid == executor:
            found.add(first) if what == "begin" else found.discard(first)
    return found
