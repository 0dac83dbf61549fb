"""Sizes of bucket queues, for metrics and for lists: counted seldom, since all of a queue is read for them.

Guards: counting takes a small part of the time, however often somebody asks; a caller sees his own queues only.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from fairway import limits
from fairway.bucket.counting import BucketStats
from fairway.errors import FairwayError, NotFound, QueueDeleted
from fairway.server.queues import OpenQueues
from fairway.server.tokens import Token


class Size(msgspec.Struct, frozen=True):
    """A bucket queue at a glance; without counts, it cannot be looked at now."""

    name: str
    stats: BucketStats | None
    until: float  # it is not counted again before


class Sizes:
    """The sizes of one process, for one event loop."""

    def __init__(self, queues: OpenQueues) -> None:
        self._queues = queues
        self._kept: dict[str, Size] = {}
        self._counting = asyncio.Lock()

    async def of(self, token: Token) -> tuple[list[Size], int]:
        """The sizes for a caller, and how many bucket queues more he may look at."""
        every = await self._queues.bucket_names()
        for gone in self._kept.keys() - set(every):
            del self._kept[gone]
        names = [name for name in sorted(every) if token.allows("read", name)]
        shown = [await self._size(name) for name in names[: limits.METRIC_QUEUES_MAX]]
        return [one for one in shown if one is not None], max(0, len(names) - limits.METRIC_QUEUES_MAX)

    def forget(self, name: str) -> None:
        """It was just changed: who changed it wants to see that."""
        self._kept.pop(name, None)

    async def _size(self, name: str) -> Size | None:
        async with self._counting:
            kept, began = self._kept.get(name), time.monotonic()
            if kept is not None and began < kept.until:
                return kept
            stats = found = None
            try:
                found = await self._queues.bucket(name, create=False)
                stats = await found.queue.stats()
            except (QueueDeleted, NotFound):
                if found is not None:
                    self._queues.forget_bucket(found)
                self._kept.pop(name, None)
                return None
            except FairwayError:
                pass  # it is listed, without counts
            now = time.monotonic()
            rest = max(limits.BUCKET_COUNT_SECONDS, limits.BUCKET_COUNT_REST_RATIO * (now - began))
            self._kept[name] = Size(name, stats, now + rest)
            return self._kept[name]
