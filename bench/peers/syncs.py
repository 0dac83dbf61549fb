"""Who syncs, and how long it takes: a library that counts the calls in any process it is loaded into.

Guards: without a C compiler nothing is counted, and nothing is claimed.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

NAME = "FAIRWAY_BENCH_SYNCS"
_COUNTS = struct.Struct("=QQ")


class Syncs(NamedTuple):
    """How many calls, and how many seconds in them."""

    calls: int
    seconds: float


def environment(folder: Path) -> dict[str, str]:
    """What a process must be started with so that its syncs are counted; empty where that cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    library, counts = folder / "syncs.so", folder / "syncs"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    counts.write_bytes(bytes(_COUNTS.size))
    counts.chmod(0o666)  # a database that runs as somebody else counts here too
    return {"LD_PRELOAD": str(library), NAME: str(counts)}


def so_far() -> Syncs | None:
    """What was counted in this process and those it started; nothing where nobody counts."""
    path = os.environ.get(NAME)
    if not path:
        return None
    calls, nanoseconds = _COUNTS.unpack(Path(path).read_bytes())
    return Syncs(calls, nanoseconds / 1e9)
