"""What a bucket queue hands out: leases and dead messages."""

from __future__ import annotations

import msgspec

from fairway.bucket.receipts import Ticket, receipt_of
from fairway.bucket.rows import DeadLetter
from fairway.bucket.taking import Leased

Headers = dict[str, str | int]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Headers).decode


class BucketLease(msgspec.Struct, frozen=True):
    """A message that is yours until a deadline. After a renewal only the renewed lease counts."""

    id: str
    payload: bytes
    headers: Headers
    attempt: int  # which delivery this is; those that were released do not count
    deadline: float  # seconds since 1970
    put_at: float
    receipt: str


class DeadMessage(msgspec.Struct, frozen=True):
    """A message that was delivered too often, or given up. Over HTTP `payload` is None for a token without `work`."""

    id: str
    payload: bytes | None
    headers: Headers
    attempts: int
    error: str
    put_at: float
    died_at: float


def packed(headers: Headers) -> bytes:
    """Headers as they are stored."""
    return _encode(headers) if headers else b""


def lease_of(leased: Leased, ticket: Ticket, secret: bytes) -> BucketLease:
    row = leased.row
    return BucketLease(
        id=row.uid.hex(),
        payload=row.body or b"",
        headers=_decode(row.headers) if row.headers else {},
        attempt=row.attempts,
        deadline=row.lease,
        put_at=row.created,
        receipt=receipt_of(ticket, secret),
    )


def dead_of(letter: DeadLetter) -> DeadMessage:
    return DeadMessage(
        id=letter.uid.hex(),
        payload=letter.body,
        headers=_decode(letter.headers) if letter.headers else {},
        attempts=letter.attempts,
        error=letter.error,
        put_at=letter.created,
        died_at=letter.died,
    )
