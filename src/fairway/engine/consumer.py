"""Named consumers: reservations that are handed back unchanged until they are trimmed.

Guards: one process at a time speaks for a name; a reservation never gains a chunk, and knows how many it lost by
its consumer's silence.
"""

from __future__ import annotations

import msgspec

from fairway.engine.commands import LeasedSpan


class Named(msgspec.Struct, array_like=True):
    """A named reservation: which chunks it was given, finished ones included."""

    epoch: int
    count: int
    handed_to: int  # the consumer's epoch at the last handing out
    completed: bool  # something of it was completed, so it no longer shrinks
    spans: list[LeasedSpan]
    given: int = 0  # chunks that the consumer's epoch was handed first: what it works on, though some may end meanwhile
    lapsed: int = 0  # chunks that went back by themselves and that it has not completed since


class Consumer(msgspec.Struct, array_like=True):
    """A consumer by name."""

    name: str
    epoch: int = 0
    seen: float = 0.0
    trimmed: int = -1  # seqs up to this are gone
    open: dict[int, Named] = {}
    as_of: int = 0
    run: str = ""  # named by the present epoch at its join
    error: str = ""  # likewise: what the epoch before it ended with; none once a batch was settled
