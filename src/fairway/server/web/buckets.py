"""The page of a bucket queue: its sizes, its dead letters, and the buttons that put them back or remove them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fairway import limits
from fairway.errors import BadArgument
from fairway.server import bucketing
from fairway.server import queue_views as qv
from fairway.server import views as v
from fairway.server.looking import DeadRows
from fairway.server.web.showing import frame
from fairway.server.web.visits import Shown, Visit


async def bucket(visit: Visit) -> Shown:
    """A bucket queue at a glance, with a page of its dead letters."""
    query: DeadRows = visit.ask.query
    visit.ask.query = replace(query, limit=limits.DASHBOARD_ROWS)
    page: v.DeadChunks = (await bucketing.dead(visit.ask)).value
    view: qv.BucketView = (await bucketing.show(visit.ask)).value
    values = {
        **frame(visit, "bucket"),
        "base": f"/ui/buckets/{visit.ask.params['queue']}",
        "s": view.stats,
        "config": view.settings,
        "letters": page.dead,
        "next": page.next,
        "after": query.after,
    }
    return Shown("bucket", values)


async def redrive(visit: Visit) -> Shown:
    """Put dead letters back as new messages: the one that the form names, or all."""
    visit.ask.body = _letters(visit)
    count: qv.Count = (await bucketing.redrive(visit.ask)).value
    return _done(visit, count.count, "put back as new")


async def purge(visit: Visit) -> Shown:
    """Remove dead letters for good: the one that the form names, or all."""
    visit.ask.body = _letters(visit)
    count: qv.Count = (await bucketing.purge(visit.ask)).value
    return _done(visit, count.count, "removed")


def _letters(visit: Visit) -> qv.Letters:
    ids = [visit.form["id"]] if "id" in visit.form else None
    try:
        return msgspec.convert({"ids": ids}, qv.Letters)
    except msgspec.ValidationError as error:
        raise BadArgument(f"id must be that of a message: {error}", argument="id") from None


def _done(visit: Visit, count: int, what: str) -> Shown:
    visit.ask.app.sizes.forget(visit.ask.params["queue"])
    return Shown(done=f"{count:,} dead letter{'' if count == 1 else 's'} {what}.")
