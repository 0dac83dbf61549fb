"""`fairway cancel`, `dead`, `redrive`: ending submissions, and giving the dead another life."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import HERE, MINE, Flag, MayHost, Place, Where, changing, reading
from fairway.errors import BadArgument, CallerError, StateError
from fairway.face.queue import Queue
from fairway.model.submission import DeadChunk, Submission

Id = Annotated[int, Parameter(help="Ids of submissions.")]


def cancel(place: Place, /, *ids: Id, where: MayHost = MINE) -> int:
    """End submissions now; what is leased of them is lost to its workers."""
    if not ids:
        raise BadArgument("say which submissions; `fairway status` lists them")
    with changing(place, where) as queue:
        return _each(ids, queue.cancel, lambda one: f"submission {one.id} is cancelled", where.json)


def redrive(place: Place, /, *ids: Id, all: Flag = False, where: MayHost = MINE) -> int:
    """Open dead and skipped chunks again, in a new life of their submission.

    Parameters
    ----------
    all
        Every submission that has dead chunks.
    """
    if bool(ids) == all:
        raise BadArgument("give ids of submissions, or --all for every one with dead chunks")
    with changing(place, where) as queue:
        if all:
            ids = tuple(_with_dead(queue))
            if not ids and not where.json:
                saying.say("no chunk is dead")
        return _each(
            ids, queue.redrive, lambda one: f"submission {one.id} is active, life {one.life}", where.json
        )


def _with_dead(queue: Queue) -> list[int]:
    # Read to the end first: a redrive takes chunks out of the listing.
    return list(dict.fromkeys(chunk.submission for chunk in queue.dead()))


def _each(
    ids: tuple[int, ...], call: Callable[[int], Submission], text: Callable[[Submission], str], json: bool
) -> int:
    """All of them are tried; one that is refused does not keep the others back."""
    refused = 0
    for id in ids:
        try:
            one = call(id)
        except (CallerError, StateError) as error:
            refused += 1
            if json:
                saying.say_json({"submission": id, "error": {"code": error.code, "message": str(error)}})
            else:
                saying.complain(f"fairway: {error}", "red")
            continue
        if json:
            saying.say_json(one)
        else:
            saying.say(text(one))
    return 1 if refused else 0


def dead(
    place: Place,
    /,
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 100,
    where: Where = HERE,
) -> int:
    """List the chunks that were given up.

    Parameters
    ----------
    limit
        How many to list.
    """
    with reading(place, where) as queue:
        found = list(islice(queue.dead(), limit + 1))
    if where.json:
        for chunk in found[:limit]:
            saying.say_json(chunk)
        return 0
    saying.table(
        ("submission", "index", "tenant", "attempts", "died", "error"),
        [_row(chunk) for chunk in found[:limit]],
        ("index", "attempts"),
    )
    if len(found) > limit:
        saying.say(f"only the first {limit:,} are listed; give --limit to see more")
    return 0


def _row(chunk: DeadChunk) -> tuple[object, ...]:
    last = chunk.error.strip().splitlines()
    return (
        str(chunk.submission),
        chunk.index,
        saying.tenant(chunk.tenant),
        chunk.attempts,
        saying.ago(chunk.at) + " ago",
        last[-1] if last else "",
    )
