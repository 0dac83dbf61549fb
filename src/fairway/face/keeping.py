"""Payload pages that are kept open for the next reservation.

Guards: pages never change, so a kept one is what is stored; what is kept has a bound, and what was used longest ago
goes. Nobody waits for the lock: a child of a fork may have it held for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from fairway.face.reads import Where
from fairway.limits import KEPT_PAGE_BYTES_MAX

Pages = dict[Where, list[bytes]]

_OBJECT_BYTES = 48  # of memory for a payload, beside its bytes


class KeptPages:
    """Pages of submissions of which each reservation takes a few chunks, as it does when many tenants share a queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: dict[Where, tuple[list[bytes], int]] = {}  # with their sizes, in the order of their use
        self._bytes = 0

    def find(self, wanted: Iterable[Where]) -> Pages:
        """Those of the wanted pages that are here. Another thread may be at it: nobody waits, then none is."""
        found: Pages = {}
        if self._pages and self._lock.acquire(blocking=False):
            for where in wanted:
                kept = self._pages.pop(where, None)
                if kept is not None:
                    self._pages[where] = kept
                    found[where] = kept[0]
            self._lock.release()
        return found

    def keep(self, where: Where, page: list[bytes], stored_bytes: int) -> None:
        """Keep a page that was read, unless nothing can be left in it for others."""
        size = stored_bytes + _OBJECT_BYTES * len(page)
        if len(page) == 1 or size > KEPT_PAGE_BYTES_MAX or not self._lock.acquire(blocking=False):
            return
        if where not in self._pages:
            self._pages[where] = page, size
            self._bytes += size
            while self._bytes > KEPT_PAGE_BYTES_MAX:
                self._bytes -= self._pages.pop(next(iter(self._pages)))[1]
        self._lock.release()
