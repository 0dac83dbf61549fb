"""Receipts: index, version and nonce of a lease, under a keyed seal.

Guards: nobody makes a receipt that was not handed out; every change by a receipt leaves a nonce that only it can leave,
so the same receipt asked again finds its own trace.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest

import msgspec

from fairway.bucket.rows import Row
from fairway.errors import BadArgument

_PREFIX = "b1"


class Ticket(msgspec.Struct, frozen=True):
    """A receipt taken apart."""

    bucket: bytes
    uid: bytes
    version: int
    nonce: int
    attempts: int

    def next_nonce(self, verb: str) -> int:
        """The nonce that a verb leaves when it is carried out by this receipt."""
        told = f"{self.nonce:x}.{self.version:x}.{verb}".encode() + self.uid
        return int.from_bytes(blake2b(told, digest_size=8).digest()) >> 1 | 1


def ticket_for(bucket: bytes, row: Row) -> Ticket:
    """The ticket of a leased row."""
    return Ticket(bucket, row.uid, row.version, row.nonce, row.attempts)


def receipt_of(ticket: Ticket, secret: bytes) -> str:
    """The ticket as text, sealed with the queue's secret."""
    told = _told(ticket)
    return f"{told}.{_seal(told, secret)}"


def ticket_of(receipt: object, secret: bytes) -> Ticket | None:
    """What a receipt says; None if its seal is not of this queue. Raises BadArgument if it is no receipt."""
    parts = receipt.split(".") if isinstance(receipt, str) else []
    try:
        prefix, bucket, uid, version, nonce, attempts, seal = parts
        ticket = Ticket(
            bytes.fromhex(bucket), bytes.fromhex(uid), int(version, 16), int(nonce, 16), int(attempts, 16)
        )
        sound = prefix == _PREFIX and len(ticket.bucket) == len(ticket.uid) == 16
    except ValueError:
        sound = False
        ticket, seal = Ticket(b"", b"", 0, 0, 0), ""
    if not sound:
        raise BadArgument(
            f"this is not a receipt of a bucket queue: {receipt!r:.80}; give lease.receipt back as it came",
            argument="leases",
        )
    # Only the form that was handed out counts: the seal is over the text that the ticket would have.
    return ticket if compare_digest(_seal(_told(ticket), secret).encode(), seal.encode()) else None


def _told(ticket: Ticket) -> str:
    return (
        f"{_PREFIX}.{ticket.bucket.hex()}.{ticket.uid.hex()}"
        f".{ticket.version:x}.{ticket.nonce:x}.{ticket.attempts:x}"
    )


def _seal(told: str, secret: bytes) -> str:
    return blake2b(told.encode(), key=secret, digest_size=16).hexdigest()
