"""What an order sees of a submission.

Guards: `eligible` implies `ready > 0`; the engine alone writes these fields.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


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
