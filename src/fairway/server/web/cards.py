"""Cards: each queue in one line, for the list of queues.

Guards: counted every few seconds at most, however many browsers are open; a visitor gets the queues he may read.
"""

from __future__ import annotations

import time

import msgspec

from fairway import limits
from fairway.engine.commands import QueueStats
from fairway.errors import FairwayError
from fairway.server.queues import OpenQueues
from fairway.server.tokens import Token


class Card(msgspec.Struct, frozen=True):
    """A queue at a glance; without counts, it cannot be looked at now."""

    name: str
    at: float
    stats: QueueStats | None
    handed: float | None = None  # per second
    completed: float | None = None
    elsewhere: bool = False  # another node works on it, and has its counts


class Cards:
    """The cards of one process."""

    def __init__(self, queues: OpenQueues) -> None:
        self._queues = queues
        self._cards: dict[str, Card] = {}

    async def of(self, token: Token) -> tuple[list[Card], int]:
        """The cards of a visitor, and how many queues more he may look at."""
        every = await self._queues.names()
        for gone in self._cards.keys() - every.keys():
            del self._cards[gone]
        names = [name for name in sorted(every) if token.allows("read", name)]
        shown = [await self._card(name) for name in names[: limits.METRIC_QUEUES_MAX]]
        return shown, len(names) - len(shown)

    async def _card(self, name: str) -> Card:
        kept, now = self._cards.get(name), time.monotonic()
        if kept is not None and now - kept.at < limits.DASHBOARD_LIST_SECONDS * 0.9:
            return kept
        try:
            card = _moved(kept, await self._fresh(name, now))
        except FairwayError:
            card = Card(name, now, None)
        self._cards[name] = card
        return card

    async def _fresh(self, name: str, now: float) -> Card:
        found = await self._queues.get(name)
        if not found.here:  # to ask it would wait until this node works on it
            return Card(name, now, None, elsewhere=bool(found.elsewhere))
        return Card(name, now, await found.queue.stats())


def _moved(before: Card | None, card: Card) -> Card:
    """A card with what moved since the one before; a counter that fell belongs to another host."""
    if (
        before is None
        or before.stats is None
        or card.stats is None
        or card.stats.handed < before.stats.handed
    ):
        return card
    seconds = card.at - before.at
    handed = (card.stats.handed - before.stats.handed) / seconds
    completed = max(0, card.stats.completed - before.stats.completed) / seconds
    return msgspec.structs.replace(card, handed=handed, completed=completed)
