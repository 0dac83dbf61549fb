"""Reads that the engine does not answer: listings of what is stored and no longer in memory.

Guards: a read is answered when all that was executed before it is stored; payload pages never change.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairway.limits import RESULTS_READ_BYTES
from fairway.model.stored import ResultPage

Where = tuple[int, int]  # a submission, and the number of one of its pages of payloads


class Read(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Root of all reads."""


class ReadPages(Read, frozen=True, tag=64):
    """Payload pages by (submission, page number); answered with a dict of those that are there."""

    wanted: list[Where]


class ListEnded(Read, frozen=True, tag=65):
    """Ended submissions with id > after; answered with a list of Submission in id order."""

    state: str = ""  # "": any of the ended states
    tenant: str | None = None
    metadata: dict[str, str | int] = {}
    after: int = 0
    limit: int = 1000


class ListEndedDead(Read, frozen=True, tag=66):
    """Dead chunks of ended submissions with id > after; answered with (the next `after` or None, them)."""

    after: int = 0
    limit: int = 100  # submissions


class Describe(Read, frozen=True, tag=67):
    """What was accepted of a submission; answered with a Described."""

    id: int


class ReadResults(Read, frozen=True, tag=68):
    """Pages of inline results with first >= first_min; answered with a list of ResultPage by first."""

    id: int
    first_min: int = 0
    limit: int = 64
    bytes_max: int = RESULTS_READ_BYTES  # the page that reaches it is the last

    def is_last(self, pages: Sequence[ResultPage]) -> bool:
        """Whether there is nothing behind these pages, which it was answered with."""
        return len(pages) < self.limit and sum(len(page.body) for page in pages) < self.bytes_max


class ReadEvents(Read, frozen=True, tag=69):
    """Event batches after a group number; answered with a list of (number, time, body)."""

    after: int = 0
    limit: int = 256
