"""Sorting: what is due, and how many wait for what, among the rows of a bucket that were read whole.

Guards: every storage that cannot ask for it says the same.
"""

from __future__ import annotations

import msgspec

from fairway.bucket.rows import DYING, FINISHED, WAITING, BucketState, Found, Row, Sums, Tally
from fairway.bucket.statements import FindDue

_change = msgspec.structs.replace


def found_due(state: BucketState, rows: list[Row], x: FindDue) -> Found:
    """What is due among rows that were read in order, from the first or from `above` on."""
    waiting = [row for row in rows if row.status == WAITING and row.attempts < x.attempts_max]
    due = [_change(row, body=None, headers=b"") for row in waiting if row.due <= x.now and row.uid > x.above][
        : x.limit
    ]
    if len(due) >= x.limit:
        return Found(state, due, None)
    return Found(state, due, min((row.due for row in waiting if row.due > x.now), default=None))


def summed(state: BucketState, born: float, rows: list[Row]) -> Sums:
    """The sums over rows that were read whole."""
    return Sums(
        state,
        born,
        rows=len(rows),
        last=max((row.created for row in rows), default=born),
        versions=sum(row.version for row in rows),
        settled=sum(row.status != WAITING for row in rows),
        statuses=sum(row.status for row in rows),
        attempts=max((row.attempts for row in rows), default=0),
    )


def tallied(state: BucketState, rows: list[Row], now: float) -> Tally:
    """The tally of rows that were read whole."""
    waiting = [row for row in rows if row.status == WAITING]
    held = sum(row.lease > now and row.held for row in waiting)
    delayed = sum(row.due > now for row in waiting) - held
    return Tally(
        state,
        ready=len(waiting) - held - delayed,
        delayed=delayed,
        leased=held,
        dying=sum(row.status == DYING for row in rows),
        finished=sum(row.status in FINISHED for row in rows),
    )
