"""Journal records: the hot changes of a group, replayed at a start.

Guards: replaying a record twice, or onto an object that already contains it, changes nothing.
"""

from __future__ import annotations

import msgspec

from fairway.engine.commands import LeasedSpan, Span


class _Record(msgspec.Struct, array_like=True, tag=True):
    """Root of all records."""


class Leased(_Record, tag=1):
    """A reservation was made; `part` tells apart the parts into which renewals cut it."""

    epoch: int
    count: int
    deadline: float
    seconds: float
    spans: list[LeasedSpan]
    cuts: list[int] = []  # the spans at which index order turned into the permutation's, or back
    consumer: str = ""
    seq: int = 0


class Renewed(_Record, tag=2):
    """Some of a reservation's chunks have a new deadline; they form a new part."""

    epoch: int
    count: int
    part: int
    deadline: float
    seconds: float
    spans: list[LeasedSpan]
    consumer: str = ""
    seq: int = 0


class Completed(_Record, tag=3):
    """Chunks are done."""

    epoch: int
    count: int
    writer: int
    kind: int
    spans: list[Span]


class Returned(_Record, tag=4):
    """Chunks came back: `counted` attempts, waiting again at `due` (0.0: now)."""

    epoch: int
    count: int
    counted: bool
    latest: bool  # the receipt stays the latest one (expiry), so a late result is still accepted
    due: float
    spans: list[Span]
    error: str = ""


class Died(_Record, tag=5):
    """Chunks were given up."""

    epoch: int
    count: int
    at: float
    error: str
    spans: list[Span]


class Turned(_Record, tag=6):
    """Turns that moved, as they were written before `Tallied`: the first six numbers of its rows."""

    rows: list[tuple[str, int | None, int, int, int, int]]


class Answered(_Record, tag=7):
    """The outcome of a numbered call: kept under (client, number) until it is received."""

    client: int
    number: int
    received: int
    reply: bytes
    at: float


class Settled(_Record, tag=8):
    """Leases of ended submissions were answered or ran out: they no longer count in flight."""

    count: int
    spans: list[Span]


class Tallied(_Record, tag=9):
    """Tenants that changed, as they were written before `Tallies`: (tenant, turn or None if it is forgotten, rest;
    pass, rest, chunks of its last placed run; active submissions, chunks waiting)."""

    rows: list[tuple[str, int | None, int, int, int, int, int, int]]


class Tallies(_Record, tag=10):
    """Tenants that changed, whole, so that the last record of a tenant is enough; columns are made in less time."""

    names: list[str]
    turns: list[int | None]  # None: forgotten
    rests: list[int | None]
    placed: list[tuple[int, int, int] | None]  # pass, rest and chunks of the last placed run
    submissions: list[int]
    waiting: list[int]


Record = (
    Leased | Renewed | Completed | Returned | Died | Turned | Answered | Settled | Tallied | Tallies
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Record]).decode
