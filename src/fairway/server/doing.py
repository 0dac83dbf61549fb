"""REST for workers: reserve, complete, fail, renew, release, and what named consumers need."""

from __future__ import annotations

from typing import Any, cast

from fairway import limits
from fairway.engine.commands import Complete, Fail, Join, Release, Renew, Reserve, Reserved, Settled, Trim
from fairway.errors import BadArgument, NotFound
from fairway.face import checks
from fairway.face.leasing import pages_wanted
from fairway.face.reads import Describe
from fairway.face.receipts import parts_of, spread
from fairway.model.page import payloads_of
from fairway.server import payloads
from fairway.server import views as v
from fairway.server.asking import Answer, Ask
from fairway.server.strategies import text_of


async def reserve(ask: Ask) -> Answer:
    """Reserve chunks, and wait for some if there are none."""
    body: v.Reserving = ask.body
    named = (body.consumer, body.epoch, body.seq)
    if any(part is not None for part in named) and None in named:
        raise BadArgument(
            "consumer, epoch and seq go together; POST join gives the epoch", argument="consumer"
        )
    command = Reserve(
        body.max,
        text_of(body.strategy or None),
        body.lease_seconds or 0.0,
        body.wait_seconds,
        body.consumer or "",
        body.epoch or 0,
        body.seq or 0,
        ask.worker,
    )
    reserved: Reserved = await ask.port.ask(command)
    try:
        found = await payloads.leases(ask.port, reserved, ask.held, ask.kept) if reserved.spans else []
    except BaseException:
        if not command.consumer and reserved.spans:
            ask.port.unreceived(reserved)
        raise
    shown = v.Leases([v.lease_view(lease) for lease in found])
    return Answer(shown, reserved=None if command.consumer else reserved)


async def complete(ask: Ask) -> Answer:
    """Complete leases, each with a result or without."""
    body: v.Completing = ask.body
    blobs = [one.result for one in body.leases]
    if body.by_reference and any(blob is not None for blob in blobs):
        raise BadArgument("with by_reference the results are objects already", argument="leases")
    for blob in blobs:
        if blob is not None:
            checks.blob("result", blob, limits.PAYLOAD_BYTES_MAX)
    parts = parts_of([one.receipt for one in body.leases])
    results = None if body.by_reference or not any(blob is not None for blob in blobs) else blobs
    return await _settle(ask, Complete(parts, results, body.by_reference, body.writer))


async def fail(ask: Ask) -> Answer:
    """Fail leases: each comes back after a back-off, or is dead after its last attempt."""
    body: v.Failing = ask.body
    delay = -1.0 if body.delay_seconds is None else body.delay_seconds
    return await _settle(ask, Fail(parts_of(body.receipts), checks.error_text(body.error), body.retry, delay))


async def renew(ask: Ask) -> Answer:
    """Hold leases for longer."""
    body: v.Renewing = ask.body
    return await _settle(ask, Renew(parts_of(body.receipts), body.seconds or 0.0))


async def release(ask: Ask) -> Answer:
    """Give leases back untouched."""
    return await _settle(ask, Release(parts_of(ask.body.receipts)))


async def _settle(ask: Ask, command: Complete | Fail | Renew | Release) -> Answer:
    if not command.parts:
        return Answer(v.Outcomes([]))
    settled: Settled = await ask.port.ask(command)
    return Answer(v.Outcomes(cast(Any, spread(settled.outcomes)), settled.deadline))


async def join(ask: Ask) -> Answer:
    """Take a consumer's name over."""
    return Answer(v.Joined(await ask.port.ask(Join(ask.body.consumer))))


async def trim(ask: Ask) -> Answer:
    """Forget named reservations."""
    body: v.Trimming = ask.body
    await ask.port.ask(Trim(body.consumer, body.epoch, body.seq, body.complete))
    return Answer(status=204)


async def payload(ask: Ask) -> Answer:
    """The inline payload of one chunk, for a lease whose payload was late."""
    id, index = submission_id(ask), ask.params["index"]
    at = checks.whole("index", int(index), 0, limits.CHUNKS_MAX) if index.isdecimal() else -1
    described = await ask.port.ask(Describe(id))
    if not 0 <= at < described.total or not described.page_starts:
        raise NotFound("there is no inline payload of this chunk", submission=str(id))
    one = Reserved(0, 0, 0, 0.0, [(id, at, 1, 0)], {id: described})
    (where,) = pages_wanted(one)
    page = (await payloads.read(ask.port, [where], ask.held)).get(where)
    if page is None:
        raise NotFound("the payload of this chunk is gone", submission=str(id))
    return Answer(payloads_of(page)[at - described.page_starts[where[1]]], media="application/octet-stream")


def submission_id(ask: Ask) -> int:
    """The id in the path."""
    text = ask.params["id"]
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise NotFound("there is no such submission; an id is a number of up to 19 digits")
    id = int(text)
    if not 1 <= id < 2**63:
        raise NotFound(f"there is no submission {text}")
    return id
