"""What an order sees of a submission.

Guards: `eligible` implies `ready > 0`; the engine alone writes these fields.
"""

from __future__ import annotations

from collections.abc import Mapping


class Candidate:
    """A submission that strategies choose among; the engine's run is one."""

    __slots__ = ("eligible", "id", "metadata", "priority", "ready", "tenant")

    id: int
    """The submission id: rising with time, unique in the queue."""
    tenant: str
    priority: int
    metadata: Mapping[str, str | int]
    ready: int
    """Chunks that can be handed out now."""
    eligible: bool
    """ready > 0, not paused, due, not ended."""

    def __init__(
        self, id: int, tenant: str, priority: int = 0, metadata: Mapping[str, str | int] | None = None
    ) -> None:
        self.id = id
        self.tenant = tenant
        self.priority = priority
        self.metadata = {} if metadata is None else metadata
        self.ready = 0
        self.eligible = False
