"""`fairway work`: a command or a Python function is run for each chunk.

Guards: a chunk is completed if and only if its command ended with 0 or its function returned; a worker that is told
to stop finishes what it is at and gives the rest back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import Flag, Place, Where, working
from fairway.cli.places import MayHost as _MayHost
from fairway.cli.running import command_of, function_of
from fairway.cli.words import Seconds
from fairway.errors import BadArgument
from fairway.face import checks
from fairway.face.queue import Queue
from fairway.limits import RESERVE_CHUNKS_MAX, WORK_PROCESSES_MAX
from fairway.worker.family import Family
from fairway.worker.loop import Function
from fairway.worker.tally import Sums
from fairway.worker.working import run_here

Count = Annotated[int, Parameter(validator=Number(gte=1, lte=RESERVE_CHUNKS_MAX))]
HERE = Where()


def work(
    place: Place,
    /,
    *command: str,
    function: str | None = None,
    jobs: Annotated[int, Parameter(name=["--jobs", "-j"], validator=Number(gte=1, lte=256))] = 1,
    processes: Annotated[int, Parameter(validator=Number(gte=1, lte=WORK_PROCESSES_MAX))] = 1,
    batch: Count = 1,
    strategy: str | None = None,
    lease: Seconds | None = None,
    timeout: Seconds | None = None,
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    until_empty: Flag = False,
    where: Where = HERE,
) -> int:
    """Run a command or a Python function for each chunk, until it is told to stop.

    Parameters
    ----------
    command
        One word is run by the shell, several are a program and its arguments (write them after --).
    function
        module:function, called with a lease; the bytes it returns are the result.
    jobs
        How many chunks at a time, in threads. That is enough for commands; functions want --processes, too.
    processes
        How many processes, each with so many jobs; one that dies is started again.
    batch
        How many chunks to reserve at once for each job.
    strategy
        How to choose; the queue's own if left out.
    lease
        The queue's lease time if left out. A lease is renewed while work goes on; work that lost its is stopped.
    timeout
        A command that takes longer is ended, and its chunk has failed.
    limit
        Stop after so many chunks.
    until_empty
        Stop when nothing can be handed out now; what failed and waits for its next try is left.
    """
    make = _what(command, function, timeout)
    options = {
        "jobs": jobs,
        "batch": batch,
        "strategy": checks.strategy(strategy) or None,
        "lease_seconds": lease,
        "stop_when_empty": until_empty,
        "say": None if where.json else _say,
    }
    # A worker lives long, so it may host: work goes on where it is the only one.
    opened = functools.partial(working, place, _MayHost(where.queue, where.json, where.store, True))
    sums = _worked(opened, make, options, processes, limit)
    if where.json:
        saying.say_json(sums)
    else:
        _say(f"{sums.done:,} done, {sums.failed:,} failed, {sums.lost:,} lost, {sums.released:,} given back")
    return 0


def _what(command: tuple[str, ...], function: str | None, timeout: float | None) -> Callable[[], Function]:
    """Makes what is done with a chunk, in each process that does it."""
    if bool(command) == (function is not None):
        raise BadArgument("say what to do with a chunk: a command, or --function module:function")
    if function is None:
        return functools.partial(command_of, command, timeout)
    if timeout is not None:
        raise BadArgument("--timeout ends a command; a function cannot be ended from outside")
    return functools.partial(function_of, function)


def _worked(
    opened: Callable[[], Queue],
    make: Callable[[], Function],
    options: dict[str, Any],
    processes: int,
    limit: int | None,
) -> Sums:
    found = make()  # what cannot be found is told before anything is opened
    with opened() as queue:
        if options["lease_seconds"] is None:
            options["lease_seconds"] = queue.configure().lease_seconds
        if processes == 1:
            return run_here(queue, found, options, limit=limit)
    return Family(processes, opened, make, options, limit).run(None)


def _say(text: str) -> None:
    saying.complain(text)
