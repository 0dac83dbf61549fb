"""Working: reserve, and complete, renew, release or fail what was reserved.

Guards: outcomes keep the caller's order, whatever batches the leases were cut into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from fairway import limits
from fairway.bucket import settling
from fairway.bucket.receipts import Ticket, receipt_of, ticket_for, ticket_of
from fairway.bucket.settling import Renewed, Settled
from fairway.bucket.statements import Machine
from fairway.bucket.taking import Leased, reserve
from fairway.errors import BadArgument, LeaseLost, OutcomeUnknown, QueueDeleted
from fairway.face import checks
from fairway.face.bucket.desk import Desk, Pause
from fairway.face.bucket.leases import BucketLease, lease_of
from fairway.face.steps import Ask, Do, Steps

Held = BucketLease | str
"""A lease, or the text of its receipt."""


class WorkVerbs:
    """The worker's verbs."""

    _desk: Desk

    def reserve(
        self, max: int = 1, *, lease_seconds: float | None = None, wait_seconds: float = 0.0
    ) -> Steps[list[BucketLease]]:
        """Lease up to `max` messages, for the queue's lease time unless another is given.

        With nothing to hand out it waits up to `wait_seconds` and then gives an empty list.
        """
        count = checks.whole("max", max, 1, limits.RESERVE_CHUNKS_MAX)
        seconds = None
        if lease_seconds is not None:
            low, high = limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX
            seconds = checks.number("lease_seconds", lease_seconds, low, high)
        until = self._desk.now() + checks.number("wait_seconds", wait_seconds, 0.0, limits.WAIT_SECONDS_MAX)
        desk = self._desk
        while True:
            found: list[Leased] | None = yield Do(lambda: desk.run(reserve(desk.reader, count, seconds)))
            if found is None:
                raise QueueDeleted()
            left = until - desk.now()
            if found or left <= 0:
                secret = desk.queue.secret
                return [lease_of(one, ticket_for(one.bucket, one.row), secret) for one in found]
            due = desk.reader.next_due
            rest = limits.BUCKET_POLL_SECONDS_MAX if due is None else due - desk.now()
            # The command of this face: wait.
            pause: Any = Pause(min(left, limits.BUCKET_POLL_SECONDS_MAX, max_of(rest, 0.001)))
            yield Ask(pause)

    def complete(self, leases: Held | Iterable[Held]) -> Steps[Settled | list[Settled]]:
        """Complete a lease or many.

        A single one gives "done" (or "already", if this receipt completed it before) or raises LeaseLost. Many give a
        list with an outcome for each: done, already, lost, or unknown where that cannot be told any more.
        """
        return (yield from self._settle(leases, settling.complete))

    def release(self, leases: Held | Iterable[Held]) -> Steps[Settled | list[Settled]]:
        """Give a lease or many back untouched: the delivery does not count, and the message can go out at once."""
        told = yield from self._settle(leases, settling.release)
        self._desk.changed()
        return told

    def fail(
        self,
        leases: Held | Iterable[Held],
        error: str | BaseException = "",
        *,
        retry: bool = True,
        delay_seconds: float | None = None,
    ) -> Steps[Settled | list[Settled]]:
        """Fail a lease or many: each comes back after a back-off, or is a dead letter after its last delivery.

        `retry=False` gives up at once; `delay_seconds` replaces the queue's back-off. The outcome is retrying or dead.
        """
        text, again = checks.error_text(error), checks.flag("retry", retry)
        delay = None
        if delay_seconds is not None:
            delay = checks.number("delay_seconds", delay_seconds, 0.0, limits.DELAY_SECONDS_MAX)

        def machine(generation: bytes, bucket: bytes, tickets: list[Ticket]) -> Machine[list[Settled]]:
            config = self._desk.reader.config
            return settling.fail(generation, bucket, tickets, config, text, again, delay)

        return (yield from self._settle(leases, machine))

    def renew(self, leases: Held | Iterable[Held], seconds: float | None = None) -> Steps[Any]:
        """Hold a lease or many for `seconds` from now (the queue's lease time by default).

        Gives the renewed lease, with a receipt of its own: the old one counts no more. Of many it gives those that
        are yours still. A receipt gives the new receipt.
        """
        given, single = held(leases)
        outcomes = yield from self.renewals(given, seconds)
        if single and isinstance(outcomes[0], str):
            only(outcomes[0])
        renewed: list[Held] = []
        for lease, outcome in zip(given, outcomes, strict=True):
            if not isinstance(outcome, str):
                receipt, deadline = outcome
                same = isinstance(lease, str)
                renewed.append(
                    receipt if same else msgspec.structs.replace(lease, receipt=receipt, deadline=deadline)
                )
        return renewed[0] if single else renewed

    def renewals(
        self, given: list[Held], seconds: float | None = None
    ) -> Steps[list[tuple[str, float] | Settled]]:
        """For each lease its new receipt and deadline, or why it has none."""
        time = self._desk.reader.config.lease_seconds
        if seconds is not None:
            low, high = limits.LEASE_SECONDS_MIN, limits.LEASE_SECONDS_MAX
            time = checks.number("seconds", seconds, low, high)

        def machine(generation: bytes, bucket: bytes, tickets: list[Ticket]) -> Machine[Any]:
            return settling.renew(generation, bucket, tickets, time)

        outcomes = yield from self._outcomes(given, machine)
        secret = self._desk.queue.secret
        return [
            (receipt_of(one.ticket, secret), one.lease) if isinstance(one, Renewed) else one
            for one in outcomes
        ]

    def _settle(
        self,
        leases: Held | Iterable[Held],
        machine: Callable[[bytes, bytes, list[Ticket]], Machine[list[Settled]]],
    ) -> Steps[Settled | list[Settled]]:
        given, single = held(leases)
        outcomes: list[Settled] = yield from self._outcomes(given, machine)
        return only(outcomes[0]) if single else outcomes

    def _outcomes(
        self, given: list[Held], machine: Callable[[bytes, bytes, list[Ticket]], Machine[list[Any]]]
    ) -> Steps[list[Any]]:
        desk = self._desk
        secret = desk.queue.secret
        tickets = [ticket_of(lease if isinstance(lease, str) else lease.receipt, secret) for lease in given]
        outcomes: list[Any] = ["lost"] * len(given)
        for bucket, places in _grouped(tickets):
            some = [ticket for place in places if (ticket := tickets[place]) is not None]
            work = partial(_run, desk, machine, bucket, some)
            told: list[Any] = yield Do(work)
            desk.reader.touched(bucket)
            for place, outcome in zip(places, told, strict=True):
                outcomes[place] = outcome
        return outcomes


def _run(
    desk: Desk,
    machine: Callable[[bytes, bytes, list[Ticket]], Machine[list[Any]]],
    bucket: bytes,
    tickets: list[Ticket],
) -> list[Any]:
    return desk.run(machine(desk.queue.generation, bucket, tickets))


def _grouped(tickets: list[Ticket | None]) -> Iterator[tuple[bytes, list[int]]]:
    """Places of tickets that go together: of one bucket, at most a batch. Forged ones are in none."""
    by_bucket: dict[bytes, list[int]] = {}
    for place, ticket in enumerate(tickets):
        if ticket is not None:
            by_bucket.setdefault(ticket.bucket, []).append(place)
    size = limits.BUCKET_BATCH_ROWS_MAX
    for bucket, places in by_bucket.items():
        for start in range(0, len(places), size):
            yield bucket, places[start : start + size]


def held(leases: Held | Iterable[Held]) -> tuple[list[Held], bool]:
    """The leases or receipts that were given, and whether it was a single one."""
    if isinstance(leases, BucketLease | str):
        return [leases], True
    if not isinstance(leases, Iterable):
        raise BadArgument(
            f"give a lease, a receipt, or a list of them, not {leases!r:.80}", argument="leases"
        )
    given = list(leases)
    for lease in given:
        if not isinstance(lease, BucketLease | str):
            raise BadArgument(
                f"this is neither a lease of a bucket queue nor a receipt: {lease!r:.80}", argument="leases"
            )
    return given, False


def only(outcome: Settled) -> Settled:
    """The outcome of a single lease, or its error."""
    if outcome == "lost":
        raise LeaseLost()
    if outcome == "unknown":
        raise OutcomeUnknown(
            "the message's bucket was removed before anybody could look; it is completed, by this call or another"
        )
    return outcome


def max_of(first: float, second: float) -> float:
    """The larger one, where `max` is an argument."""
    return first if first > second else second
