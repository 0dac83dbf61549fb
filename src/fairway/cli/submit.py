"""`fairway submit` and `fairway put`: work goes into a queue."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import feeding, saying
from fairway.cli.arguments import STDIN
from fairway.cli.places import MINE, Flag, MayHost, Place, changing
from fairway.cli.waiting import until_ended
from fairway.cli.words import Pairs, Seconds, blob, pairs
from fairway.errors import BadArgument, TooLarge
from fairway.face.queue import Queue
from fairway.limits import CHUNKS_MAX, INLINE_BYTES_MAX
from fairway.model.submission import Submission

Policy = Literal["fail_fast", "dead_letter"]


@Parameter(name="*")
@dataclass(frozen=True)
class Described:
    """What is said of the work, whatever its form."""

    tenant: Annotated[str, Parameter(name=["--tenant", "-t"], help="Whom it belongs to.")] = ""
    meta: Pairs = None
    info: Annotated[str, Parameter(help="A text for the worker, or @FILE.")] = ""
    priority: Annotated[int, Parameter(help="For CustomPriority; high goes first.")] = 0
    key: Annotated[str | None, Parameter(help="The same key and content is the same submission.")] = None
    weight: Annotated[float | None, Parameter(help="Set the tenant's share, 0.01 to 100.")] = None
    policy: Annotated[
        Policy | None, Parameter(help="What a dead chunk does: end the submission, or let the rest go on.")
    ] = None
    delay: Annotated[Seconds | None, Parameter(help="Hold it back: 90, 5m, 2h.")] = None
    deadline: Annotated[Seconds | None, Parameter(help="It fails if it is not finished within this.")] = None
    attempts_max: Annotated[
        int | None, Parameter(help="Deliveries of a chunk before it is dead; the queue's own if left out.")
    ] = None

    def keywords(self) -> dict[str, Any]:
        """As `Queue.submit` and `Queue.put` take it."""
        told: dict[str, Any] = {
            "tenant": self.tenant,
            "metadata": pairs(self.meta or ()),
            "info": blob(self.info),
            "priority": self.priority,
            "key": self.key,
            "weight": self.weight,
            "delay_seconds": self.delay,
            "deadline_seconds": self.deadline,
            "attempts_max": self.attempts_max,
        }
        return told | ({"policy": self.policy} if self.policy else {})


PLAINLY = Described()


def submit(
    place: Place,
    /,
    *files: str,
    lines: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    whole: Flag = False,
    chunks: Annotated[int | None, Parameter(validator=Number(gte=0, lte=CHUNKS_MAX))] = None,
    objects: str | None = None,
    delete_objects: Flag = False,
    described: Described = PLAINLY,
    wait: Flag = False,
    timeout: Seconds | None = None,
    quiet: Flag = False,
    where: MayHost = MINE,
) -> int:
    """Submit chunks: the lines of files, whole files, or a number of them.

    Parameters
    ----------
    files
        Files to cut into chunks; - is standard input.
    lines
        How many lines make a chunk.
    whole
        Each file is one chunk.
    chunks
        So many chunks without payloads, or with --objects: whose payloads are there already.
    objects
        A URL prefix: chunk i is PREFIX/i. With files the chunks are uploaded there.
    delete_objects
        Remove payload and result objects when the submission's retention is over.
    wait
        Wait until it has ended; the exit code is 0 if it completed.
    timeout
        Wait no longer than this.
    quiet
        Print the id and nothing else.
    """
    given = _files(files, chunks)
    with changing(place, where) as queue:
        told = described.keywords() | {"objects": objects, "delete_objects": delete_objects}
        if chunks is not None:
            made = queue.submit(chunks=chunks, **told)
        else:
            made = _read_in(queue, given, lines, whole, told, where.json or quiet)
        if not wait:
            _tell(made, where.json, quiet)
            return 0
        (ended,) = until_ended(queue, [made], timeout, where.json or quiet)
        _tell(ended, where.json, quiet)
        return 0 if ended.state == "completed" else 1


def _files(files: tuple[str, ...], chunks: int | None) -> tuple[str, ...]:
    if chunks is not None:
        if files:
            raise BadArgument("give files, or --chunks, not both")
        return ()
    if not files and sys.stdin.isatty():
        raise BadArgument("nothing to submit; give files, - for standard input, or --chunks N")
    return files or (STDIN,)


def _read_in(
    queue: Queue, files: tuple[str, ...], lines: int, whole: bool, told: dict[str, Any], quiet: bool
) -> Submission:
    with saying.progress(quiet, in_bytes=True) as bar:
        task = bar.add_task("uploading" if told["objects"] else "reading", total=feeding.total_bytes(files))
        with _taught():
            payloads = feeding.chunks(files, lines, whole, lambda more: bar.advance(task, more))
            return queue.submit(payloads, **told)


@contextmanager
def _taught():
    try:
        yield
    except TooLarge:
        raise TooLarge(
            f"the chunks have more than {saying.size(INLINE_BYTES_MAX)} in all, too much for one submission inline;"
            " upload them with --objects file:///some/folder (or s3://...), or submit the file in parts"
        ) from None


def put(
    place: Place,
    /,
    *messages: str,
    file: tuple[str, ...] = (),
    described: Described = PLAINLY,
    quiet: Flag = False,
    where: MayHost = MINE,
) -> int:
    """Put messages: each argument is one; without any, each line of standard input.

    Parameters
    ----------
    messages
        Texts; each becomes a message.
    file
        A file whose whole content is a message; may be repeated.
    quiet
        Print the ids and nothing else.
    """
    told = described.keywords()
    key = told.pop("key")
    with changing(place, where) as queue:
        payloads = [*_texts(messages, file), *feeding.chunks(file, 1, True, lambda more: None)]
        if key is not None and len(payloads) != 1:
            raise BadArgument(f"a key belongs to one message, and there are {len(payloads)}; leave --key out")
        made = [queue.put(payloads[0], key=key, **told)] if key else queue.put_many(payloads, **told)
    for one in made if quiet or where.json else ():
        _tell(one, where.json, quiet)
    if not quiet and not where.json:
        first = f", the first is {made[0].id}" if len(made) > 1 else f", {made[0].id}" if made else ""
        saying.say(f"put {saying.many(len(made), 'message')}{first}")
    return 0


def _texts(messages: tuple[str, ...], file: tuple[str, ...]) -> Iterable[bytes]:
    if messages or file:
        return [message.encode(errors="surrogateescape") for message in messages]
    if sys.stdin.isatty():
        raise BadArgument("nothing to put; give messages, --file, or lines on standard input")
    return feeding.chunks([STDIN], 1, False, lambda more: None)


def _tell(made: Submission, json: bool, quiet: bool) -> None:
    if json:
        saying.say_json(made)
    elif quiet:
        saying.say(str(made.id))
    else:
        owner = f" for {made.tenant}" if made.tenant else ""
        text = f"submission {made.id}: {saying.many(made.total, 'chunk')}{owner}"
        if made.state != "active" or made.done:
            text += f", {made.state}, {made.done:,} done" + (f", {made.failed:,} dead" if made.failed else "")
        saying.say(text + (f": {made.error}" if made.error else ""))
