"""Submission ids: 63-bit snowflakes, time-ordered and strictly rising per queue.

Guards: an id is never given twice, whatever the clock does: `next_id` is always above the last one.
"""

from __future__ import annotations

from collections.abc import Collection

QUEUE_BITS = 10
SEQUENCE_BITS = 12
ID_MAX = 2**63 - 1  # the highest there can be, and the highest number that every store takes
TIME_SHIFT = QUEUE_BITS + SEQUENCE_BITS  # milliseconds above, queue and sequence below
_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
_QUEUE_MASK = (1 << QUEUE_BITS) - 1
_EPOCH_MS = 1_577_836_800_000  # 2020-01-01, so that 41 bits of milliseconds last until 2089

Level = tuple[int, int]  # <pass, id>: a place of a run in the store


def next_id(now: float, last: int, queue_number: int) -> int:
    """The lowest id of this queue that is at or after `now` and above `last`."""
    ms = int(now * 1000) - _EPOCH_MS
    last_ms = last >> TIME_SHIFT
    if ms <= last_ms:
        if (last + 1) & _SEQUENCE_MASK:
            return last + 1
        ms = last_ms + 1
    return max(0, ms) << TIME_SHIFT | queue_number << SEQUENCE_BITS


def next_ids(now: float, last: int, queue_number: int, n: int) -> list[int]:
    """What n calls of `next_id` give."""
    found: list[int] = []
    while len(found) < n:
        first = next_id(now, last, queue_number)
        many = min(n - len(found), _SEQUENCE_MASK + 1 - (first & _SEQUENCE_MASK))
        found += range(first, first + many)
        last = found[-1]
    return found


def queue_of(submission: int) -> int:
    """The queue number inside an id."""
    return submission >> SEQUENCE_BITS & _QUEUE_MASK


def all_of(queue: int, submissions: Collection[int]) -> bool:
    """Whether all of some ids, at least one, are of a queue."""
    low, high = min(submissions), max(submissions)
    if low >> SEQUENCE_BITS == high >> SEQUENCE_BITS:  # of one millisecond, and so of one queue
        return queue_of(low) == queue
    return all(queue_of(submission) == queue for submission in submissions)


def seconds_of(submission: int) -> float:
    """The time inside an id, in seconds since 1970."""
    return ((submission >> TIME_SHIFT) + _EPOCH_MS) / 1000
