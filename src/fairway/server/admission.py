"""Admission: how much an HTTP process takes on at a time.

Guards: memory is bounded whatever comes; one caller cannot take all the room; who is turned away is told when to come.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairway import limits
from fairway.errors import Busy, TooManyCalls
from fairway.server.metrics import calls


class Admission:
    """Counts of what is under way in one event loop."""

    def __init__(self) -> None:
        self.calls = 0
        self.waits = 0
        self.streams = 0
        self.body_bytes = 0
        self._calls_of: Counter[str] = Counter()
        self._waits_of: Counter[str] = Counter()
        self._streams_of: Counter[str] = Counter()
        self.unread_bytes = 0
        self._unread_of: Counter[str] = Counter()
        self._pages = 0  # of payloads that are being read
        self._pages_read = asyncio.Event()
        for kind in ("call", "wait", "stream"):
            calls(kind).set(0)

    def enter(self, caller: str, waits: bool) -> None:
        """One call more, or TooManyCalls, or Busy."""
        self._check_calls(caller, waits)
        self.check_unread(caller)
        self._count(caller, waits, 1)

    def _check_calls(self, caller: str, waits: bool) -> None:
        total, most = (self.waits, limits.WAITS_MAX) if waits else (self.calls, limits.CALLS_MAX)
        mine = (self._waits_of if waits else self._calls_of)[caller]
        if total >= most:
            raise Busy(f"the server has {total} calls under way; repeat this one in a moment")
        if mine >= (limits.CALLER_WAITS_MAX if waits else limits.CALLER_CALLS_MAX):
            raise TooManyCalls(f"this caller has {mine} calls under way; repeat this one in a moment")

    def no_wait(self, caller: str) -> None:
        """What was entered as a wait turns out to be a call that does not wait, or TooManyCalls, or Busy."""
        self._check_calls(caller, False)
        self._count(caller, True, -1)
        self._count(caller, False, 1)

    def leave(self, caller: str, waits: bool) -> None:
        self._count(caller, waits, -1)

    def _count(self, caller: str, waits: bool, by: int) -> None:
        counts = self._waits_of if waits else self._calls_of
        counts[caller] += by
        if not counts[caller]:
            del counts[caller]
        if waits:
            self.waits += by
            calls("wait").set(
                self.waits
            )  # for who asks for metrics, of this process or another of the same server
        else:
            self.calls += by
            calls("call").set(self.calls)

    def hold(self, size: int) -> None:
        """So many bytes of bodies more, or Busy; they are let go of by holding less."""
        if size > 0 and self.body_bytes + size > limits.BODIES_BYTES_MAX:
            raise Busy("the server holds as many bytes of requests as it can; repeat this one in a moment")
        self.body_bytes += size

    def check_unread(self, caller: str) -> None:
        """TooManyCalls or Busy, if too much that was answered is not read."""
        if self._unread_of[caller] >= limits.CALLER_UNREAD_BYTES_MAX:
            raise TooManyCalls("this caller does not read his answers; read them, then repeat this call")
        if self.unread_bytes >= limits.UNREAD_BYTES_MAX:
            raise Busy("too many answers are not read yet; repeat this call in a moment")

    def is_full(self, caller: str) -> bool:
        """Whether too much that was answered is not read."""
        mine = self._unread_of[caller] >= limits.CALLER_UNREAD_BYTES_MAX
        return mine or self.unread_bytes >= limits.UNREAD_BYTES_MAX

    def hold_answer(self, caller: str, size: int) -> None:
        """So many bytes of an answer more lie here, or less; see held.py."""
        self.unread_bytes += size
        self._unread_of[caller] += size
        if not self._unread_of[caller]:
            del self._unread_of[caller]

    @asynccontextmanager
    async def reading(self, pages: int) -> AsyncIterator[None]:
        """While inside, so many pages of payloads are read; nobody knows before how long they are."""
        while self._pages and self._pages + pages > limits.PAGES_READ_MAX:
            self._pages_read.clear()
            await self._pages_read.wait()
        self._pages += pages
        try:
            yield
        finally:
            self._pages -= pages
            self._pages_read.set()

    def begin_stream(self, caller: str) -> None:
        """One stream more, or TooManyCalls, or Busy."""
        if self.streams >= limits.STREAMS_MAX:
            raise Busy(f"the server has {self.streams} streams open; come again in a moment")
        if self._streams_of[caller] >= limits.CALLER_STREAMS_MAX:
            mine = self._streams_of[caller]
            raise TooManyCalls(f"this caller has {mine} streams open; close some, or come again in a moment")
        self._count_stream(caller, 1)

    def end_stream(self, caller: str) -> None:
        self._count_stream(caller, -1)

    def _count_stream(self, caller: str, by: int) -> None:
        self.streams += by
        self._streams_of[caller] += by
        if not self._streams_of[caller]:
            del self._streams_of[caller]
        calls("stream").set(self.streams)
