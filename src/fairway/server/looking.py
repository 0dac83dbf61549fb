"""REST that looks: submissions, results, tenants, counts, dead chunks, consumers, explanations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fairway import limits
from fairway.engine.commands import ListActive, ListDead, Tenants, Wait
from fairway.errors import BadArgument, Busy, FairwayError, TooManyCalls
from fairway.face import checks
from fairway.face.reads import ListEnded, ListEndedDead
from fairway.model.submission import is_full
from fairway.server import queue_views as qv
from fairway.server import views as v
from fairway.server.asking import Answer, Ask, Cut
from fairway.server.counting import CountedPort
from fairway.server.doing import submission_id
from fairway.server.queues import OpenQueue

NDJSON = "application/x-ndjson"
_ROWS = Annotated[int, Meta(ge=1, le=limits.PAGE_ROWS_MAX)]
_STREAM_ROWS = 500  # results encoded at a time
_encode = msgspec.json.Encoder().encode
_metadata = msgspec.json.Decoder(v.Metadata).decode


class Listing(v.Body, frozen=True, kw_only=True):
    """Which submissions; `metadata` is a JSON object."""

    state: Literal["active", "completed", "failed", "cancelled", "ended"] | None = None
    tenant: v.Name | None = None
    metadata: Annotated[str, Meta(max_length=8192)] | None = None
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    limit: _ROWS = limits.PAGE_ROWS


class Waiting(v.Body, frozen=True, kw_only=True):
    """How long to wait for the end of a submission."""

    wait_seconds: v.WaitSeconds = 0.0


class Rows(v.Body, frozen=True, kw_only=True):
    """Which page."""

    after: Annotated[int, Meta(ge=-1, le=2**63 - 1)] = -1
    limit: _ROWS = limits.PAGE_ROWS


class DeadRows(v.Body, frozen=True, kw_only=True):
    """Which page; `after` is the `next` of the page before."""

    after: Annotated[str, Meta(pattern="^([ae][0-9]{1,19}|[0-9a-f]{32})?$", max_length=32)] = ""
    limit: _ROWS = limits.PAGE_ROWS


class TenantRows(v.Body, frozen=True, kw_only=True):
    """Which page; `after` is the name of the last tenant of the page before."""

    after: v.Name | None = None
    limit: _ROWS = limits.PAGE_ROWS


class Explaining(v.Body, frozen=True, kw_only=True):
    """Of which strategy, and how many submissions of each sort."""

    strategy: v.StrategyText | None = None
    limit: _ROWS = 10


async def queues(ask: Ask) -> Answer:
    """The queues that the caller may look at."""
    names = {*await ask.app.queues.names(), *await ask.app.queues.bucket_names()}
    return Answer(qv.Queues([name for name in sorted(names) if ask.token.allows("read", name)]))


async def queue(ask: Ask) -> Answer:
    """A queue's settings and counts."""
    return Answer(await queue_view(ask))


async def queue_view(ask: Ask) -> qv.QueueView:
    assert isinstance(ask.queue, OpenQueue)
    return qv.QueueView(ask.queue.name, await ask.queue.queue.configure(), await ask.queue.queue.stats())


async def submissions(ask: Ask) -> Answer:
    """A page of submissions in id order."""
    query: Listing = ask.query
    pairs = _pairs(query.metadata)
    rows: dict[int, Any] = {}
    sure: float = inf
    port = CountedPort(ask.port, ask.held)
    pages = []
    if query.state in (None, "active"):
        pages.append(ListActive(query.tenant, pairs, query.after, query.limit))
    if query.state != "active":
        state = "" if query.state in (None, "ended") else query.state
        pages.append(ListEnded(state, query.tenant, pairs, query.after, query.limit))
    for page in pages:
        found = await port.ask(page)
        rows |= {row.id: row for row in found}
        # Beyond the end of a full page the other one may not be believed yet.
        sure = min(sure, found[-1].id if is_full(found, query.limit) else inf)
    shown = [rows[id] for id in sorted(rows) if id <= sure][: query.limit]
    more = sure != inf or len(shown) < len(rows)
    return Answer(
        v.Submissions(
            [v.submission_view(row) for row in shown], str(shown[-1].id) if more and shown else None
        )
    )


def _pairs(text: str | None) -> dict[str, str | int]:
    if not text:
        return {}
    try:
        return checks.metadata(_metadata(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadArgument(f"metadata must be a JSON object of texts and whole numbers: {error}") from None


async def submission(ask: Ask) -> Answer:
    """A submission as it is, or when it has ended, or when the time to wait is over."""
    id, seconds = submission_id(ask), ask.query.wait_seconds
    found = await ask.port.ask(Wait(id, seconds))
    return Answer(v.submission_view(found))


async def results(ask: Ask) -> Answer:
    """A page of results in index order; as NDJSON, all of them."""
    id, query = submission_id(ask), ask.query
    if ask.accepts == NDJSON:
        await ask.q.submission(id)  # so that one that is not there is told before the stream begins
        return Answer(media=NDJSON, stream=_streamed(ask, id))
    shown: list[v.ResultView] = []
    size = 0
    listing = _listing(ask, id, lambda: size)
    try:
        async for result in listing:
            if result.index <= query.after:
                continue
            size += len(result.data or b"")
            if len(shown) == query.limit or (shown and size > limits.ANSWER_BYTES_MAX):
                await listing.aclose()  # pyright: ignore[reportAttributeAccessIssue]
                return Answer(v.Results(shown, shown[-1].index))
            shown.append(v.result_view(result))
    except (TooManyCalls, Busy):
        if not shown:
            raise
        return Answer(v.Results(shown, shown[-1].index))
    return Answer(v.Results(shown, None))


def _listing(ask: Ask, id: int, kept: Callable[[], int], patient: bool = False) -> AsyncIterator[Any]:
    """The results of a submission; those that are `kept` count for the answer."""
    assert isinstance(ask.queue, OpenQueue)
    return ask.queue.numbered(CountedPort(ask.port, ask.held, kept, patient)).results(id)


async def _streamed(ask: Ask, id: int) -> AsyncIterator[bytes]:
    lines: list[bytes] = []
    size = 0
    listing = _listing(ask, id, lambda: size, patient=True)
    try:
        async for result in listing:
            lines.append(_encode(v.result_view(result)) + b"\n")
            size += len(lines[-1])
            if len(lines) == _STREAM_ROWS or size > limits.PAYLOAD_BYTES_MAX:
                yield b"".join(lines)
                lines, size = [], 0
                if not ask.app.still_allowed(ask):
                    raise Cut
    except FairwayError as error:  # it has begun: that it is not whole can only be seen
        raise Cut from error
    yield b"".join(lines)


async def stats(ask: Ask) -> Answer:
    """Counts of the queue."""
    return Answer(await ask.q.stats())


async def tenants(ask: Ask) -> Answer:
    """A page of the tenants that have work, a weight or a pause, by name."""
    query: TenantRows = ask.query
    found = await ask.port.ask(Tenants(query.after, query.limit + 1))
    rows = [
        v.TenantRow(t.name, t.weight, t.paused, t.submissions, t.waiting, t.leased)
        for t in found[: query.limit]
    ]
    return Answer(v.TenantsPage(rows, len(found) > query.limit))


async def consumers(ask: Ask) -> Answer:
    """The named consumers."""
    found = await ask.q.consumers()
    return Answer(v.ConsumersPage([v.ConsumerRow(one.name, one.seqs, one.seen) for one in found]))


async def explain(ask: Ask) -> Answer:
    """What a strategy would hand out next, and why others wait."""
    query: Explaining = ask.query
    return Answer(v.Explained(await ask.q.explain(query.strategy or None, limit=query.limit)))


async def dead(ask: Ask) -> Answer:
    """A page of dead chunks: first those of active submissions, then those of ended ones.

    A page has all the dead chunks of a submission, so it may be longer than asked.
    """
    query: DeadRows = ask.query
    known = len(query.after) < 32
    kind, after = (query.after[:1] or "a"), int(query.after[1:] or 0) if known else 0
    if not known or after >= 2**63:
        raise BadArgument("after: give the `next` of the page before", argument="after")
    port = CountedPort(ask.port, ask.held)
    chunks: list[Any] = []
    following: str | None = None
    if kind == "a":
        chunks = await port.ask(ListDead(after, query.limit))
        following = f"a{chunks[-1].submission}" if len(chunks) >= query.limit else "e0"
    if kind == "e" or (following == "e0" and not chunks):
        last, chunks = await port.ask(ListEndedDead(after if kind == "e" else 0, query.limit))
        following = f"e{last}" if last is not None else None
    views = [v.DeadView(str(d.submission), d.index, d.tenant, d.attempts, d.error, d.at) for d in chunks]
    return Answer(v.DeadChunks(views, following))
