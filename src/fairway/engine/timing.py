"""Engine time: a clock that only counts, and what is added to it.

Guards: it is never less than a time that was stored, and never stands still: an owner whose wall clock is behind
counts on from what is stored, one whose clock is ahead is not held back. Whoever drives an engine asks here.
"""

from __future__ import annotations


def counted_on(offset: float, began: float, count: float) -> float:
    """What is added to a clock that says `count`, once an engine has begun at `began`: what was, or more."""
    return max(offset, began - count)
