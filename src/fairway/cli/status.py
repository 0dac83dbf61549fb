"""`fairway status`: a queue at a glance, its submissions, or some of them in full."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from fairway.cli import saying
from fairway.cli.places import MINE, Flag, MayHost, Place, reading
from fairway.cli.queue import counts
from fairway.cli.waiting import until_ended
from fairway.cli.words import Pairs, Seconds, pairs
from fairway.face.queue import Queue
from fairway.model.submission import Submission

States = Literal["active", "completed", "failed", "cancelled", "ended", "any"]


def status(
    place: Place,
    /,
    *ids: int,
    state: States = "active",
    tenant: Annotated[str | None, Parameter(name=["--tenant", "-t"])] = None,
    meta: Pairs = None,
    limit: Annotated[int, Parameter(validator=Number(gte=0))] = 20,
    wait: Flag = False,
    timeout: Seconds | None = None,
    where: MayHost = MINE,
) -> int:
    """Show how a queue is, with its submissions; or some submissions in full.

    Parameters
    ----------
    ids
        Submissions to show in full, in place of the queue.
    state
        List submissions of this state.
    tenant
        List those of this tenant.
    limit
        How many to list.
    wait
        Wait until the submissions named have ended; the exit code is 0 if all of them completed.
    timeout
        Wait no longer than this.
    """
    with reading(place, where) as queue:
        if ids:
            return _some(queue, ids, wait, timeout, where.json)
        found = queue.submissions(
            state=None if state == "any" else state, tenant=tenant, metadata=pairs(meta or ())
        )
        listed = list(islice(found, limit + 1))
        stats = queue.stats()
    shown, more = listed[:limit], len(listed) > limit
    if where.json:
        saying.say_json({"stats": stats, "submissions": shown, "more": more})
        return 0
    saying.fields([("queue", where.queue), *counts(stats)])
    if shown:
        saying.say("")
        _list(shown)
    if more:
        saying.say(f"only the first {limit:,} are listed; give --limit to see more")
    return 0


def _some(queue: Queue, ids: tuple[int, ...], wait: bool, timeout: float | None, json: bool) -> int:
    shown = [queue.submission(id) for id in ids]
    if wait:
        shown = until_ended(queue, shown, timeout, json)
    for i, one in enumerate(shown):
        if json:
            saying.say_json(one)
            continue
        if i:
            saying.say("")
        saying.fields(_full(one))
    return 1 if wait and any(one.state != "completed" for one in shown) else 0


def _list(shown: list[Submission]) -> None:
    rows = [
        (
            str(one.id),
            saying.tenant(one.tenant),
            saying.state(one.state, one.paused),
            saying.number(one.total),
            _percent(one),
            saying.number(one.leased),
            saying.number(one.failed),
            saying.ago(one.created),
        )
        for one in shown
    ]
    numbers = ("chunks", "done", "leased", "dead", "age")
    saying.table(("submission", "tenant", "state", *numbers), rows, numbers)


def _percent(one: Submission) -> str:
    # Rounded down: 100 % is all of it.
    return f"{int(1000 * one.done / one.total) / 10:g}%" if one.total else "100%"


def _full(one: Submission) -> list[tuple[str, object]]:
    told: list[tuple[str, object]] = [
        ("submission", one.id),
        ("state", saying.state(one.state, one.paused)),
        ("tenant", saying.tenant(one.tenant)),
        (
            "chunks",
            f"{one.done:,} of {one.total:,} done ({_percent(one)}), {one.leased:,} leased, {one.failed:,} dead",
        ),
        ("created", f"{saying.clock(one.created)}, {saying.ago(one.created)} ago"),
    ]
    optional = [
        ("ended", one.ended and f"{saying.clock(one.ended)}, after {saying.ago(one.created, one.ended)}"),
        ("not before", one.not_before and saying.clock(one.not_before)),
        ("deadline", one.deadline and saying.clock(one.deadline)),
        ("error", one.error and f"chunk {one.error_index}: {one.error}"),
        ("metadata", " ".join(f"{name}={value}" for name, value in one.metadata.items())),
        ("info", one.info.decode(errors="replace")),
        ("priority", one.priority),
        ("key", one.key),
        ("life", one.life if one.life > 1 else ""),
    ]
    return [*told, ("policy", one.policy), *((name, value) for name, value in optional if value)]
