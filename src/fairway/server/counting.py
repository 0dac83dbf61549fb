"""Counting: what looks at much is read a few at a time, and counts for its answer as soon as it is here.

Guards: the memory of answers that are being built is bounded as that of answers that are not read yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from fairway.engine.commands import ListActive, ListDead
from fairway.face.reads import ListEnded, ListEndedDead, ReadEvents, ReadResults
from fairway.limits import LOOK_PAGES, READER_SECONDS_MAX
from fairway.model.submission import DeadChunk, Submission
from fairway.server.held import Held

_ROOM_SECONDS: Final = 0.1  # between two looks whether there is room again
_ROW_BYTES: Final = 256  # about, of a row beside its texts


class CountedPort:
    """A port whose long replies count for an answer; TooManyCalls or Busy if the bound is reached.

    `kept` says how much of earlier replies is still kept; without it all of them are, and who got the first one gets
    the others too. With `patient` it waits for room, as who sends part by part.
    """

    def __init__(
        self, port: Any, held: Held, kept: Callable[[], int] | None = None, patient: bool = False
    ) -> None:
        self._port, self._held, self._kept, self._patient = port, held, kept, patient
        self.do, self.unreceived = port.do, port.unreceived

    async def ask(self, command: Any, *call: Any) -> Any:
        size_of = _SIZES.get(type(command))
        if size_of is None:
            return await self._port.ask(command, *call)
        begun = self._kept is None and self._held.size > 0
        if self._kept is not None:
            self._held.now(self._kept())
        if self._patient:
            await self._room()
        async with self._held.reading(LOOK_PAGES):
            reply = await self._port.ask(command, *call)
            size = size_of(reply)
            if begun:
                self._held.now(self._held.size + size)
            elif not self._held.take(size):
                self._held.check()
            return reply

    async def _room(self) -> None:
        until = time.monotonic() + READER_SECONDS_MAX
        while self._held.full and time.monotonic() < until:
            await asyncio.sleep(_ROOM_SECONDS)

    async def close(self) -> None:
        """The queue stays open for others."""


def _submissions(found: list[Submission]) -> int:
    return sum(_ROW_BYTES + len(row.info) + len(row.error) + len(row.key) for row in found)


def _dead(found: list[DeadChunk]) -> int:
    return sum(_ROW_BYTES + len(chunk.error) for chunk in found)


_SIZES: Final[dict[type[Any], Callable[[Any], int]]] = {
    ListActive: _submissions,
    ListDead: _dead,
    ListEnded: _submissions,
    ListEndedDead: lambda found: _dead(found[1]),
    ReadEvents: lambda found: sum(len(body) for _, _, body in found),
    ReadResults: lambda found: sum(len(page.body) for page in found),
}
