"""Which ranges of a partition hold nothing but what was removed.

Guards: no range contains anything that is there; a range reaches back to the last thing that is there, so it covers
every such range before it and they do not add up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

Key = tuple[Any, ...]


def gaps(below: Key, live: Sequence[Key], dropped: Sequence[Key]) -> list[tuple[Key, Key]]:
    """Ranges (after, up to] without anything of `live` that cover what was dropped; all are sorted.

    `below` is the last live key before the first dropped one, or one that is lower than all. `live` is complete up to
    the last dropped key. What was dropped may have come back.
    """
    there = set(live)
    dropped = [key for key in dropped if key not in there]
    found: list[tuple[Key, Key]] = []
    start = 0
    while start < len(dropped):
        before = bisect_left(live, dropped[start])
        after = live[before - 1] if before else below
        stop = len(dropped) if before == len(live) else bisect_right(dropped, live[before])
        found.append((after, dropped[stop - 1]))
        start = stop
    return found
