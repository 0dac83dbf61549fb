"""Batches as a caller gives them: completions and failures of many leases, settled in one call.

Guards: the n-th list of outcomes belongs to the n-th completion or failure given.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairway import limits
from fairway.engine.commands import Complete, Fail, Finish, Finished, Outcome
from fairway.errors import BadArgument, TooLarge
from fairway.face import checks
from fairway.face.receipts import Held, parts_of, spread


class Completion(msgspec.Struct, frozen=True):
    """Leases that are done: with inline results, or with objects that one writer wrote, or with nothing."""

    leases: Sequence[Held]
    results: Sequence[bytes | None] | None = None
    by_reference: bool = False
    writer: int = 0


class Failure(msgspec.Struct, frozen=True):
    """Leases that failed for one reason."""

    leases: Sequence[Held]
    error: str = ""
    retry: bool = True


class Batch(msgspec.Struct, frozen=True):
    """An outcome per lease for each completion and failure, and how many chunks of the rest are done now.

    `before` counts the reservations of this call that an earlier one had settled: then this one is a replay.
    """

    completed: list[list[Outcome]]
    failed: list[list[Outcome]]
    rest: int
    before: int = 0


def within_batch(completed: Sequence[Completion | Complete]) -> None:
    """Refuse more inline results than one step of the queue can store."""
    size = sum(len(blob or b"") for one in completed for blob in one.results or ())
    if size > limits.GROUP_BYTES_MAX:
        raise TooLarge(
            f"the inline results of one batch have at most {limits.GROUP_BYTES_MAX} bytes, not {size}: let a batch have"
            " fewer chunks (max_chunks on Spark), or submit with objects, so that results are objects too"
        )


def finish_command(
    consumer: str,
    epoch: int,
    run: str,
    completed: Sequence[Completion],
    failed: Sequence[Failure],
    first: bytes | None,
    others: bytes | None,
    whole: bool,
) -> Finish:
    """The command, checked."""
    checked = [_checked(one) for one in completed]
    within_batch(checked)
    return Finish(
        consumer,
        checks.whole("epoch", epoch, 0, 2**63 - 1),
        checks.text("run", run, limits.CONSUMER_NAME_BYTES_MAX),
        [
            Complete(
                parts_of(one.leases),
                one.results,  # pyright: ignore[reportArgumentType]
                checks.flag("by_reference", one.by_reference),
                checks.whole("writer", one.writer, 0, 2**62 - 1),
            )
            for one in checked
        ],
        [
            Fail(parts_of(one.leases), checks.error_text(one.error), checks.flag("retry", one.retry))
            for one in failed
        ],
        first if first is None else checks.blob("first", first, limits.PAYLOAD_BYTES_MAX),
        others if others is None else checks.blob("others", others, limits.PAYLOAD_BYTES_MAX),
        checks.flag("whole", whole),
    )


def _checked(given: Completion) -> Completion:
    if given.results is None:
        return given
    if given.by_reference:
        raise BadArgument("with by_reference=True the results are objects already", argument="results")
    results = [
        None if blob is None else checks.blob(f"results[{i}]", blob, limits.PAYLOAD_BYTES_MAX)
        for i, blob in enumerate(given.results)
    ]
    return msgspec.structs.replace(given, results=results)


def batch_of(reply: Finished) -> Batch:
    """The outcomes, one per lease."""
    return Batch(
        [spread(one.outcomes) for one in reply.completed],
        [spread(one.outcomes) for one in reply.failed],
        reply.rest,
        reply.before,
    )
