"""Bodies and queries: read within their bounds, and decoded into the types of their routes.

Guards: no byte is read beyond the limit, none is uncompressed, and what does not fit its type is refused with reasons.
"""

from __future__ import annotations

import asyncio
from functools import cache, lru_cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from fairway import limits
from fairway.client.wire import JSON, MSGPACK, Asked
from fairway.errors import BadArgument, BadMedia, SlowBody, TooLarge
from fairway.server import calling
from fairway.server.admission import Admission
from fairway.server.exchange import Exchange
from fairway.server.routes import Route

OCTETS = "application/octet-stream"
_QUERY_FIELDS_MAX = 32


class Gone(Exception):
    """The caller is gone: there is nobody to answer."""


async def discarded(exchange: Exchange) -> bool:
    """Whether all of a body has come, the rest being short and forgotten.

    A connection that is closed before is reset, and its caller may never read why he was refused.
    """
    size = 0
    try:
        async with asyncio.timeout(limits.REFUSED_BODY_SECONDS_MAX):
            while exchange.more_body and not exchange.gone and size <= limits.REFUSED_BODY_BYTES_MAX:
                size += len((await exchange.receive()).get("body", b""))
    except TimeoutError:
        pass
    return not exchange.more_body


async def read(
    exchange: Exchange, headers: dict[bytes, bytes], admission: Admission, most: int = limits.BODY_BYTES_MAX
) -> bytes:
    """The whole body, of `most` bytes; whoever calls this lets go of its bytes."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise BadMedia("send the body as it is, not compressed")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > most:
        raise TooLarge(f"a body has at most {most} bytes; cut the call into several")
    here = exchange.body_here(most)
    if here is not None:
        admission.hold(len(here))
        return here
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.BODY_SECONDS_MAX):
            while True:
                message: Any = await exchange.receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                part = message.get("body", b"")
                if part:
                    if size + len(part) > most:
                        raise TooLarge(f"a body has at most {most} bytes; cut the call into several")
                    admission.hold(len(part))
                    size += len(part)
                    parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except BaseException as error:
        admission.hold(-size)
        if isinstance(error, TimeoutError):
            raise SlowBody(f"the body did not arrive within {limits.BODY_SECONDS_MAX:g} s") from None
        raise


def media_of(route: Route, headers: dict[bytes, bytes], empty: bool) -> str:
    """What the body is, or BadMedia."""
    given = media_type(headers.get(b"content-type", b""))
    if empty and route.takes is None:
        return JSON
    known = (MSGPACK,) if route.takes is Asked else (JSON, MSGPACK, *((OCTETS,) if route.bytes else ()))
    if given in known:
        return given
    if empty and route.optional:
        return JSON
    raise BadMedia(f"Content-Type must be {' or '.join(known)}")


def media_type(header: bytes) -> str:
    """The kind in a header, without its parameters."""
    return (_media_type if len(header) <= limits.KEPT_NAME_CHARS_MAX else _media_type.__wrapped__)(header)


@lru_cache(limits.KEPT_NAMES_MAX)
def _media_type(header: bytes) -> str:
    return header.decode("latin-1").split(";")[0].strip().lower()


def decode(route: Route, media: str, body: bytes) -> Any:
    """The body as its route takes it."""
    if route.takes is None:
        if body:
            raise BadArgument("this takes no body; leave it out")
        return None
    if not body and route.optional:
        return None
    if route.takes is Asked:
        return calling.decode(body)
    if media == OCTETS:
        return body
    try:
        return _decoder(route.takes, media).decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise BadArgument(f"the body is not what this takes: {_told(error)}") from None


def query(route: Route, text: bytes) -> Any:
    """The query as its route takes it."""
    if not text and route.query is None:
        return None
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            encoding="utf-8",
            errors="strict",
            max_num_fields=_QUERY_FIELDS_MAX,
        )
    except (ValueError, UnicodeDecodeError):
        raise BadArgument("the query is not name=value&name=value in UTF-8") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise BadArgument("the query has a name twice")
    if route.query is None:
        raise BadArgument(f"this takes no query; leave {', '.join(given)} out")
    try:
        return msgspec.convert(given, route.query, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise BadArgument(f"the query is not what this takes: {_told(error)}") from None


@cache
def _decoder(type_: Any, media: str) -> Any:
    return (msgspec.msgpack.Decoder if media == MSGPACK else msgspec.json.Decoder)(type_)


def _told(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:300]
