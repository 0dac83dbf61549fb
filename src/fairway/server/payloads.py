"""Payloads that go out with a reservation, as many as one answer can hold.

Guards: the memory that answers take is bounded, each and all together, whatever was reserved; what did not fit is asked
for on its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.client.wire import Pages
from fairway.engine.commands import Reserved
from fairway.face.driving import drive_async
from fairway.face.leasing import leases_of, pages_wanted, with_ended
from fairway.face.reads import ReadPages, Where
from fairway.limits import ANSWER_BYTES_MAX
from fairway.model.lease import Lease
from fairway.server.held import Held

_SLICE = 64  # pages read at a time; each has a megabyte at most


async def bundled(port: Any, reserved: Reserved, held: Held) -> tuple[Reserved, Pages, bool]:
    """A reservation with all that describes it, and the payload pages that fit into its answer; whether all did."""
    if not reserved.spans:
        return reserved, {}, True
    if not reserved.runs.keys() >= {span[0] for span in reserved.spans}:
        reserved = await drive_async(with_ended(reserved), port)
    wanted = pages_wanted(reserved)
    return reserved, *await _fitting(port, wanted, held)


async def read(port: Any, wanted: list[Where], held: Held) -> Pages:
    """As many of these pages as fit, in order; at least one of those that are there, or TooManyCalls or Busy."""
    found, whole = await _fitting(port, wanted, held)
    if not found and not whole:
        held.check()
    return found


async def _fitting(port: Any, wanted: list[Where], held: Held) -> tuple[Pages, bool]:
    """As many of these pages as fit, in order, and whether these are all that are there."""
    found: Pages = {}
    size = 0
    for start in range(0, len(wanted), _SLICE):
        part = wanted[start : start + _SLICE]
        async with held.reading(len(part)):
            for where, page in (await port.ask(ReadPages(part))).items():
                size += len(page)
                if (size > ANSWER_BYTES_MAX and found) or not held.take(len(page)):
                    return found, False
                found[where] = page
    return found, True


class _Read:
    """A port for what was read already."""

    def __init__(self, port: Any, pages: Pages) -> None:
        self._port, self._pages = port, pages
        self.do, self.unreceived = port.do, port.unreceived

    async def ask(self, command: Any) -> Any:
        if type(command) is ReadPages:
            return {where: self._pages[where] for where in command.wanted if where in self._pages}
        return await self._port.ask(command)

    async def close(self) -> None:
        """The queue stays open for others."""


async def leases(port: Any, reserved: Reserved, held: Held) -> list[Lease]:
    """The leases of a reservation; those whose payloads did not fit have none, and are told as late."""
    reserved, pages, whole = await bundled(port, reserved, held)
    if whole:
        return await drive_async(leases_of(reserved, None), _Read(port, pages))
    early, late = [], []
    for submission, start, count, attempt in reserved.spans:
        for index in range(start, start + count):
            one = (submission, index, 1, attempt)
            (where,) = pages_wanted(msgspec.structs.replace(reserved, spans=[one])) or [None]
            (early if where is None or where in pages else late).append(one)
    found = await drive_async(
        leases_of(msgspec.structs.replace(reserved, spans=early), None), _Read(port, pages)
    )
    r = reserved
    return found + [
        Lease(submission, index, attempt, r.deadline, r.epoch, r.count, r.seal, r.runs[submission])
        for submission, start, count, attempt in late
        for index in range(start, start + count)
    ]
