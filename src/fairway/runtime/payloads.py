"""Payload pages that were put lately, so that a reserve need not read them back.

Guards: what is kept never exceeds its bound in bytes; a page never changes, so it is never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from fairway import limits
from fairway.engine.commands import Accepted
from fairway.model.submission import Offer

_ENTRY_BYTES = 200  # about what a key and its place in the dict weigh

Where = tuple[int, int]


class Payloads:
    """The pages of submissions, the oldest leaving first. Callers hold the host's lock."""

    __slots__ = ("_bytes", "_bytes_max", "_pages")

    def __init__(self, bytes_max: int = limits.PAYLOAD_CACHE_BYTES) -> None:
        # A plain dict would look for its first entry past all those that left before it.
        self._pages: OrderedDict[int, tuple[bytes, ...]] = OrderedDict()
        self._bytes = 0
        self._bytes_max = bytes_max

    def add(self, accepted: Accepted, offers: Sequence[Offer]) -> None:
        """The pages of new submissions; those of one that was known already may differ from what was given."""
        kept, size = self._pages, 0
        for id, known, offer in zip(accepted.ids, accepted.known, offers, strict=True):
            pages = offer.pages
            if pages and not known:
                kept[id] = pages
                size += len(pages[0]) + _ENTRY_BYTES if len(pages) == 1 else _weight(pages)
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._bytes -= _weight(kept.popitem(last=False)[1])

    def find(self, wanted: Sequence[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        """What is here, and what is not."""
        kept = self._pages
        found = {where: pages[where[1]] for where in wanted if (pages := kept.get(where[0])) is not None}
        return found, [] if len(found) == len(wanted) else [where for where in wanted if where not in found]

    def __len__(self) -> int:
        return len(self._pages)


def _weight(pages: tuple[bytes, ...]) -> int:
    return sum(map(len, pages)) + _ENTRY_BYTES
