"""Glancing: which buckets a repairer looks at, and which of them it must read whole.

Guards: a round is bounded, and no bucket is left out for long. Nothing but work depends on a glance: what it shows is
acted upon by a condition, or after the bucket was read whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway import limits
from fairway.bucket.config import BucketConfig
from fairway.bucket.rows import WAITING, Bucket, IndexRow, Sums


class Look:
    """What a repairer knows of a bucket, and when it looks again: the longer nothing happens, the later."""

    __slots__ = ("at", "over_at", "seen", "wait")

    def __init__(self) -> None:
        self.seen: Sums | None = None
        self.wait = self.at = 0.0
        self.over_at = 0.0  # no row was over before, when the bucket was read whole; 0 if it was not

    def saw(self, sums: Sums, now: float) -> None:
        """Remember a glance."""
        changed = sums != self.seen
        if changed:
            self.seen, self.over_at = sums, 0.0
        self.wait = (
            0.0 if changed else min(max(2 * self.wait, limits.REPAIR_SECONDS), limits.GLANCE_SECONDS_MAX)
        )
        self.at = now + self.wait
        if self.over_at > now:
            self.again(self.over_at)

    def read(self, found: Bucket, config: BucketConfig) -> None:
        """Remember what a bucket that was read whole showed: whose last lease ends next."""
        last = [
            row.lease for row in found.rows if row.status == WAITING and row.attempts >= config.attempts_max
        ]
        self.over_at = min(last, default=float("inf"))

    def again(self, at: float) -> None:
        """Look again at a time at the latest."""
        self.at = min(self.at, at)


def due_looks(looks: dict[bytes, Look], index: Iterable[IndexRow], now: float) -> list[bytes]:
    """The buckets of a round: those whose turn it is, the longest overdue first, and no more than a round takes."""
    turns: list[tuple[float, bytes]] = []
    for entry in index:
        look = looks.get(entry.bucket)
        at = look.at if look is not None else 0.0
        # Further off than a look ever is: the clock was set back.
        if entry.due <= now and not now < at <= now + limits.GLANCE_SECONDS_MAX:
            turns.append((at, entry.bucket))
    return [bucket for _, bucket in sorted(turns)[: limits.GLANCE_BUCKETS_MAX]]


def needs_reading(look: Look, sums: Sums, config: BucketConfig, now: float) -> bool:
    """Whether a bucket must be read whole: it may be finished, or something in it dying or over."""
    if sums.state == "sealed" and sums.settled == sums.rows:
        return True
    may_die = sums.statuses > sums.settled or sums.attempts >= config.attempts_max
    return may_die and look.over_at <= now


def idle(sums: Sums, config: BucketConfig, now: float) -> bool:
    """Whether an open bucket is full, or nobody put into it for long."""
    return sums.rows >= config.bucket_rows or now - sums.last > config.seal_seconds
