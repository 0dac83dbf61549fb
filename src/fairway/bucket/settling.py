"""Settling: complete, renew, release and fail by receipt.

Guards: only the latest lease of a message changes it, once; a refusal that follows an unknown outcome is looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from fairway.bucket.burying import bury
from fairway.bucket.config import BucketConfig
from fairway.bucket.receipts import Ticket
from fairway.bucket.rows import WAITING, Bucket, Row
from fairway.bucket.statements import (
    APPLIED,
    FRESH,
    UNKNOWN,
    Change,
    Doom,
    Finish,
    Hold,
    Machine,
    Moment,
    Outcome,
    ReadRows,
    Rest,
    Write,
    read,
)

Settled = Literal["done", "already", "lost", "unknown", "retrying", "dead", "released", "renewed"]
_REST = Rest(0.05)


class Renewed(msgspec.Struct, frozen=True):
    """A renewed lease: the ticket that counts now, and until when."""

    ticket: Ticket
    lease: float


def complete(generation: bytes, bucket: bytes, tickets: list[Ticket]) -> Machine[list[Settled]]:
    """Complete messages of one bucket; an outcome for each."""
    found = yield from _change(
        generation, bucket, tickets, "complete", lambda rows: Finish(generation, bucket, rows)
    )
    return [_word(found[ticket], "done", "already") for ticket in tickets]


def renew(
    generation: bytes, bucket: bytes, tickets: list[Ticket], seconds: float
) -> Machine[list[Renewed | Settled]]:
    """Hold messages of one bucket for `seconds` from now; the renewed lease, or why not, for each."""
    moment: Moment = yield FRESH
    lease = moment.now + seconds
    kept = {ticket.uid: ticket.attempts for ticket in tickets}

    def hold(rows: list[Change]) -> Write:
        return Hold(generation, bucket, _counted(rows, lambda uid: kept[uid]), lease, True)

    found = yield from _change(generation, bucket, tickets, "renew", hold)
    told: list[Renewed | Settled] = []
    for ticket in tickets:
        one = found[ticket]
        if isinstance(one, Row) or one == "done":
            # A repeated renewal finds the lease that the first one made.
            until = one.lease if isinstance(one, Row) else lease
            after = Ticket(
                bucket, ticket.uid, ticket.version + 1, ticket.next_nonce("renew"), ticket.attempts
            )
            told.append(Renewed(after, until))
        else:
            told.append(one)
    return told


def release(generation: bytes, bucket: bytes, tickets: list[Ticket]) -> Machine[list[Settled]]:
    """Give messages back untouched: the delivery does not count."""
    moment: Moment = yield FRESH
    kept = {ticket.uid: ticket.attempts for ticket in tickets}

    def hold(rows: list[Change]) -> Write:
        return Hold(generation, bucket, _counted(rows, lambda uid: max(0, kept[uid] - 1)), moment.now, False)

    found = yield from _change(generation, bucket, tickets, "release", hold)
    return [_word(found[ticket], "released", "released") for ticket in tickets]


def fail(
    generation: bytes,
    bucket: bytes,
    tickets: list[Ticket],
    config: BucketConfig,
    error: str,
    retry: bool,
    delay_seconds: float | None,
) -> Machine[list[Settled]]:
    """Give messages back after a back-off; those that were delivered often enough die."""
    doomed = [ticket for ticket in tickets if not retry or ticket.attempts >= config.attempts_max]
    told: dict[Ticket, Settled] = {}
    if doomed:
        found = yield from _change(
            generation, bucket, doomed, "doom", lambda rows: Doom(generation, bucket, rows, error)
        )
        told |= {ticket: _word(one, "dead", "dead") for ticket, one in found.items()}
        # Whoever stops here leaves dying rows; the repairer buries those.
        yield from bury(generation, bucket, [ticket.uid for ticket, word in told.items() if word == "dead"])
    by_delay: dict[float, list[Ticket]] = {}
    for ticket in tickets:
        if ticket not in told:
            delay = config.back_off(ticket.attempts) if delay_seconds is None else delay_seconds
            by_delay.setdefault(delay, []).append(ticket)
    for delay, some in by_delay.items():
        told |= yield from _retry(generation, bucket, some, delay, error)
    return [told[ticket] for ticket in tickets]


def _retry(
    generation: bytes, bucket: bytes, tickets: list[Ticket], delay: float, error: str
) -> Machine[dict[Ticket, Settled]]:
    moment: Moment = yield FRESH
    kept = {ticket.uid: ticket.attempts for ticket in tickets}

    def hold(rows: list[Change]) -> Write:
        return Hold(
            generation, bucket, _counted(rows, lambda uid: kept[uid]), moment.now + delay, False, error
        )

    found = yield from _change(generation, bucket, tickets, "fail", hold)
    return {ticket: _word(one, "retrying", "retrying") for ticket, one in found.items()}


def _counted(rows: list[Change], attempts: Callable[[bytes], int]) -> list[Change]:
    return [msgspec.structs.replace(row, attempts=attempts(row.uid)) for row in rows]


def _word(found: Row | Settled, done: Settled, again: Settled) -> Settled:
    if isinstance(found, Row):
        return again
    return done if found == "done" else found


def _change(
    generation: bytes,
    bucket: bytes,
    tickets: list[Ticket],
    verb: str,
    statement_of: Callable[[list[Change]], Write],
) -> Machine[dict[Ticket, Row | Settled]]:
    """Carry out a verb on the rows that these receipts still hold.

    By ticket: "done"; the row as it is, if this receipt did it in an earlier call; "lost"; "unknown" if the bucket was
    removed before anybody could look.
    """
    told: dict[Ticket, Row | Settled] = {}
    todo, doubt = list(dict.fromkeys(tickets)), False
    while todo:
        outcome: Outcome = yield statement_of([_as_change(ticket, verb) for ticket in todo])
        if outcome is APPLIED:
            told |= dict.fromkeys(todo, "done")
            break
        doubt = doubt or outcome is UNKNOWN
        found: Bucket | None = yield from read(ReadRows(generation, bucket, [ticket.uid for ticket in todo]))
        left: list[Ticket] = []
        for ticket in todo:
            row = found.row(ticket.uid) if found is not None else None
            if row is None:
                told[ticket] = "unknown" if doubt else "lost"
            elif row.nonce == ticket.next_nonce(verb):
                # A renewal needs the lease that stands there, whichever call of this receipt wrote it.
                told[ticket] = "done" if doubt and verb != "renew" else row
            elif (row.version, row.nonce, row.status) == (ticket.version, ticket.nonce, WAITING):
                left.append(ticket)
            else:
                told[ticket] = "lost"
        todo = left
        if todo and outcome is UNKNOWN:
            yield _REST
    return told


def _as_change(ticket: Ticket, verb: str) -> Change:
    return Change(ticket.uid, ticket.version, ticket.nonce, ticket.next_nonce(verb))
