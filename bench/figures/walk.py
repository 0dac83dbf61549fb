"""What memory alone costs: as many runs are looked at as a reserve hands out, and nothing else is done.

A reserve at 10^5 submissions differs from one at 10^3 in that what it looks at is in no cache. This walk, which chooses
nothing, leases nothing and writes nothing, has the same growth for the same reason.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from fairway.engine.run import Run


def walk(runs: Mapping[int, Run], picks: int, calls: int, rounds: int) -> tuple[float, float]:
    """CPU milliseconds of one call, p50 and p99, each the best of the rounds."""
    ids = list(runs)
    random.Random(1).shuffle(ids)
    found: list[tuple[float, float]] = []
    at = 0
    for _ in range(rounds):
        times: list[float] = []
        while len(times) < calls:
            some, at = ids[at : at + picks], at + picks
            if at + picks > len(ids):
                at = 0
            start = time.thread_time()
            for id in some:
                run = runs[id]
                owner = run.owner
                run.ready -= 1
                owner.waiting -= 1
                run.ready += 1
                owner.waiting += 1
            times.append((time.thread_time() - start) * 1e3)
        times.sort()
        found.append((times[len(times) // 2], times[len(times) * 99 // 100]))
    p50, p99 = map(min, zip(*found, strict=True))
    return p50, p99
