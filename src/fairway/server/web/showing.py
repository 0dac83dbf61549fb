"""The pages that look: queues, one queue, its tenants, submissions, dead letters, consumers, explanations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from fairway import limits
from fairway.engine.commands import Tenants
from fairway.errors import BadArgument, BadStrategy, TooManyStrategies
from fairway.model.ids import next_id
from fairway.server import looking
from fairway.server import views as v
from fairway.server.tokens import Token
from fairway.server.web.visits import Shown, Visit

if TYPE_CHECKING:
    from fairway.server.app import App

_SINCE = {"15m": 900.0, "1h": 3600.0, "1d": 86400.0}


class Listing(v.Body, frozen=True, kw_only=True):
    """Which submissions."""

    state: Literal["", "active", "completed", "failed", "cancelled", "ended"] = "active"
    tenant: Annotated[str, Meta(max_length=limits.TENANT_BYTES_MAX)] = ""
    since: Literal["", "15m", "1h", "1d"] = ""
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class Finding(v.Body, frozen=True, kw_only=True):
    """Tenants whose name begins so."""

    name: Annotated[str, Meta(max_length=limits.TENANT_BYTES_MAX)] = ""
    after: v.Name | None = None


class Explaining(v.Body, frozen=True, kw_only=True):
    """Of which strategy; "": the queue's own."""

    strategy: v.StrategyText = ""


def frame(visit: Visit, tab: str) -> dict[str, Any]:
    """What every page of a queue needs."""
    return {
        "queue": visit.ask.params["queue"], "tab": tab, "steers": visit.steers, "now": time.time(),
        "base": f"/ui/queues/{visit.ask.params['queue']}",
    }  # fmt: skip


async def queues(visit: Visit) -> Shown:
    """The queues that the visitor may look at."""
    return Shown("queues", await listed(visit.ask.app, visit.ask.token))


async def listed(app: App, token: Token) -> dict[str, Any]:
    """The queues of both kinds, for the list."""
    rows, more = await app.dashboard.cards.of(token)
    buckets, beyond = await app.sizes.of(token)
    return {"rows": rows, "more": more + beyond, "buckets": buckets, "now": time.time()}


async def queue(visit: Visit) -> Shown:
    """A queue at a glance."""
    view = await visit.ask.app.dashboard.watches.of(visit.ask.params["queue"]).view()
    view = replace(view, stats=await visit.ask.q.stats())  # who paused it a moment ago must see that
    config = await visit.ask.q.configure()
    return Shown("queue", {**frame(visit, "overview"), "view": view, "config": config})


async def tenants(visit: Visit) -> Shown:
    """Tenants by name: all of them, page by page, or those whose name begins with something."""
    query: Finding = visit.ask.query
    after = query.after if query.after is not None else _before(query.name)
    found = await visit.ask.port.ask(Tenants(after, limits.DASHBOARD_ROWS + 1))
    found = [one for one in found if one.name.startswith(query.name)]
    watch = visit.ask.app.dashboard.watches.of(visit.ask.params["queue"])
    await watch.view()
    lines = watch.recent.lines(found[: limits.DASHBOARD_ROWS])
    more = len(found) > limits.DASHBOARD_ROWS
    values = {
        "lines": lines,
        "name": query.name,
        "next": lines[-1].name if more else None,
        "after": query.after,
    }
    return Shown("tenants", {**frame(visit, "tenants"), **values})


def _before(prefix: str) -> str | None:
    """A name before all that begin with a prefix and after all others that are before them; None: the beginning."""
    if not prefix:
        return None
    code = ord(prefix[-1]) - 1
    if code < 0:
        return _before(prefix[:-1])
    code = 0xD7FF if 0xD800 <= code <= 0xDFFF else code
    return prefix[:-1] + chr(code) + "\U0010ffff" * 8


async def submissions(visit: Visit) -> Shown:
    """A page of submissions, the oldest first."""
    query: Listing = visit.ask.query
    after = query.after or _id_at(time.time() - _SINCE[query.since] if query.since else 0.0)
    visit.ask.query = looking.Listing(
        state=query.state or None, tenant=query.tenant or None, after=after, limit=limits.DASHBOARD_ROWS
    )
    page: v.Submissions = (await looking.submissions(visit.ask)).value
    values = {"rows": page.submissions, "next": page.next, "query": query}
    return Shown("submissions", {**frame(visit, "submissions"), **values})


def _id_at(moment: float) -> int:
    """The highest id that is before a moment."""
    return max(0, next_id(moment, 0, 0) - 1) if moment else 0


async def submission(visit: Visit) -> Shown:
    """One submission."""
    visit.ask.query = looking.Waiting()
    found: v.SubmissionView = (await looking.submission(visit.ask)).value
    return Shown("submission", {**frame(visit, "submissions"), "s": found})


async def dead(visit: Visit) -> Shown:
    """A page of dead chunks, by submission."""
    query: looking.DeadRows = visit.ask.query
    visit.ask.query = replace(query, limit=limits.DASHBOARD_ROWS)
    page: v.DeadChunks = (await looking.dead(visit.ask)).value
    if not page.dead and page.next is not None and not query.after:
        visit.ask.query = replace(visit.ask.query, after=page.next)
        page = (await looking.dead(visit.ask)).value
    by: dict[str, list[v.DeadView]] = {}
    for one in page.dead:
        by.setdefault(one.submission, []).append(one)
    values = {"groups": list(by.values()), "next": page.next, "after": query.after}
    return Shown("dead", {**frame(visit, "dead"), **values})


async def consumers(visit: Visit) -> Shown:
    """The named consumers, and how many reserves wait."""
    page: v.ConsumersPage = (await looking.consumers(visit.ask)).value
    stats = await visit.ask.q.stats()
    return Shown("consumers", {**frame(visit, "consumers"), "rows": page.consumers, "stats": stats})


async def explain(visit: Visit) -> Shown:
    """What a strategy would hand out next."""
    query: Explaining = visit.ask.query
    config = await visit.ask.q.configure()
    text = error = ""
    try:
        text = await visit.ask.q.explain(query.strategy or None, limit=20)
    except (BadStrategy, BadArgument, TooManyStrategies) as refused:
        error = str(refused)
    values = {
        "strategy": query.strategy or config.strategy,
        "own": config.strategy,
        "text": text,
        "error": error,
    }
    return Shown("explain", {**frame(visit, "explain"), **values})
