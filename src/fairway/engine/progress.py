"""A run's changing part as it is stored: what is not implied by its row.

Guards: a run restored from its row and its progress is the run that was written.
"""

from __future__ import annotations

from heapq import heapify

import msgspec

from fairway.engine.done import Done, Page
from fairway.engine.run import DeadMark, Run, Tried
from fairway.limits import PAGE_CHUNKS


class Progress(msgspec.Struct, array_like=True):
    """The stored form; `winners` is the only page of a run that has just one."""

    as_of: int
    next: int
    shuffled: int
    life: int
    paused: bool
    error: str
    error_index: int
    returned: list[int]
    tried: dict[int, Tried]
    dead: dict[int, DeadMark]
    winners: bytes


class EndBody(msgspec.Struct, array_like=True):
    """What is kept of a run that ended."""

    at: float
    done: int
    progress: Progress


_encode = msgspec.msgpack.Encoder().encode
decode_progress = msgspec.msgpack.Decoder(Progress).decode
decode_end = msgspec.msgpack.Decoder(EndBody).decode


def progress_of(run: Run, as_of: int) -> Progress:
    """The run's progress as of a group."""
    page = run.done.pages.get(0) if run.total <= PAGE_CHUNKS else None
    return Progress(
        as_of,
        run.next,
        run.shuffled,
        run.life,
        run.paused,
        run.error,
        run.error_index,
        list(run.returned),
        run.tried,
        run.dead,
        b"" if page is None else page.winners.tobytes(),
    )


def encode_progress(run: Run, as_of: int) -> bytes:
    return _encode(progress_of(run, as_of))


Usual = tuple[int, float, Done]
"""All that is told of the end of a message that went well."""


def usual_end(run: Run, as_of: int) -> Usual | None:
    """What an end's body is made of if nothing but this differs from others: a message, done at its first attempt."""
    if (
        run.total != 1
        or run.next != 1
        or run.life != 1
        or not run.done.count
        or run.shuffled
        or run.paused
        or run.error
        or run.error_index >= 0
        or run.returned
        or run.tried
        or run.dead
        or run.out
    ):
        return None
    return as_of, run.ended, run.done


def encode_end(run: Run, as_of: int) -> bytes:
    progress = progress_of(run, as_of)
    progress.returned.extend(run.out)  # a redrive hands them out again
    return _encode(EndBody(run.ended, run.done.count, progress))


def restore(run: Run, progress: Progress) -> None:
    """Put stored progress into a run; leases are put in by their holds."""
    run.as_of = progress.as_of
    run.next = progress.next
    run.shuffled = progress.shuffled
    run.life = progress.life
    run.paused = progress.paused
    run.error = progress.error
    run.error_index = progress.error_index
    if progress.returned:
        run.returned = set(progress.returned)
        run.gaps = list(progress.returned)
        heapify(run.gaps)
    if progress.tried:
        run.tried = progress.tried
    if progress.dead:
        run.dead = progress.dead
    if progress.winners:
        run.own_done().put(0, Page.stored(progress.winners, progress.as_of))
