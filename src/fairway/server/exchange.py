"""An exchange: one request and its answer, as uvicorn has it, with shorter ways for what happens most.

Guards: an answer that is whole leaves in one write; who waits for its caller to be gone costs no task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from fairway.limits import WRITE_BYTES_MAX


class Exchange(RequestResponseCycle):
    """What a request's `scope` has as "exchange"."""

    scope: Any
    on_gone: Callable[[], object] | None = None  # called once, when the caller goes before it is answered

    @property
    def gone(self) -> bool:
        """Whether there is nobody to answer."""
        return self.disconnected

    @property
    def unread(self) -> int:
        """How many bytes of what was answered on this connection wait for their reader; 0: few or none."""
        return self.transport.get_write_buffer_size() if self.flow.write_paused else 0

    async def read(self) -> None:
        """Until they are read, or the connection is gone."""
        await self.flow.drain()

    def lost(self) -> None:
        """The connection is gone."""
        if not self.response_complete:
            self.disconnected = True
            if self.on_gone is not None:
                self.on_gone()
        self.message_event.set()

    def cut(self) -> None:
        """Close the connection in the middle of an answer, so that its reader sees that it is not whole."""
        self.disconnected = True
        self.transport.close()

    def body_here(self, most: int) -> bytes | None:
        """The body, if all of it has come and it has at most so many bytes; else it is received part by part."""
        if self.more_body or self.disconnected or len(self.body) > most:
            return None
        body = bytes(self.body)
        self.body = bytearray()
        self.message_event.clear()
        return body

    async def answer(self, status: int, head: bytes, body: bytes) -> bool:
        """Send an answer whole; `head` is its headers as they are sent, without what the connection needs.

        False: the caller is gone, and nothing was sent.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return False
        assert not self.response_started
        self.response_started = True
        self.waiting_for_100_continue = False
        if b"\r\nconnection: close\r\n" in head:
            self.keep_alive = False
        elif not self.keep_alive:
            head = b"connection: close\r\n" + head
        if self.scope["method"] == "HEAD":
            body = b""
        if len(body) <= WRITE_BYTES_MAX:
            self.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[status], head, body))
        else:
            self.transport.write(b"%s%s\r\n" % (STATUS_LINE[status], head))
            self.transport.write(body)
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True
