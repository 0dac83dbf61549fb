"""The audit's counts once more, chunk by chunk in plain Python: slow, short and obviously right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairway.model.event import Event

_ENDS = ("ended_completed", "ended_failed", "ended_cancelled")


class _Chunk:
    def __init__(self) -> None:
        self.state = "unknown"  # waiting, out, done, dead, skipped
        self.holder: tuple[int, int] | None = None
        self.held = False  # whether the holder's result would still count
        self.results = 0
        self.handed = 0
        self.active = False
        self.dead = False


def naive_counts(events: Iterable[Event]) -> Counter[str]:
    """Counts over chunks of submissions whose beginning the log has."""
    log = sorted((e for e in events if e.what != "renewed"), key=lambda e: (e.number, e.place))
    logged = {e.submission for e in log if e.what == "submitted"}
    chunks: dict[tuple[int, int], _Chunk] = {}
    all_done: dict[int, bool] = {}
    counts: Counter[str] = Counter()
    for event in log:
        if event.submission not in logged:
            continue
        if event.what in (*_ENDS, "redriven"):
            all_done[event.submission] = event.detail.startswith("last chunk done")
        for index in range(event.start, event.start + event.count):
            _step(chunks.setdefault((event.submission, index), _Chunk()), event, counts)
    for (submission, _), chunk in chunks.items():
        counts["chunks"] += 1
        if chunk.results:
            counts["completed"] += 1
        elif chunk.dead:
            counts["dead"] += 1
        elif chunk.state == "skipped":
            counts["lost" if all_done.get(submission) else "skipped"] += 1
        else:
            counts["unfinished"] += 1
    return counts


def _step(chunk: _Chunk, event: Event, counts: Counter[str]) -> None:
    who = (event.epoch, event.reservation)
    match event.what:
        case "submitted":
            chunk.state, chunk.active = "waiting", True
        case "reserved":
            counts["handed"] += 1
            counts["retries"] += chunk.handed > 0
            counts["disorder"] += chunk.state != "waiting"
            chunk.handed += 1
            chunk.state, chunk.holder, chunk.held = "out", who, True
        case "completed":
            counts["duplicate"] += chunk.results > 0
            counts["stale"] += not (chunk.held and chunk.holder == who and chunk.active)
            chunk.results += 1
            chunk.state = "done"
        case "failed" | "released":
            chunk.state, chunk.held = "waiting", False
        case "expired":
            chunk.state = "waiting"
        case "dead":
            chunk.state, chunk.held, chunk.dead = "dead", False, True
        case "redriven":
            chunk.active, chunk.dead = True, False
            if not chunk.results and chunk.state != "out":
                chunk.state = "waiting"
        case _:
            chunk.active, chunk.state = False, "skipped"
