"""Payload pages that were put lately, so that a reserve need not read them back.

Guards: what is kept never exceeds its bound in bytes; a page never changes, so it is never wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain

from fairway import limits
from fairway.engine.commands import Accepted
from fairway.face.reads import Where
from fairway.model.submission import Offer

_ENTRY_BYTES = 200  # about what a key and its place in the dict weigh


class Payloads:
    """The pages of submissions; those of the oldest call leave first. Callers hold the host's lock."""

    __slots__ = ("_bytes", "_bytes_max", "_calls", "_pages")

    def __init__(self, bytes_max: int = limits.PAYLOAD_CACHE_BYTES) -> None:
        self._pages: dict[int, tuple[bytes, ...]] = {}
        self._calls: deque[tuple[list[int], int]] = deque()  # the ids of each call and what they weigh
        self._bytes = 0
        self._bytes_max = bytes_max

    def add(self, accepted: Accepted, offers: Sequence[Offer]) -> None:
        """The pages of new submissions; those of one that was known already may differ from what was given."""
        ids, pages = accepted.ids, [offer.pages for offer in offers]
        if True in accepted.known or () in pages:
            new = [i for i, known in enumerate(accepted.known) if pages[i] and not known]
            ids, pages = [ids[i] for i in new], [pages[i] for i in new]
        size = _ENTRY_BYTES * len(ids) + sum(map(len, chain.from_iterable(pages)))
        first = 0
        while size > self._bytes_max:  # of a call that is larger than all the room the last ones stay
            size -= _ENTRY_BYTES + sum(map(len, pages[first]))
            first += 1
        if first:
            ids, pages = ids[first:], pages[first:]
        kept = self._pages
        for id, some in zip(ids, pages, strict=True):
            kept[id] = some
        self._calls.append((ids, size))
        self._bytes += size
        while self._bytes > self._bytes_max:
            gone, size = self._calls.popleft()
            self._bytes -= size
            for id in gone:
                del self._pages[id]

    def find(self, wanted: Sequence[Where]) -> tuple[dict[Where, bytes], list[Where]]:
        """What is here, and what is not."""
        kept = self._pages
        found = {where: pages[where[1]] for where in wanted if (pages := kept.get(where[0])) is not None}
        return found, [] if len(found) == len(wanted) else [where for where in wanted if where not in found]

    def __len__(self) -> int:
        return len(self._pages)
