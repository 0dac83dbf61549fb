"""Lease records: the chunks of one reservation that share a deadline, and the seals of receipts.

Guards: an attempt (owner epoch, count) is never issued twice; a seal cannot be made without the queue's secret.
"""

from __future__ import annotations

import hashlib

import msgspec

from fairway.engine.commands import LeasedSpan


class Hold(msgspec.Struct, eq=False, gc=False):
    """Chunks of one reservation with one deadline; chunks answered since are still named in `spans`.

    Nothing that a hold has leads back to it. So the collector need not know it, nor the maps of runs that name it.
    """

    epoch: int
    count: int
    part: int
    deadline: float
    seconds: float
    spans: list[LeasedSpan] = []
    left: int = 0  # chunks still out
    client: int = 0
    consumer: str = ""
    seq: int = 0
    shuffled: bool = False  # the last chunk was chosen in the order of the permutation
    cuts: list[int] = []  # the spans at which that changed; before the first of them it was not
    closed: int = 0  # spans before this one take no more chunks
    as_of: int = 0  # 0: no HOLD object of it is in the store

    def turn(self, shuffled: bool) -> None:
        """From here on chunks are chosen in the other order: another tier hands out."""
        self.shuffled = shuffled
        self.closed = len(self.spans)
        if self.cuts and self.cuts[-1] == self.closed:
            self.cuts.pop()  # it turned back before anything was chosen
        else:
            self.cuts.append(self.closed)


def seal_of(secret: bytes, epoch: int, count: int) -> int:
    """The seal over an attempt: 64 bits that only the queue can make."""
    text = epoch.to_bytes(8, "big") + count.to_bytes(8, "big")
    return int.from_bytes(hashlib.blake2b(text, key=secret, digest_size=8).digest(), "big")
