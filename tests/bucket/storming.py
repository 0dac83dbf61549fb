"""A storm on a bucket queue: processes that are killed at any instant, then a drain, then the checker."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import fairway
from fairway.bucket import statements as s
from fairway.bucket.places import LOWEST
from fairway.bucket.taking import read_index
from fairway.testing.history import Header, History, Note, parse
from fairway.testing.violation import Violation
from tests.bucket import keeping
from tests.bucket.worker_script import Recorded

SCRIPT = Path(__file__).parent / "worker_script.py"
ROLES = ("produce", "produce", "consume", "consume", "consume")


class Storm:
    """Some processes on one queue, each replaced when it is killed."""

    def __init__(self, url: str, folder: Path, seed: int, queue: str = "storm") -> None:
        self.url, self.folder, self.queue = url, folder, queue
        self.dice = Random(seed)
        self.kills = 0
        self._lives = 0
        self._processes: dict[int, subprocess.Popen[str]] = {}

    def start(self, place: int) -> None:
        self._lives += 1
        history = str(self.folder / f"history-{self._lives}.jsonl")
        command = [sys.executable, str(SCRIPT), self.url, self.queue, history, str(self._lives), ROLES[place]]
        root = str(Path(__file__).resolve().parents[2])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
        self._processes[place] = process

    def ready(self, place: int) -> bool:
        """Whether a process has opened the queue; it says so by one line."""
        output = self._processes[place].stdout
        assert output is not None
        return bool(select.select([output], [], [], 0)[0])

    def kill(self, place: int) -> None:
        process = self._processes.pop(place)
        assert process.poll() is None, "a worker ended by itself"
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self.kills += 1

    def blow(self, kills: int, seconds_max: float) -> None:
        """Kill and replace processes that have worked for a moment, so many times; then end them all."""
        since: dict[int, float] = {}
        try:
            for place in range(len(ROLES)):
                self.start(place)
            end = time.monotonic() + seconds_max
            while self.kills < kills and time.monotonic() < end:
                time.sleep(self.dice.uniform(0.02, 0.2))
                now = time.monotonic()
                for place in self._processes:
                    if self.ready(place):
                        since.setdefault(place, now + self.dice.uniform(0.1, 1.0))
                for place in [place for place, at in since.items() if at < now]:
                    del since[place]
                    self.kill(place)
                    self.start(place)
        finally:
            for place in list(self._processes):
                self.kill(place)

    def drain(self, seconds: float = 90.0) -> History:
        """Complete what is left, let the repairer clean up, and give the whole history."""
        own = str(self.folder / "history-drain.jsonl")
        with fairway.open(self.url, self.queue, kind="bucket") as queue:
            most = queue.configure(seal_seconds=0.5).attempts_max
            recorded = Recorded(queue, own, "drain-999")
            until = time.monotonic() + seconds
            while time.monotonic() < until and not at_rest(queue):
                recorded.settle("complete", recorded.take(100, 0.5))
            end = end_of(queue)
            recorded.close()
        return self._history(end, most)

    def _history(self, end: dict[str, Any], attempts_max: int) -> History:
        lines: list[Any] = []
        for file in sorted(self.folder.glob("history-*.jsonl")):
            whole = file.read_bytes().rpartition(b"\n")[0]  # a killed process may leave half a line
            head = b'{"is":"header"}\n'
            lines += parse(head + whole).lines[1:]
        lines.sort(key=lambda line: line.t)
        config = {"attempts_max": attempts_max, "skew": 0.0}
        header = Header(config=config, origin={"kind": "bucket"}, drained=True)
        return History([header, *lines, Note(time.time(), "drained", end)])


def index_of(queue: fairway.BucketQueue) -> list[bytes]:
    """Every entry of the index, those at and below the floor too."""
    desk = queue._verbs._desk
    return [row.bucket for row in desk.run(read_index(desk.queue.generation, LOWEST))]


def at_rest(queue: fairway.BucketQueue) -> bool:
    """Whether nothing is left to deliver, and the repairer has swept up."""
    stats = queue.stats()
    return stats.ready + stats.delayed + stats.leased == 0 and not index_of(queue)


def end_of(
    queue: fairway.BucketQueue, label: Callable[[bytes, bytes], str] = Recorded.label
) -> dict[str, Any]:
    """What the storage holds at the end, as its port tells it and as it lies there; `label` tells a message."""
    desk = queue._verbs._desk
    generation = desk.queue.generation
    # The index before the buckets: one that is removed in between is no bucket without an entry.
    floor, index = desk.run(s.read(s.ReadQueue(queue.name, generation))).floor, index_of(queue)
    found = keeping.kept(desk._storage, generation)
    stats = queue.stats()
    dead = [label(bytes.fromhex(letter.id), letter.payload or b"") for letter in queue.dead()]
    assert len(dead) == len(set(dead)), "a dead letter twice"
    return {
        "live": generation.hex(),
        "waiting": [label(row.uid, row.body or b"") for row in keeping.waiting(found)],
        "dead": dead,
        "above_floor": sum(bucket > floor for bucket in index),
        "below_floor": sum(bucket <= floor for bucket in index),
        "unnamed": keeping.unnamed(found, set(index)),
        "ghosts": keeping.ghosts(found),
        "counted": [stats.ready, stats.delayed, stats.leased, stats.dead],
    }


def stories(history: History, violations: list[Violation], most: int = 3) -> str:
    """How many things are wrong, and the first of them told."""
    told = "\n".join(violation.story(history) for violation in violations[:most])
    return f"{len(violations)} violations, the first of them:\n{told}"
