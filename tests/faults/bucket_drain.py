"""The end of a run on a bucket queue: all that is left is completed, and the whole history told.

Guards: the queue is opened as whoever comes next would open it, on the file that is left.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fairway.testing.history import Header, History, Note, line_bytes, parse
from tests.bucket.storming import at_rest, end_of
from tests.faults.bucket_calls import CONFIG, QUEUE, Calls, bucket_queue

REST_SECONDS = 30.0  # in which all is completed and swept


def drained(path: Path, files: list[Path], number: int, seed: int) -> History:
    """Complete all that is left in the file; gives the history that these files tell, and that of its end."""
    own = path.parent / "drain.jsonl"
    with bucket_queue(path, None) as queue:
        calls = Calls(queue, own, number)
        give_up = time.monotonic() + REST_SECONDS
        while not at_rest(queue) and time.monotonic() < give_up:
            calls.settle("complete", calls.take(100, 0.02))
        end = end_of(queue, Calls.label)
        calls.close()
    lines = [line for file in (*files, own) for line in lines_of(file)]
    lines.sort(key=lambda line: line.t)
    config = {"attempts_max": CONFIG.attempts_max, "skew": 0.0}
    header = Header(queue=QUEUE, config=config, drained=True, origin={"kind": "bucket", "seed": seed})
    return History([header, *lines, Note(time.time(), "drained", end)])


def lines_of(file: Path) -> list[Any]:
    """The lines of a file that has no header."""
    return parse(b'{"is":"header"}\n' + file.read_bytes()).lines[1:] if file.exists() else []


def note_power_loss(file: Path) -> None:
    with file.open("ab") as history:
        history.write(line_bytes(Note(time.time(), "power_loss")))


def acknowledged(history: History) -> int:
    """Messages accepted, handed out and settled, and every other call that was answered."""
    many = 0
    for request in history.requests:
        if not request.answered:
            continue
        if request.op in ("put", "redrive"):
            many += len(request.args["uids"])
        elif request.op == "take":
            many += len(request.ok["leases"])
        else:
            many += len(request.ok) if isinstance(request.ok, list) and request.op != "dead" else 1
    return many
