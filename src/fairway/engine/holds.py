"""Lease records: the chunks of one reservation that share a deadline, and the seals of receipts.

Guards: an attempt (owner epoch, count) is never issued twice; a seal cannot be made without the queue's secret.
"""

from __future__ import annotations

import hashlib

from fairway.engine.commands import LeasedSpan


class Hold:
    """Chunks of one reservation with one deadline; chunks answered since are still named in `spans`."""

    __slots__ = (
        "as_of",
        "client",
        "closed",
        "consumer",
        "count",
        "cuts",
        "deadline",
        "epoch",
        "left",
        "part",
        "seconds",
        "seq",
        "shuffled",
        "spans",
    )

    def __init__(self, epoch: int, count: int, part: int, deadline: float, seconds: float) -> None:
        self.epoch = epoch
        self.count = count
        self.part = part
        self.deadline = deadline
        self.seconds = seconds
        self.spans: list[LeasedSpan] = []
        self.left = 0  # chunks still out
        self.client = 0
        self.consumer = ""
        self.seq = 0
        self.shuffled = False  # the last chunk was chosen in the order of the permutation
        self.cuts: list[int] = []  # the spans at which that changed; before the first of them it was not
        self.closed = 0  # spans before this one take no more chunks
        self.as_of = 0  # 0: no HOLD object of it is in the store

    def turn(self, shuffled: bool) -> None:
        """From here on chunks are chosen in the other order: another tier hands out."""
        self.shuffled = shuffled
        self.closed = len(self.spans)
        self.cuts.append(self.closed)


def seal_of(secret: bytes, epoch: int, count: int) -> int:
    """The seal over an attempt: 64 bits that only the queue can make."""
    text = epoch.to_bytes(8, "big") + count.to_bytes(8, "big")
    return int.from_bytes(hashlib.blake2b(text, key=secret, digest_size=8).digest(), "big")
