"""When runs ended: for each group and time one list of ids, not a row for each run.

Guards: a run is in the list of the group that ended it, and in no other, for as long as it is ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec

from fairway.limits import CASSANDRA_ENDING_IDS
from fairway.store.cassandra.connection import Connection
from fairway.store.cassandra.lives import Write
from fairway.store.cassandra.places import IN_ROWS, shard_at

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[int]).decode


def packed(ids: Sequence[int]) -> bytes:
    """Rising ids, as the first and the steps to the next: those of one submit follow each other."""
    return _encode([*ids[:1], *(after - before for before, after in pairwise(ids))])


def unpacked(body: bytes) -> list[int]:
    return list(accumulate(_decode(body)))


def endings(number: int, ended: Mapping[float, Sequence[int]]) -> Iterator[Write]:
    """The lists of a group: who ended in it, by time."""
    for at, some in ended.items():
        ids = sorted(some)
        for part, start in enumerate(range(0, len(ids), CASSANDRA_ENDING_IDS)):
            body = packed(ids[start : start + CASSANDRA_ENDING_IDS])
            yield "put_ending", (shard_at(at), at, number, part, body)


def without(connection: Connection, queue: object, left: Mapping[float, set[int]]) -> Iterator[Write]:
    """The stored lists again, without runs that are no longer ended or no longer there, by when they had ended."""
    shards: dict[int, list[float]] = {}
    for at in left:
        shards.setdefault(shard_at(at), []).append(at)
    wanted = [
        ("endings_at", (queue, shard, times[start : start + IN_ROWS]))
        for shard, times in shards.items()
        for start in range(0, len(times), IN_ROWS)
    ]
    for rows in connection.read_many(wanted):
        for at, number, part, body in rows:
            ids = unpacked(body)
            kept = [id for id in ids if id not in left[at]]
            if not kept:
                yield "drop_ending", (shard_at(at), at, number, part)
            elif len(kept) < len(ids):
                yield "put_ending", (shard_at(at), at, number, part, packed(kept))
