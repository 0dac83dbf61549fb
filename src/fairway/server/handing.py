"""Handing on: one request sent to the node that owns its queue, and its answer brought back.

Guards: an answer that did not come is never taken for a call that did not arrive.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

import httpx2
import msgspec

from fairway import limits
from fairway.client import wire
from fairway.engine.commands import Part, Reserve, Reserved
from fairway.errors import BadArgument, FairwayError, NotOwner, OurError
from fairway.face.receipts import parts_of
from fairway.server import views as v
from fairway.server.asking import Answer, Ask, Cut, only_looks
from fairway.server.held import Held
from fairway.server.passes import COVERED, HEADER, Passes
from fairway.server.routes import Route
from fairway.server.streaming import SSE

_log: Final = logging.getLogger("fairway.server")
_POOL: Final = httpx2.Limits(
    max_connections=None, max_keepalive_connections=limits.LANES_MAX, keepalive_expiry=30.0
)
_BROUGHT: Final = ("retry-after", "allow")
_CHECK_SECONDS: Final = 1.0  # how often the token of a stream is looked at


class NotArrived(Exception):
    """The call was not carried out: the node is not there, or does not own the queue."""


class NoAnswer(Exception):
    """Whether the call was carried out is unknown."""


class Handing:
    """The connections of one event loop to other nodes."""

    def __init__(self, passes: Passes, ca: str) -> None:
        self._passes = passes
        self._http = httpx2.AsyncClient(
            limits=_POOL,
            trust_env=False,
            follow_redirects=False,
            verify=ssl.create_default_context(cafile=ca or None),
        )
        del self._http.headers["accept"]  # what the caller did not say is not said for him

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, url: str, route: Route, ask: Ask, allowed: Callable[[], bool]) -> Answer:
        """The answer of the node at `url`. Raises NotArrived or NoAnswer; `allowed` is asked while a stream lasts."""
        request = self._request(url, ask)
        try:
            answer = await self._http.send(request, stream=True)
            media = answer.headers.get("content-type", "")
            if route.stream and media.startswith(route.stream):
                return Answer(media=media, stream=_relayed(answer, allowed, route.stream == SSE))
            try:
                if only_looks(route.method, ask):
                    ask.held.check()
                body = await _whole(answer, ask.held)
            finally:
                await answer.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise NotArrived(f"{url} cannot be reached: {error}") from error
        except (httpx2.TransportError, OSError) as error:
            raise NoAnswer(f"{url} did not answer: {type(error).__name__}") from error
        return _brought(url, answer, media, body, ask.accepts)

    def _request(self, url: str, ask: Ask) -> httpx2.Request:
        sent = ask.sent
        assert sent is not None
        kept = {name: sent.headers[name] for name in COVERED if name in sent.headers}
        given = self._passes.make(
            ask.token, ask.worker, sent.method, sent.path, sent.query, sent.headers, sent.body
        )
        query = urlencode(parse_qsl(sent.query.decode("latin-1"), keep_blank_values=True))
        target = url + quote(sent.path) + (f"?{query}" if query else "")
        patience = _wait_of(ask) + limits.ANSWER_SECONDS
        return self._http.build_request(
            sent.method,
            target,
            content=sent.body,
            headers=[(HEADER, given.encode()), *kept.items()],
            timeout=httpx2.Timeout(patience, connect=limits.NODE_CONNECT_SECONDS, pool=None),
        )


async def _whole(answer: httpx2.Response, held: Held) -> bytes:
    """A body; it counts for its caller as it comes."""
    parts: list[bytes] = []
    try:
        async for part in answer.aiter_bytes():
            parts.append(part)
            held.now(held.size + len(part))
    except BaseException:
        held.now(0)
        raise
    return b"".join(parts)


def _brought(url: str, answer: httpx2.Response, media: str, body: bytes, accepts: str) -> Answer:
    status = answer.status_code
    if status >= 400:
        error = wire.error_of(body, media)
        if isinstance(error, NotOwner):
            raise NotArrived(str(error))
        if status == 401:
            _log.error("the node at %s does not believe this one: %s", url, error)
            raise OurError(
                "the nodes of this server do not believe each other; their secrets or clocks differ"
            )
    headers = tuple(
        (name.encode(), answer.headers[name].encode()) for name in _BROUGHT if name in answer.headers
    )
    return Answer(None if status == 204 else body, status, media, headers, handed=True)


async def _relayed(
    answer: httpx2.Response, allowed: Callable[[], bool], endless: bool
) -> AsyncIterator[bytes]:
    """A stream as it comes, for as long as its caller may have it. One without an end ends anywhere: its client comes
    again. Of any other its client must see that it is not whole."""
    parts = answer.aiter_bytes()
    task: asyncio.Future[bytes] | None = None
    try:
        while allowed():
            task = task or asyncio.ensure_future(anext(parts))
            done, _ = await asyncio.wait((task,), timeout=_CHECK_SECONDS)
            if done:
                yield task.result()
                task = None
        if not endless:
            raise Cut
    except StopAsyncIteration:
        return
    except httpx2.TransportError as error:
        if not endless:
            raise Cut from error
    finally:
        if task is not None:
            task.cancel()
            with suppress(BaseException):
                await task
        await answer.aclose()


def _wait_of(ask: Ask) -> float:
    """How long the caller lets the call wait."""
    for given in (ask.query, ask.body, getattr(ask.body, "command", None)):
        for name in ("wait_seconds", "seconds"):
            found = getattr(given, name, None)
            if isinstance(found, float | int):
                return min(float(found), limits.HTTP_WAIT_SECONDS_MAX)
    return 0.0


def leases_in(route: Route, ask: Ask, answer: Answer) -> list[Part]:
    """The leases in an answer that was brought back and that nobody received; named ones are handed out again."""
    if answer.status != 200 or not isinstance(answer.value, bytes):
        return []
    try:
        if route.name == "reserve" and not ask.body.consumer:
            kind: Any = msgspec.msgpack if answer.media.startswith(wire.MSGPACK) else msgspec.json
            return parts_of([lease.receipt for lease in kind.decode(answer.value, type=v.Leases).leases])
        if route.name == "call" and isinstance(ask.body.command, Reserve) and not ask.body.command.consumer:
            reply, _ = wire.answer(ask.body.command, answer.value)
            return _parts(reply)
    except (msgspec.DecodeError, BadArgument, FairwayError) as error:
        _log.error("leases of an answer cannot be given back: %s", error)
    return []


def _parts(reserved: Reserved) -> list[Part]:
    spans = [(submission, start, count) for submission, start, count, _ in reserved.spans]
    return [Part(reserved.epoch, reserved.count, reserved.seal, spans)] if spans else []
