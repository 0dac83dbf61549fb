"""Counting: the sizes of a queue, read bucket by bucket.

Guards: at rest they are the truth; while messages move each is counted at the moment its bucket is read.
"""

from __future__ import annotations

import msgspec

from fairway.bucket.rows import QueueRow, Tally
from fairway.bucket.statements import (
    FRESH,
    CountDead,
    CountRows,
    Machine,
    Moment,
    ReadQueue,
    read,
)
from fairway.bucket.taking import read_index


class BucketStats(msgspec.Struct, frozen=True):
    """The sizes of a bucket queue."""

    ready: int  # may be delivered now
    delayed: int  # wait for their time: a delay or a back-off
    leased: int  # in somebody's hands
    dead: int  # dead letters
    finished: int  # completed or dead, and not yet removed with their buckets
    open_buckets: int  # buckets that take messages
    buckets: int  # all of them, sealed ones too
    index_span: int  # entries of the index that a reserve reads: a message that stays long holds them


def count(name: str, generation: bytes) -> Machine[BucketStats | None]:
    """Count a queue; None if it is gone."""
    queue: QueueRow | None = yield from read(ReadQueue(name, generation))
    if queue is None or queue.state != "live":
        return None
    index = yield from read_index(generation, queue.floor)
    moment: Moment = yield FRESH
    tallies: list[Tally] = []
    for entry in index:
        tally: Tally | None = yield from read(CountRows(generation, entry.bucket, moment.now))
        if tally is not None:
            tallies.append(tally)
    letters: int = yield from read(CountDead(generation))
    return BucketStats(
        ready=sum(tally.ready for tally in tallies),
        delayed=sum(tally.delayed for tally in tallies),
        leased=sum(tally.leased for tally in tallies),
        # A dying one has no letter yet, or one that is counted already; at rest there is none.
        dead=letters,
        finished=sum(tally.finished for tally in tallies),
        open_buckets=sum(tally.state == "open" for tally in tallies),
        buckets=len(tallies),
        index_span=len(index),
    )
