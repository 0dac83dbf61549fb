"""`fairway top`: a queue as it works, drawn anew every second."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import HERE, Flag, Place, Where
from fairway.cli.top.keys import Keys
from fairway.cli.top.sampling import Sampler
from fairway.cli.words import Seconds

_INTERVAL_SECONDS_MIN = 0.1  # a look costs the host something


def top(
    place: Place,
    /,
    *,
    interval: Seconds = 1.0,
    once: Flag = False,
    count: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    where: Where = HERE,
) -> int:
    """Watch a queue live: throughput, tenants, consumers. q or Ctrl-C ends it.

    Where there is no terminal it prints a screen for each look.

    Parameters
    ----------
    interval
        The time between two looks.
    once
        Look twice, print what is seen and end.
    count
        End after so many looks.
    """
    interval = max(interval, _INTERVAL_SECONDS_MIN)
    looks = 1 if once else count
    with Sampler(place, where) as sampler:
        if once:
            sampler.take()  # a rate needs two looks
        if where.json or once or not saying.console().is_terminal:
            _print(sampler, interval, looks, where.json, once)
        else:
            _draw(sampler, interval, looks)
    return 0


def _print(sampler: Sampler, interval: float, looks: int | None, json: bool, late: bool) -> None:
    from fairway.cli.top.screen import drawn

    with Keys() as keys:
        while looks is None or looks > 0:
            if late and keys.waited(interval):
                return
            late, view = True, sampler.take()
            if json:
                saying.say_json(view)
            else:
                console = saying.console()
                console.print(drawn(view, console.width, None))
            looks = None if looks is None else looks - 1


def _draw(sampler: Sampler, interval: float, looks: int | None) -> None:
    from rich.live import Live

    from fairway.cli.top.screen import drawn

    console = saying.console()
    with Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while looks is None or looks > 0:
            view = sampler.take()
            live.update(drawn(view, console.width, console.height), refresh=True)
            looks = None if looks is None else looks - 1
            if looks == 0 or keys.waited(interval):
                return
