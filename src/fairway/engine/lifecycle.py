"""The life cycle of submissions and chunks as two tables; the docs' pictures are drawn from them.

Guards: no other transition exists: `submission_after` raises on one that is not in the table, and the tests hold
every chunk of every program against CHUNK.
"""

from __future__ import annotations

from typing import Final

from fairway.model.submission import State

SUBMISSION: Final[dict[tuple[str, str], str]] = {
    ("", "submit"): "active",
    ("", "submit of no chunks"): "completed",
    ("active", "last chunk done"): "completed",
    ("active", "last chunk done, some dead"): "failed",
    ("active", "chunk given up under fail_fast"): "failed",
    ("active", "deadline"): "failed",
    ("active", "cancel"): "cancelled",
    ("active", "redrive"): "active",
    ("failed", "redrive"): "active",
    ("cancelled", "redrive"): "active",
}

CHUNK: Final[dict[tuple[str, str], str]] = {
    ("", "submit"): "waiting",
    ("waiting", "reserve"): "leased",
    ("waiting", "complete with an expired receipt"): "done",
    ("waiting", "submission ends"): "skipped",
    ("leased", "complete"): "done",
    ("leased", "release"): "waiting",
    ("leased", "fail, retry at once"): "waiting",
    ("leased", "fail, retry later"): "backing off",
    ("leased", "fail, no attempt left"): "dead",
    ("leased", "expire"): "waiting",
    ("leased", "expire, no attempt left"): "dead",
    ("leased", "hand back by name, no attempt left"): "dead",
    ("leased", "submission ends"): "skipped",
    ("backing off", "due"): "waiting",
    ("backing off", "submission ends"): "skipped",
    ("dead", "redrive"): "waiting",
    ("skipped", "redrive"): "waiting",
    ("skipped", "redrive, its lease still out"): "leased",
}


def submission_after(state: str, event: str) -> State:
    """The state of a submission after an event."""
    return SUBMISSION[state, event]  # pyright: ignore[reportReturnType]
