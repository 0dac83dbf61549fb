"""Processes that end or stop at an exact point inside the ring."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.ring.face import Ring

# Where a writer can end, by the letters of the seed's list; the first part of each name is the point in ring.c.
WRITERS = {
    "1 a: has a cursor, no space": 1,
    "2 b: has space, nobody moved the head": 2,
    "3 b: has space, no mark": 3,
    "4 c: mark, no size": 4,
    "5 d: size, half of the message": 5,
    "6 e: all written, not committed": 6,
}
COMMITTED = 7
READERS = {"8 taken, nobody moved the head": 8, "9 copied, not acknowledged": 9}
ACKNOWLEDGED = 10
ANNOUNCING = 11
ROBBING = 12  # knows that the owner is dead, and has not resolved his block yet
FREEING = 13  # has walked, and has not freed the places of the dead yet
LOOKING = {  # has read how far the ring is written, and not yet the word of the block it looks at
    "14 at the tail": (14, lambda victim: victim.report()),
    "15 for a report": (15, lambda victim: victim.report()),
    "16 for the dead": (16, lambda victim: victim.recover()),
}


def child(act: Callable[[], object]) -> int:
    """Do something in a forked process."""
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return pid


def handle(faults: Any, path: Path, point: int = 0, kind: int = signal.SIGKILL) -> Any:
    """A handle of the extension with fault points, which raises a signal at one of them."""
    fd = os.open(path, os.O_RDWR)
    try:
        made = faults.Handle(fd)
    finally:
        os.close(fd)
    made.fault(point, kind)
    return made


def die(faults: Any, path: Path, point: int, act: Callable[[Any], object]) -> None:
    """A process does something and is killed at a point; it must have been there."""
    pid = child(lambda: act(handle(faults, path, point)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL, f"point {point} was not met"


def stop(faults: Any, path: Path, point: int, act: Callable[[Any], object]) -> int:
    """A process does something and stops at a point."""
    pid = child(lambda: act(handle(faults, path, point, signal.SIGSTOP)))
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"point {point} was not met"
    return pid


def drain(ring: Ring, seconds: float = 0.3) -> list[bytes]:
    """Everything that comes until nothing does for a while; long enough for the dead to be seen."""
    found: list[bytes] = []
    while (message := ring.pop(seconds)) is not None:
        found.append(message)
    return found


def wait_for(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Until it is true; a busy machine is not a reason to fail."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)
