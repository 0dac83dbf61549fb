"""What a process costs over time: memory, open files, and the size of its queue's files.

Guards: two stretches of a run are compared by their medians, so that one bad moment decides nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 1024 * 1024


class Sample(msgspec.Struct, frozen=True):
    """One look."""

    seconds: float
    memory_bytes: int
    files: int
    stored_bytes: int


def look(path: Path, began: float, pid: int | str = "self") -> Sample:
    process = Path(f"/proc/{pid}")
    memory = int((process / "statm").read_text().split()[1]) * PAGE_BYTES
    files = len(list((process / "fd").iterdir()))
    return Sample(time.monotonic() - began, memory, files, stored(path))


def stored(path: Path) -> int:
    """The bytes of the database and its log."""
    found = (path.with_name(path.name + end) for end in ("", "-wal"))
    return sum(one.stat().st_size for one in found if one.exists())


class Gauges:
    """Looks at this process again and again, in a thread."""

    def __init__(self, path: Path, every_seconds: float) -> None:
        self.samples: list[Sample] = []
        self._path, self._every = path, every_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(self._every):
            self.samples.append(look(self._path, began))

    def __enter__(self) -> Gauges:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def thirds(self, what: Callable[[Sample], float]) -> tuple[float, float]:
        """The median of the second and of the last third; the first one is for warming up."""
        third = len(self.samples) // 3
        assert third >= 3, "too few looks to compare anything"
        return median(map(what, self.samples[third : 2 * third])), median(
            map(what, self.samples[2 * third :])
        )


class Bounds(NamedTuple):
    """How much more the last third of a run may take than the one before it: a share and some bytes, some files."""

    memory: tuple[float, int]
    stored: tuple[float, int]
    files: int


# In seconds caches still fill, and the log goes up and down by the bytes at which it is copied; hours level both.
SHORT = Bounds(memory=(0.15, 8 * MIB), stored=(0.3, 24 * MIB), files=7)
LONG = Bounds(memory=(0.02, 4 * MIB), stored=(0.05, 16 * MIB), files=1)


def assert_flat(gauges: Gauges, bounds: Bounds = SHORT) -> str:
    """Memory, open files and stored bytes do not grow; gives what was seen, for a person."""
    memory = gauges.thirds(lambda one: one.memory_bytes)
    files = gauges.thirds(lambda one: one.files)
    size = gauges.thirds(lambda one: one.stored_bytes)
    told = (
        f"memory {memory[0] / MIB:.1f} -> {memory[1] / MIB:.1f} MiB, open files {files[0]:.0f} -> {files[1]:.0f}, "
        f"stored {size[0] / MIB:.1f} -> {size[1] / MIB:.1f} MiB"
    )
    for seen, (share, more) in ((memory, bounds.memory), (size, bounds.stored)):
        assert seen[1] < seen[0] * (1 + share) + more, told
    assert files[1] <= files[0] + bounds.files, told
    return told
