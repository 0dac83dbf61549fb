"""Streams of the dashboard: what changed, once a second, as fragments of HTML and points of the charts.

Guards: a stream ends when its session does, when its visitor goes, and at the latest after an hour.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from fairway import limits
from fairway.errors import CallerError, FairwayError
from fairway.server import views as v
from fairway.server.web.rendering import render
from fairway.server.web.sessions import still
from fairway.server.web.showing import frame, listed
from fairway.server.web.visits import Shown, Visit
from fairway.server.web.watching import View

_BEGIN = b"retry: 2000\n\n"
_encode = msgspec.json.Encoder().encode


class Wanted(v.Body, frozen=True, kw_only=True):
    """The figures of a queue, or only that it changed."""

    what: Literal["figures", "changes"] = "changes"


def _event(name: str, body: bytes) -> bytes:
    lines = b"".join(b"data: %s\n" % line for line in body.splitlines()) or b"data:\n"
    return b"event: %s\n%s\n" % (name.encode(), lines)


def _goes_on(visit: Visit, until: float) -> bool:
    return time.monotonic() < until and not visit.ask.app.stopping


async def queue(visit: Visit) -> Shown:
    """A queue's stream."""
    return Shown(stream=_queue(visit, visit.ask.query.what == "figures"))


async def _queue(visit: Visit, figures: bool) -> AsyncIterator[bytes]:
    name = visit.ask.params["queue"]
    dashboard = visit.ask.app.dashboard
    watch = dashboard.watches.of(name)
    until = time.monotonic() + limits.STREAM_SECONDS_MAX
    yield _BEGIN
    last: View | None = None
    while _goes_on(visit, until):
        try:
            view = await watch.view(last.number if last else 0)
        except CallerError:
            yield _event("gone", b"")  # the queue was deleted
            return
        except FairwayError:
            return  # the browser comes again
        if not still(dashboard.sessions, visit.headers, name):
            yield _event("gone", b"")
            return
        body = _figures(visit, view, last) if figures else b""
        if (
            last is None or view.stats.groups != last.stats.groups
        ):  # the page may be older than the first look
            body += _event("changed", str(view.number).encode())
        last = view
        yield body or b": still here\n\n"


def _figures(visit: Visit, view: View, last: View | None) -> bytes:
    drawn = visit.ask.app.dashboard.watches.of(view.stats.queue).drawn
    number, body = drawn.get(visit.steers, (0, b""))
    if number != view.number:  # drawn once for everybody who sees the same
        values: dict[str, Any] = {**frame(visit, "overview"), "view": view}
        body = _event("tiles", render("_tiles.html", values))
        body += _event("tenants", render("_tenants_top.html", values))
        drawn[visit.steers] = view.number, body
    if last is None:
        return body + _event("history", _encode(view.points))
    if view.points and view.points[-1] != (last.points[-1] if last.points else None):
        body += _event("point", _encode(view.points[-1]))
    return body


async def queues(visit: Visit) -> Shown:
    """The stream of the list of queues."""
    return Shown(stream=_queues(visit))


async def _queues(visit: Visit) -> AsyncIterator[bytes]:
    dashboard = visit.ask.app.dashboard
    until = time.monotonic() + limits.STREAM_SECONDS_MAX
    yield _BEGIN
    while _goes_on(visit, until):
        session = dashboard.sessions.find(visit.headers)
        if session.token is None:
            yield _event("gone", b"")
            return
        try:
            values = await listed(visit.ask.app, session.token)
        except FairwayError:
            return
        yield _event("queues", render("_queues.html", values))
        await asyncio.sleep(limits.DASHBOARD_LIST_SECONDS)
