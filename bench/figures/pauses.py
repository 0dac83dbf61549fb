"""How long `put` waits, on a queue in a file, while a plan is made."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairway

_CALL = 10_000  # offers of one submit


def pauses(offers: list[dict[str, Any]], strategies: list[str]) -> dict[str, dict[str, float]]:
    """Wall milliseconds of `put` while the plan of each strategy is made, and as long while none is."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, fairway.open(Path(folder) / "bench.db") as q:
        for first in range(0, len(offers), _CALL):
            q.submit_many(offers[first : first + _CALL])
        for text in strategies:
            asking = threading.Thread(target=q.reserve, kwargs={"strategy": text})
            start = time.perf_counter()
            asking.start()
            during = timed_puts(q, lambda asking=asking: asking.is_alive())
            took = time.perf_counter() - start
            asking.join()
            until = time.perf_counter() + took
            alone = timed_puts(q, lambda until=until: time.perf_counter() < until)
            found[text] = {"longest_ms": max(during), "puts": len(during), "made_s": took}
            found[text] |= {"longest_alone_ms": max(alone), "puts_alone": len(alone)}
    return found


def timed_puts(q: fairway.Queue, go_on: Callable[[], bool]) -> list[float]:
    times: list[float] = []
    while not times or go_on():
        start = time.perf_counter()
        q.put(b"meanwhile")
        times.append((time.perf_counter() - start) * 1e3)
    return times
