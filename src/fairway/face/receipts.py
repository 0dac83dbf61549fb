"""Receipts: leases as a caller gives them back, and the parts of a command they become.

Guards: parts keep the caller's order, so the n-th outcome is that of the n-th lease given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from fairway.engine.commands import Outcome, Part, Reserved, Span
from fairway.errors import AlreadyEnded, BadArgument, LeaseLost
from fairway.model.lease import Lease, Ticket, ticket_of

Held = Lease | str
"""A lease, or the text of its receipt."""


class Leases(list[Lease]):
    """What one reserve gave: a list that knows how it is given back, as long as it is whole."""

    __slots__ = ("_given", "_reserved")

    def __init__(self, given: list[Lease], reserved: Reserved) -> None:
        super().__init__(given)
        self._given = given
        self._reserved = reserved

    def copy(self) -> Leases:
        same = Leases(self, self._reserved)
        same._given = self._given
        return same

    def parts(self) -> list[Part] | None:
        """`parts_of` of all; None if leases were added, removed or moved."""
        if self != self._given:
            return None
        reserved = self._reserved
        spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
        return [Part(reserved.epoch, reserved.count, reserved.seal, spans)]

    def __reduce__(self) -> tuple[type[list[Lease]], tuple[list[Lease]]]:
        return list, (list(self),)


def held(leases: Held | Iterable[Held]) -> tuple[list[Held], bool]:
    """What was given as a list, and whether it was a single one."""
    if isinstance(leases, Lease | str):
        return [leases], True
    if type(leases) is Leases:
        return cast(list[Held], leases.copy()), False
    if not isinstance(leases, Iterable):
        raise BadArgument(
            f"give a lease, a receipt, or a list of them, not {leases!r:.80}", argument="leases"
        )
    return list(leases), False


def parts_of(leases: Sequence[Held]) -> list[Part]:
    """Neighbours of one reservation share a part, neighbours of one submission a span."""
    whole = leases.parts() if type(leases) is Leases else None
    if whole is not None:
        return whole
    parts: list[Part] = []
    spans: list[Span] = []
    epoch = count = seal = submission = start = end = -1
    for lease in leases:
        if type(lease) is not Lease:
            lease = _ticket(lease)
        if lease.count != count or lease.seal != seal or lease.epoch != epoch:
            if submission >= 0:
                spans.append((submission, start, end - start))
            epoch, count, seal, submission = lease.epoch, lease.count, lease.seal, -1
            spans = []
            parts.append(Part(epoch, count, seal, spans))
        index = lease.index
        if index == end and lease.submission == submission:
            end += 1
        else:
            if submission >= 0:
                spans.append((submission, start, end - start))
            submission, start, end = lease.submission, index, index + 1
    if submission >= 0:
        spans.append((submission, start, end - start))
    return parts


def _ticket(lease: object) -> Lease:
    """A ticket has what `parts_of` reads of a lease."""
    if isinstance(lease, str):
        ticket = ticket_of(lease)
    elif isinstance(lease, Ticket):
        ticket = lease
    else:
        raise BadArgument(f"this is neither a lease nor a receipt: {lease!r:.80}", argument="leases")
    return cast(Lease, ticket)


def spread(outcomes: list[tuple[Outcome, int]]) -> list[Outcome]:
    """An outcome per chunk."""
    if len(outcomes) == 1:
        outcome, n = outcomes[0]
        return [outcome] * n
    return [outcome for outcome, n in outcomes for _ in range(n)]


def only(lease: Held, outcomes: list[Outcome]) -> Outcome:
    """The outcome of a single lease; a lease that is no longer held is an error."""
    outcome = outcomes[0]
    if outcome in ("lost", "ended"):
        ticket = ticket_of(lease) if isinstance(lease, str) else lease
        where = f"chunk {ticket.index} of submission {ticket.submission}"
        details = {"submission": ticket.submission, "index": ticket.index}
        if outcome == "lost":
            raise LeaseLost(f"the lease on {where} is no longer yours; drop the work", **details)
        raise AlreadyEnded(f"the submission of {where} has ended; nothing was changed", **details)
    return outcome
