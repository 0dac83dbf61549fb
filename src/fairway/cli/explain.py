"""`fairway explain`: what a strategy would hand out next, and why others wait."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import MINE, MayHost, Place, reading


def explain(
    place: Place,
    strategy: str | None = None,
    /,
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 10,
    where: MayHost = MINE,
) -> int:
    """Say what a strategy would hand out next, and why others wait. It changes nothing.

    Parameters
    ----------
    strategy
        A strategy's text, such as 'MaxSimultaneous("tenant", 5, Fair)'; the queue's own if left out.
    limit
        How many submissions to tell of, of each sort.
    """
    with reading(place, where) as queue:
        told = queue.explain(strategy, limit=limit)
    if where.json:
        saying.say_json({"queue": where.queue, "strategy": strategy, "explanation": told})
    else:
        print(told)
    return 0
