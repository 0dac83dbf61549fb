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

    id: str  # of the message, 32 hexadecimal digits
    payload: bytes  # the bytes that were put
    headers: Headers  # the small map that was put with it
    attempt: int  # which delivery this is; those that were released do not count
    deadline: float  # when the lease ends, if it is not renewed
    put_at: float  # when the message was put
    receipt: str  # text that proves the lease


class DeadMessage(msgspec.Struct, frozen=True):
    """A message that was delivered too often, or given up. Over HTTP `payload` is None for a token without `work`."""

    id: str  # of the message, 32 hexadecimal digits
    payload: bytes | None  # the bytes that were put
    headers: Headers  # the small map that was put with it
    attempts: int  # deliveries it had
    error: str  # what the last failure said
    put_at: float  # when the message was put
    died_at: float  # when it was given up


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
