"""Leases: a chunk held until a deadline, with its receipt.

Guards: a receipt text says which chunk and which reservation, and carries the reservation's seal.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairway.errors import BadArgument
from fairway.model.names import object_name, result_name
from fairway.model.submission import Described, Metadata

_RECEIPT_CHARS_MAX = 80  # five numbers of at most 64 bits in hexadecimal


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """A receipt taken apart: the chunk, the attempt (owner epoch, count) and the seal over it."""

    submission: int
    index: int
    epoch: int
    count: int
    seal: int

    def text(self) -> str:
        return f"{self.submission:x}.{self.index:x}.{self.epoch:x}.{self.count:x}.{self.seal:x}"


def ticket_of(receipt: str) -> Ticket:
    """Read a receipt, or BadArgument."""
    try:
        if len(receipt) > _RECEIPT_CHARS_MAX:
            raise ValueError
        submission, index, epoch, count, seal = (int(part, 16) for part in receipt.split("."))
        if submission >> 63 or index >> 31 or epoch >> 64 or count >> 64 or seal >> 64:
            raise ValueError  # also of what is negative
    except (ValueError, AttributeError, TypeError):
        raise BadArgument(
            f"this is not a receipt: {receipt!r:.80}; give lease.receipt back as it came"
        ) from None
    return Ticket(submission, index, epoch, count, seal)


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A chunk that is yours until `deadline`. Nothing that it holds leads back to it."""

    submission: int  # its id
    index: int  # which chunk of it, from 0
    attempt: int  # which delivery this is; those that were released do not count
    deadline: float  # when the lease ends, if it is not renewed
    epoch: int  # of the owner that handed it out; every owner has a higher one
    count: int  # which reservation of that owner
    seal: int  # proves that the receipt was not made up
    described: Described  # what was accepted of the submission
    data: bytes | None = None  # an inline payload, or one that was fetched before
    fetch: Callable[[str], bytes] | None = None  # reads an object; None where that would block an event loop

    @property
    def payload(self) -> bytes | None:
        """The payload; one by reference is read when it is first looked at. None: the submission has none."""
        if self.data is None and self.described.segments:
            name = self.object
            assert name is not None
            if self.fetch is None:
                raise BadArgument(
                    f"the payload is the object {name}; read it with `await queue.payload(lease)`"
                )
            msgspec.structs.force_setattr(self, "data", self.fetch(name))
        return self.data

    @property
    def tenant(self) -> str:
        """Whom the submission belongs to."""
        return self.described.tenant

    @property
    def metadata(self) -> Metadata:
        """The submission's metadata."""
        return self.described.metadata

    @property
    def info(self) -> bytes:
        """What the submitter left for the worker."""
        return self.described.info

    @property
    def receipt(self) -> str:
        """Text that proves the lease; give it back to complete, fail, renew or release."""
        return Ticket(self.submission, self.index, self.epoch, self.count, self.seal).text()

    @property
    def object(self) -> str | None:
        """The payload's object, if it is by reference."""
        return object_name(self.described, self.index)

    def result_object(self, writer: int = 0) -> str | None:
        """The name under which this attempt's result object is registered."""
        return result_name(self.described, self.index, self.epoch, self.count, writer)
