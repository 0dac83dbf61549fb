"""Submissions: what a caller offers, what is stored of it, and what is shown of it.

Guards: a submission's description never changes after it was accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Metadata = Mapping[str, str | int]
Policy = Literal["fail_fast", "dead_letter"]
State = Literal["active", "completed", "failed", "cancelled"]


class Described(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was accepted: stored once, in the run's row."""

    tenant: str
    total: int
    metadata: dict[str, str | int] = {}
    info: bytes = b""
    priority: int = 0
    policy: Policy = "fail_fast"
    page_starts: tuple[int, ...] = ()  # first chunk of each inline payload page
    segments: tuple[tuple[str, int], ...] = ()  # (object prefix, count)
    not_before: float = 0.0
    deadline: float = 0.0  # 0.0: none
    attempts_max: int = 0  # 0: the queue's
    key: str = ""
    delete_objects: bool = False  # payload and result objects go with the submission
    fingerprint: bytes = b""  # of the content, if there is a key


class Offer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a caller offers: a description without a time of creation, its inline pages, and wishes."""

    described: Described
    pages: tuple[bytes, ...] = ()
    weight: int = 0  # thousandths; 0 leaves the tenant's weight as it is
    delay_seconds: float = 0.0  # counted from the time of acceptance, added to not_before
    deadline_seconds: float = 0.0  # likewise; 0.0: none


class Submission(msgspec.Struct, frozen=True, gc=False):
    """A submission as it is now."""

    id: int
    state: State
    tenant: str
    total: int
    done: int
    failed: int  # dead chunks
    leased: int
    created: float
    ended: float = 0.0
    life: int = 1
    paused: bool = False
    metadata: dict[str, str | int] = {}
    info: bytes = b""
    priority: int = 0
    policy: Policy = "fail_fast"
    not_before: float = 0.0
    deadline: float = 0.0
    key: str = ""
    error: str = ""  # of the first failing chunk
    error_index: int = -1

    @property
    def left(self) -> int:
        """Chunks that are neither done nor dead."""
        return self.total - self.done - self.failed


class DeadChunk(msgspec.Struct, frozen=True):
    """A chunk that was given up."""

    submission: int
    index: int
    tenant: str
    attempts: int
    error: str
    at: float
