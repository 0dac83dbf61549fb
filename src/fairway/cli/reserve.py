"""`fairway reserve`, `complete`, `fail`, `renew`, `release`: a worker's verbs, one call each, for scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import MINE, Flag, MayHost, Place, changing
from fairway.cli.words import Seconds, blob
from fairway.errors import BadArgument
from fairway.face.queue import Queue
from fairway.limits import RESERVE_CHUNKS_MAX
from fairway.model.lease import Lease

Receipt = Annotated[
    str,
    Parameter(help="Receipts of leases, as `reserve` gave them; without any, lines of standard input."),
]
_SHOWN_CHARS = 60  # of a payload, in a table


def reserve(
    place: Place,
    /,
    *,
    max: Annotated[int, Parameter(name=["--max", "-n"], validator=Number(gte=1, lte=RESERVE_CHUNKS_MAX))] = 1,
    strategy: str | None = None,
    lease: Seconds | None = None,
    wait: Seconds = 0.0,
    consumer: str | None = None,
    seq: int | None = None,
    where: MayHost = MINE,
) -> int:
    """Reserve chunks and print their leases; the exit code is 1 if there was nothing to hand out.

    Parameters
    ----------
    max
        How many chunks at most.
    strategy
        How to choose, such as 'MaxSimultaneous("tenant", 5, Fair)'; the queue's own if left out.
    lease
        How long they are yours; the queue's lease time if left out.
    wait
        How long to wait for work.
    consumer
        With --seq: the reservation has a name and comes back unchanged when it is asked for again.
    seq
        The number of a named reservation.
    """
    with changing(place, where) as queue:
        leases = queue.reserve(
            max, strategy=strategy, lease_seconds=lease, wait_seconds=wait, consumer=consumer, seq=seq
        )
        if where.json:
            for one in leases:
                saying.say_json(told(one))
        elif leases:
            _show(leases)
        else:
            saying.console(stderr=True).print("nothing to hand out")
    return 0 if leases else 1


def told(lease: Lease) -> dict[str, object]:
    """A lease as JSON has it; a payload by reference is named, not read."""
    fields = {
        "receipt": lease.receipt,
        "submission": lease.submission,
        "index": lease.index,
        "attempt": lease.attempt,
        "deadline": lease.deadline,
        "tenant": lease.tenant,
        "metadata": dict(lease.metadata),
        "info": lease.info,
        "object": lease.object,
    }
    return saying.with_text(fields, "payload", None if lease.object else lease.payload)


def _show(leases: list[Lease]) -> None:
    rows = [
        (
            str(lease.submission),
            lease.index,
            saying.tenant(lease.tenant),
            lease.attempt,
            _short(lease),
            lease.receipt,
        )
        for lease in leases
    ]
    saying.table(
        ("submission", "index", "tenant", "attempt", "payload", "receipt"), rows, ("index", "attempt")
    )


def _short(lease: Lease) -> str:
    if lease.object:
        return lease.object
    text = (lease.payload or b"").decode(errors="replace")
    line = text.splitlines()[0] if text else ""
    return line if len(text) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "..."


def complete(place: Place, /, *receipts: Receipt, result: str | None = None, where: MayHost = MINE) -> int:
    """Complete leases; the exit code is 1 if one of them was no longer yours.

    Parameters
    ----------
    result
        The result, the same for each of them: a text, or @FILE.
    """
    data = None if result is None else blob(result)

    def call(queue: Queue, given: list[str]) -> list[str]:
        return list(queue.complete(given, results=None if data is None else [data] * len(given)))

    return _answer(place, receipts, where, call)


def fail(
    place: Place,
    /,
    *receipts: Receipt,
    error: str = "",
    give_up: Flag = False,
    delay: Seconds | None = None,
    where: MayHost = MINE,
) -> int:
    """Fail leases: their chunks come back after a back-off, or are dead after their last attempt.

    Parameters
    ----------
    error
        What went wrong; it is kept with a dead chunk.
    give_up
        Do not try again.
    delay
        Try again after this, in place of the queue's back-off.
    """
    return _answer(
        place,
        receipts,
        where,
        lambda queue, given: queue.fail(given, error, retry=not give_up, delay_seconds=delay),
    )


def renew(place: Place, /, *receipts: Receipt, lease: Seconds | None = None, where: MayHost = MINE) -> int:
    """Hold leases for longer.

    Parameters
    ----------
    lease
        How long from now; the queue's lease time if left out.
    """

    def call(queue: Queue, given: list[str]) -> list[str]:
        held = set(cast(list[str], queue.renew(given, lease)))
        return ["renewed" if receipt in held else "lost" for receipt in given]

    return _answer(place, receipts, where, call)


def release(place: Place, /, *receipts: Receipt, where: MayHost = MINE) -> int:
    """Give leases back untouched: no attempt counts, and their chunks can be handed out at once."""
    return _answer(place, receipts, where, lambda queue, given: queue.release(given))


def _answer(
    place: str, receipts: tuple[str, ...], where: MayHost, call: Callable[[Queue, list[str]], Any]
) -> int:
    given = list(receipts) or _lines()
    with changing(place, where) as queue:
        outcomes = call(queue, given)
    for receipt, outcome in zip(given, outcomes, strict=True):
        if where.json:
            saying.say_json({"receipt": receipt, "outcome": outcome})
        else:
            saying.say(f"{outcome}  {receipt}")
    return 1 if {"lost", "ended"} & set(outcomes) else 0


def _lines() -> list[str]:
    if sys.stdin.isatty():
        raise BadArgument("no receipt is given; take them from `fairway reserve --json`")
    try:
        return [line.strip() for line in sys.stdin if line.strip()]
    except UnicodeDecodeError:
        raise BadArgument("standard input has no receipts; take them from `fairway reserve --json`") from None
