"""Burying: how a message becomes a dead letter, and how dead letters leave.

Guards: one dead letter per message, whoever dies between two steps: its place is named by the message, not by a target.
"""

from __future__ import annotations

from fairway import limits
from fairway.bucket.rows import DYING, Bucket, DeadLetter
from fairway.bucket.statements import (
    FRESH,
    AddDead,
    Bury,
    Machine,
    Moment,
    ReadDead,
    ReadRows,
    insist,
    read,
)


def bury(generation: bytes, bucket: bytes, uids: list[bytes]) -> Machine[int]:
    """Write the dead letters of dying rows, then mark those dead; gives how many were dying."""
    if not uids:
        return 0
    found: Bucket | None = yield from read(ReadRows(generation, bucket, uids, True))
    dying = [row for row in found.rows if row.status == DYING] if found is not None else []
    moment: Moment = yield FRESH
    for row in dying:
        if row.body is not None:  # it is there until the row is dead
            letter = DeadLetter(
                row.uid, bucket, row.body, row.headers, row.created, moment.now, row.attempts, row.error
            )
            yield from insist(AddDead(generation, letter))
        # Of unknown outcome: the next round sees whether it is dead.
        yield Bury(generation, bucket, row.uid)
    return len(dying)


def read_dead(generation: bytes, after: bytes, count: int) -> Machine[list[DeadLetter]]:
    """Dead letters after a uid, in order."""
    return (yield from read(ReadDead(generation, after, min(count, limits.DEAD_PAGE_ROWS))))
