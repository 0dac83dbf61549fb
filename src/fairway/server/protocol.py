"""HTTP connections with patience that ends: heads that do not come, answers that are not read.

Guards: a client that sends or reads too slowly costs one connection for some seconds, and nobody else anything; what
comes before a body or behind it has a bound; there are never more connections than the process may have files open, and
who comes then is told so.
"""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairway.errors import BadArgument, Busy, FairwayError, SlowBody
from fairway.limits import (
    BEHIND_MAX,
    HEAD_BYTES_MAX,
    HEAD_SECONDS_MAX,
    READER_BYTES_MIN,
    READER_SECONDS_MAX,
    RESERVED_FILES_MIN,
)
from fairway.server import answering
from fairway.server.exchange import Exchange

_UPGRADES = (b"upgrade", b"http2-settings")  # headers, and what names them
_PASSES = 3  # of the event loop: in one of them it reads all that has come


def _raw(line: str, error: FairwayError) -> bytes:
    """An answer that is made without the application, as the application would have made it."""
    answer = answering.refused(error)
    head = [*answering.SECURITY, *answer.headers, (b"content-type", answer.media.encode()), answering.CLOSE]
    head.append((b"content-length", str(len(answer.value)).encode()))
    lines = b"".join(b"%s: %s\r\n" % pair for pair in head)
    return b"HTTP/1.1 %s\r\n%s\r\n%s" % (line.encode(), lines, answer.value)


_TOO_LONG = _raw(
    "431 Request Header Fields Too Large",
    BadArgument(f"the address and the headers have at most {HEAD_BYTES_MAX} bytes; put more into the body"),
)
_TOO_SLOW = _raw("408 Request Timeout", SlowBody("the head of the request did not arrive in time"))
_UNREADABLE = _raw(
    "400 Bad Request",
    BadArgument(
        f"this is no HTTP/1.1 request, its address and headers have more than {HEAD_BYTES_MAX} bytes,"
        " or there are trailers behind its body"
    ),
)
_TOO_MANY = _raw(
    "503 Service Unavailable", Busy("this process has as many connections as it can; come again in a moment")
)


def raise_file_limit() -> None:
    """Let this process, and those it starts, have as many connections as the machine lets it have files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a system may name no limit and still have one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """How many connections a process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, soft - RESERVED_FILES_MIN) if soft != resource.RLIM_INFINITY else 2**62


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds on the head of a request and on a client that does not read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_bytes = 0  # that came since the head began, or since the last of the body
        self._body_came = False
        self._answered_at = 0.0
        self._current: Exchange | None = None  # the one that is being answered
        self._head_timer: asyncio.Handle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._method, self._version = b"", b""  # of a request that asks for another protocol
        self._unread = 0  # of the answer, when the timer was set

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Beyond this the kernel would give no file for a connection, nor for anything else.
        if len(self.connections) > connections_max():
            self._refuse(_TOO_MANY)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        self.resume_writing()
        if self._current is not None and self._current is not self.cycle:
            self._current.lost()  # others have come behind it
        if self.cycle is not None:
            self.cycle.lost()  # pyright: ignore[reportAttributeAccessIssue]
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._current = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self.transport.is_closing():
            return
        self._body_came = False
        self._feed(data)
        if self.parser is None:
            return
        if not self._body_came:
            self._head_bytes += len(data)  # of a head, or of what stands behind a body
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(_TOO_LONG)
        elif self._in_head and self._head_timer is None:
            self._await_head()

    def _feed(self, data: bytes) -> None:
        """As uvicorn does it; but a request that would rather speak another protocol is answered in this one, with its
        body. Java's client asks for HTTP/2 that way before every first request."""
        try:
            while True:
                try:
                    self.parser.feed_data(data)
                    return
                except httptools.HttpParserUpgrade as upgrade:  # the parser reads nothing behind such a head
                    data = data[upgrade.args[0] :]
                    self.parser = httptools.HttpRequestParser(self)
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                    self.parser.feed_data(self._plain_head())
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")

    def _plain_head(self) -> bytes:
        """The head that came, without what asks for another protocol."""
        lines = [b"%s %s HTTP/%s" % (self._method, self.url, self._version)]
        for name, value in self.headers:
            if name == b"connection":
                kept = [one for one in value.split(b",") if one.strip().lower() not in _UPGRADES]
                value = b",".join(kept)
            if name not in _UPGRADES:
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join((*lines, b"", b""))

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._body_came, self._head_bytes = True, 0
        super().on_body(body)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            # uvicorn would add it to the headers of a request that was checked without it, and without a bound.
            raise ValueError("a trailer behind a body")  # the parser ends the connection with 400
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot take, such as an address without end: an error like any other."""
        self._head_done()
        self.transport.write(_UNREADABLE)
        self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._head_done()
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value)
        if size > HEAD_BYTES_MAX:
            raise ValueError("the head is too long")  # the parser ends the connection with 400
        parser: Any = self.parser
        if parser.should_upgrade():
            self._method, self._version = parser.get_method(), parser.get_http_version().encode()
            if self._method == b"CONNECT":
                raise ValueError("a proxy was meant")
            return  # it comes again, without that
        self._complete_scope(parser)
        version = self.scope["http_version"]
        before, self.cycle = self.cycle, self._exchange(version != "1.0" and parser.should_keep_alive())
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # one after the other
            app: Any = self.app
            self.pipeline.appendleft((self.cycle, app))
            if len(self.pipeline) >= BEHIND_MAX:
                self.flow.pause_reading()  # from here on it is not noticed either that the caller goes

    def _complete_scope(self, parser: Any) -> None:
        """As uvicorn does it, without web sockets and a root path: there are none."""
        scope: Any = self.scope
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""

    def _exchange(self, keep_alive: bool) -> Exchange:
        scope: Any = self.scope
        exchange = scope["exchange"] = Exchange(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            self.access_log,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            keep_alive,
            self.on_response_complete,
        )
        return exchange

    # -- a connection that carries nothing: one timer that looks again, not one for every answer

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self._answered_at = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.timeout_keep_alive_task is None:
            self._await_next(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """Called when data comes, which the timer finds out for itself."""

    def _await_next(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._in_head or (self.cycle is not None and not self.cycle.response_complete):
            return  # its answer sets a new one
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._await_next(left)
        elif not self.transport.is_closing():
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_timer is None:
            self._await_reader()

    def resume_writing(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        if self.flow is not None:
            super().resume_writing()

    def _await_reader(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(READER_SECONDS_MAX, self._reader_late)

    def _reader_late(self) -> None:
        """A long answer takes a slow line its time, as long as it is read at all."""
        some = min(READER_BYTES_MIN, self._unread // 2)
        if self.transport.get_write_buffer_size() > self._unread - some:
            self.transport.abort()
        else:
            self._await_reader()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self._head_late)

    def _head_late(self, passes: int = _PASSES) -> None:
        """A process that is behind hears its clock before it has read what is there: let it read first."""
        if passes:
            self._head_timer = self.loop.call_soon(self._head_late, passes - 1)
        else:
            self._refuse(_TOO_SLOW)

    def _head_done(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, answer: bytes) -> None:
        self._head_done()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
