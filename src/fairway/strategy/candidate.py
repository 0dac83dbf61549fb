"""What an order sees of a submission.

Guards: `eligible` implies `ready > 0`; the engine alone writes these fields.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairway.strategy.tiers import Selection, Value


class Candidate(msgspec.Struct, eq=False):
    """A submission that strategies choose among; the engine's run is one.

    A struct, because a million of them are made in C in a third of the time.
    """

    id: int
    """The submission id: rising with time, unique in the queue."""
    tenant: str
    priority: int
    metadata: Mapping[str, str | int]
    ready: int
    """Chunks that can be handed out now."""
    eligible: bool
    """ready > 0, not paused, due, not ended."""

    @property
    def waiting(self) -> int:
        """Chunks that are not out and not finished: paused, delayed or backing off counts, ended does not."""
        return self.ready


def value_of(run: Candidate, key: str) -> Value | None:
    """The value of a run at a key: its tenant, or one of its metadata; None if it has none."""
    return run.tenant if key == "tenant" else run.metadata.get(key)


def selects(selection: Selection, run: Candidate) -> bool:
    """Whether a run has every pair of a selection."""
    return all(value_of(run, key) == value for key, value in selection)
