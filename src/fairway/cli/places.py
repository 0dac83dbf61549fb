"""Where a command's queue is: a file or a URL, and how it is opened for looking or for changing.

Guards: a command never makes a file or a queue by the way, and hosts a queue only if it was told to.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

from cyclopts import Parameter

import fairway
from fairway.cli.arguments import STORE
from fairway.cli.knocking import knock
from fairway.errors import BadArgument, NoHost, NotFound
from fairway.runtime.looking import look
from fairway.store.sqlite.looking import queue_names

Flag = Annotated[bool, Parameter(negative="")]
Place = Annotated[
    str,
    Parameter(help=f"The queue's file or URL. Leave it out where --store or {STORE} names it."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """What every command on a queue takes."""

    queue: Annotated[
        str, Parameter(name=["--queue", "-q"], env_var="FAIRWAY_QUEUE", help="The queue in the file.")
    ] = "default"
    json: Annotated[bool, Parameter(negative="", help="Print JSON and nothing else.")] = False
    # Taken out of the command line before it is read, see `placed`; here for the help and the completion.
    store: Annotated[str | None, Parameter(env_var=STORE, help="The queue's file or URL.")] = None


@Parameter(name="*")
@dataclass(frozen=True)
class MayHost(Where):
    """What every command that changes a queue takes."""

    host: Annotated[
        bool,
        Parameter(
            negative="",
            env_var="FAIRWAY_HOST",
            help="Open the file for this one command if no other process has it open.",
        ),
    ] = False


HERE: Final = Where()
MINE: Final = MayHost()


def is_url(place: str) -> bool:
    return "://" in place and not place.startswith("file:")


def file_of(place: str) -> str:
    """The path of a place that must be a file."""
    if place == ":memory:" or is_url(place):
        raise BadArgument(f"this command works on a file, and {place} is none; give the path of one")
    return os.path.realpath(unquote(urlsplit(place).path) if place.startswith("file:") else place)


def reading(place: str, where: Where) -> fairway.Queue:
    """The queue for a command that only looks: through its host, or as the file stands if there is none."""
    return seen(place, where)[0]


def seen(place: str, where: Where) -> tuple[fairway.Queue, bool]:
    """The queue for a command that only looks, and whether somebody hosts it."""
    if is_url(place):
        knock(place, where.queue)
        return fairway.open(place, where.queue, create=False), True
    path = _found(place, where.queue)
    host = isinstance(where, MayHost) and where.host
    try:
        return fairway.open(path, where.queue, create=False, host=host), True
    except NoHost as error:
        if error.details.get("pid"):
            raise
        return look(path, where.queue), False


def changing(place: str, where: MayHost) -> fairway.Queue:
    """The queue for a command that changes it, through its host."""
    knock(place, where.queue)
    return working(place, where)


def working(place: str, where: MayHost) -> fairway.Queue:
    """The queue for who stays: a worker also waits for a server that is started after it."""
    if is_url(place):
        return fairway.open(place, where.queue, create=False)
    path = _found(place, where.queue)
    try:
        return fairway.open(path, where.queue, create=False, host=where.host)
    except NoHost as error:
        if error.details.get("pid"):
            raise
        raise NoHost(
            f"no process has {place} open, and a short command does not host a queue by itself; start"
            f" `fairway work {place} ...` or another program that opens it,"
            " or repeat the command with --host (or FAIRWAY_HOST=1)"
        ) from None


def _found(place: str, queue: str) -> str:
    path = file_of(place)
    if not os.path.exists(path):
        raise NotFound(
            f"there is no file {place}; the first argument names it, unless --store or FAIRWAY_STORE does;"
            f" make it with: fairway queue create {place}"
        )
    if not os.path.isfile(path):
        raise BadArgument(f"{place} is no file; give the path of a queue's file")
    names = queue_names(path)
    if queue not in names:
        there = ", ".join(names) or "none"
        raise NotFound(
            f"there is no queue {queue!r} in {place}, which has: {there};"
            f" make it with: fairway queue create {place} --queue {queue}"
        )
    return path
