"""Answers as they leave: encoded, with the headers that every answer has.

Guards: no answer is cached, framed or taken for another type than it is; an error says nothing of the machine; who is
told when to come again has had no effect.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairway.client import wire
from fairway.errors import (
    BadMethod,
    Busy,
    FairwayError,
    NotFairway,
    OurError,
    ReadOnly,
    StoreFailed,
    TooManyCalls,
    TooManyStrategies,
    Unauthorized,
    WrongKind,
)
from fairway.limits import RETRY_AFTER_SECONDS
from fairway.server.asking import Answer
from fairway.server.exchange import Exchange
from fairway.server.held import Held

_log: Final = logging.getLogger("fairway.server")
_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode

SECURITY: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
STRICT: Final = (b"strict-transport-security", b"max-age=31536000")
CLOSE: Final = (b"connection", b"close")
_NOT_DONE: Final = (Busy, TooManyCalls, TooManyStrategies, StoreFailed)  # other errors may leave it open
_FULL: Final = 507  # nobody knows when somebody has made room
_HEADS: Final = 256  # kept
_NAMES_A_PATH: Final = (ReadOnly, NotFairway)
_UNSENDABLE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def encoded(answer: Answer, accepts: str) -> tuple[bytes, str]:
    """The body of an answer and what it is."""
    if isinstance(answer.value, bytes):
        return answer.value, answer.media or "application/octet-stream"
    if answer.status == 204:
        return b"", ""
    if accepts == wire.MSGPACK:
        return _msgpack(answer.value), wire.MSGPACK
    return _json(answer.value), wire.JSON


def refused(error: FairwayError, accepts: str = wire.JSON) -> Answer:
    """An error as an answer."""
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, _NOT_DONE) and error.status != _FULL:
        headers.append((b"retry-after", str(RETRY_AFTER_SECONDS).encode()))
    if isinstance(error, BadMethod | WrongKind):
        headers.append((b"allow", ", ".join(error.details.get("allow", ["GET"])).encode()))  # pyright: ignore[reportCallIssue, reportArgumentType]
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b'Bearer realm="fairway"'))
    if isinstance(error, OurError) and error.status == 500:
        _log.error("%s", error, exc_info=error)
        error = type(error)()  # what went wrong inside is for the log
    if isinstance(error, _NAMES_A_PATH):
        _log.error("%s", error)
        error = type(error)(None, **error.details)
    return Answer(
        wire.refusal(error, accepts if accepts == wire.MSGPACK else wire.JSON),
        error.status,
        wire.MSGPACK if accepts == wire.MSGPACK else wire.JSON,
        tuple(headers),
    )


@lru_cache(_HEADS)
def _head(headers: tuple[tuple[bytes, bytes], ...], media: str) -> bytes:
    """Headers as they are sent; few of them differ, so they are checked and put together once."""
    every = [*SECURITY, *headers, *(((b"content-type", media.encode()),) if media else ())]
    for name, value in every:
        if _UNSENDABLE.search(name) or _UNSENDABLE.search(value):
            raise ValueError(f"a header that cannot be sent: {name!r}: {value!r}")
    return b"".join(b"%s: %s\r\n" % pair for pair in every)


async def send(
    exchange: Exchange, answer: Answer, accepts: str, extra: tuple[tuple[bytes, bytes], ...], held: Held
) -> bool:
    """Send an answer whole; False: the caller is gone, and nothing was sent."""
    body, media = encoded(answer, accepts)
    held.now(len(body))
    head = _head((*answer.headers, *extra), media)
    if answer.status != 204:
        head += b"content-length: %d\r\n" % len(body)
    return await exchange.answer(answer.status, head, body)


async def until_gone(parts: AsyncIterator[bytes], receive: Any) -> AsyncIterator[bytes]:
    """The parts of a stream, for as long as there is somebody to read them; then the stream is closed."""
    watch = asyncio.ensure_future(gone(receive))
    try:
        while not watch.done():
            step = asyncio.ensure_future(anext(parts, None))
            await asyncio.wait((step, watch), return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                await asyncio.wait((step,))
                return
            part = step.result()
            if part is None:
                return
            yield part
    finally:
        watch.cancel()
        await parts.aclose()  # pyright: ignore[reportAttributeAccessIssue]


async def gone(receive: Any) -> None:
    """Until the caller is gone; for use when his body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def stream(exchange: Exchange, answer: Answer, extra: tuple[tuple[bytes, bytes], ...]) -> None:
    """Send an answer part by part."""
    send: Any = exchange.send
    assert answer.stream is not None
    headers = [*SECURITY, (b"content-type", answer.media.encode()), (b"x-accel-buffering", b"no"), *extra]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    async for part in until_gone(answer.stream, exchange.receive):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
