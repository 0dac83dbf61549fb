"""The event log over HTTP: page by page, or as a stream that goes on.

Guards: a stream ends when its token is revoked or expires, and at the latest after an hour; a client that comes again
with the last id it got misses nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fairway import limits
from fairway.errors import FairwayError
from fairway.face.reads import ReadEvents
from fairway.model.event import Event, events_of
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.counting import CountedPort

SSE = "text/event-stream"
_GROUPS = 64  # group records read at a time; one holds the events of one commit
_BEAT_SECONDS = 15.0  # proxies cut what is silent for longer
_encode = msgspec.json.Encoder().encode


class EventRows(v.Body, frozen=True, kw_only=True):
    """After which group, and about how many events; a page always ends with a whole group."""

    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, Meta(ge=1, le=limits.PAGE_ROWS_MAX)] = limits.PAGE_ROWS


def _view(event: Event) -> v.EventView:
    e = event
    return v.EventView(
        e.number, e.what, e.time, str(e.submission), e.start, e.count, e.attempt, e.tenant, e.detail
    )


async def _page(port: Any, after: int, limit: int) -> v.Events:
    """Whole groups until there are enough events."""
    shown: list[v.EventView] = []
    while len(shown) < limit:
        batches = await port.ask(ReadEvents(after, _GROUPS))
        for number, _, body in batches:
            after = number
            shown += [_view(event) for event in events_of(number, body)]
            if len(shown) >= limit:
                break
        if len(batches) < _GROUPS:
            break
    return v.Events(shown, after)


async def events(ask: Ask) -> Answer:
    """A page of the event log; with `Accept: text/event-stream`, a stream that goes on."""
    query: EventRows = ask.query
    if ask.accepts == SSE:
        return Answer(media=SSE, stream=_stream(ask, max(query.after, ask.last_event)))
    port = CountedPort(ask.port, ask.held)
    return Answer(await _page(port, query.after, query.limit))


async def _stream(ask: Ask, after: int) -> AsyncIterator[bytes]:
    until = time.monotonic() + limits.STREAM_SECONDS_MAX
    beat = time.monotonic()
    yield b"retry: 2000\n\n"
    while time.monotonic() < until and not ask.app.stopping and ask.app.still_allowed(ask):
        try:
            page = await _page(ask.port, after, limits.PAGE_ROWS)
        except FairwayError:
            return  # the client comes again with the last id it got
        if page.events:
            beat = time.monotonic()
            yield _told(page.events)
        elif time.monotonic() - beat > _BEAT_SECONDS:
            beat = time.monotonic()
            yield b": still here\n\n"
        if page.next == after or len(page.events) < limits.PAGE_ROWS:
            await asyncio.sleep(limits.STREAM_POLL_SECONDS)
        after = page.next


def _told(events: list[v.EventView]) -> bytes:
    """Events as they are sent. The last of a group alone has its number as id: who has seen less than the whole group
    comes again with the id before it, and gets it from its beginning."""
    lines: list[bytes] = []
    for n, event in enumerate(events):
        if n + 1 == len(events) or events[n + 1].number != event.number:
            lines.append(b"id: %d\n" % event.number)
        lines.append(b"event: %s\ndata: %s\n\n" % (event.what.encode(), _encode(event)))
    return b"".join(lines)
