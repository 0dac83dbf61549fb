"""The tail of the event log: where the last minutes begin, found without reading what lies before.

Guards: some tens of reads of one row, however long the log is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

Row = tuple[int, float, bytes]  # number of a group, its time, its events
Read = Callable[[int, int], Awaitable[list[Row]]]  # rows after a number, at most so many
_NUMBER_MAX: Final = 2**62


async def first_since(read: Read, since: float) -> int:
    """The number after which no group is older than `since`; that of the last group if all are."""
    low, high = 0, 1
    while high < _NUMBER_MAX:
        found = await read(high, 1)
        if not found or found[0][1] >= since:
            break
        low, high = found[0][0], found[0][0] * 2
    # Groups up to `low` are older; those after `high` are not.
    while high - low > 1:
        middle = (low + high) // 2
        found = await read(middle, 1)
        if found and found[0][1] < since:
            low = found[0][0]
        else:
            high = middle
    found = await read(low, 1)
    return found[0][0] if found and found[0][1] < since else low
