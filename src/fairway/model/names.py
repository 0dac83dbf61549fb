"""Implied names: where the payload and result objects of a chunk are, without a row that says so.

Guards: two attempts never share a result name.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from fairway.model.submission import Described

_KEPT_MAX = (
    64  # descriptions whose segments are summed up: reservations come from a few submissions at a time
)
_kept: dict[int, tuple[Described, list[int]]] = {}


def _ends(described: Described) -> list[int]:
    """The first index after each segment; summed up once per description."""
    kept = _kept.get(id(described))
    if kept is None or kept[0] is not described:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        kept = _kept[id(described)] = (described, list(accumulate(count for _, count in described.segments)))
    return kept[1]


def object_name(described: Described, index: int) -> str | None:
    """The name of a chunk's payload object: `prefix/i` inside its segment; None if it has none."""
    segments = described.segments
    if len(segments) == 1:
        prefix, count = segments[0]
        return f"{prefix}/{index}" if index < count else None
    ends = _ends(described)
    at = bisect_right(ends, index)
    if at == len(ends):
        return None
    prefix, count = segments[at]
    return f"{prefix}/{index - (ends[at] - count)}"


def result_name(described: Described, index: int, epoch: int, count: int, writer: int) -> str | None:
    """The name of a result object: which attempt and writer made it is part of it."""
    name = object_name(described, index)
    return None if name is None else f"{name}.out.{epoch:x}.{count:x}.{writer:x}"
