"""Submissions: what a caller offers, what is stored of it, and what is shown of it.

Guards: a submission's description never changes after it was accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from fairway import limits

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

    id: int  # rises with time; a 63-bit number
    state: State  # active, or how it ended
    tenant: str  # whom it belongs to
    total: int  # chunks
    done: int  # chunks with a completion
    failed: int  # dead chunks
    leased: int  # chunks that somebody holds now
    created: float  # when it was accepted
    ended: float = 0.0  # when it ended; 0.0: it is active
    life: int = 1  # 1, and one more after each redrive
    paused: bool = False  # itself, not its tenant or the queue
    metadata: dict[str, str | int] = {}  # what strategies look at
    info: bytes = b""  # for the worker, as it was given
    priority: int = 0  # for CustomPriority: the highest is first
    policy: Policy = "fail_fast"  # when a chunk is dead: fail_fast ends the submission, dead_letter goes on
    not_before: float = 0.0  # nothing is handed out before; 0.0: at once
    deadline: float = 0.0  # then it fails if it is still active; 0.0: never
    key: str = ""  # the caller's, that makes a submit safe to repeat; "": none
    error: str = ""  # of the first dead chunk, or that the deadline passed
    error_index: int = -1  # the index of that chunk; -1: there is none

    @property
    def left(self) -> int:
        """Chunks that are neither done nor dead."""
        return self.total - self.done - self.failed


def listed_bytes(row: Submission | Described) -> int:
    """About what a row of a listing takes beside what all take."""
    if not row.metadata:
        return len(row.info)
    texts = (len(key) + (len(value) if isinstance(value, str) else 8) for key, value in row.metadata.items())
    return len(row.info) + sum(texts)


def is_full(page: Sequence[Submission], limit: int) -> bool:
    """Whether more may follow a page of a listing: it has all rows that were asked for, or all bytes that it may."""
    return len(page) >= limit or sum(map(listed_bytes, page)) >= limits.LIST_BYTES_MAX


def cut(rows: Iterable[Submission]) -> Iterator[Submission]:
    """The rows of a listing that go into one page."""
    size = 0
    for row in rows:
        yield row
        size += listed_bytes(row)
        if size >= limits.LIST_BYTES_MAX:
            return


class DeadChunk(msgspec.Struct, frozen=True):
    """A chunk that was given up."""

    submission: int  # its id
    index: int  # which chunk of it, from 0
    tenant: str  # whom it belongs to
    attempts: int  # deliveries it had; those that were released do not count
    error: str  # what the last failure said
    at: float  # when it was given up
