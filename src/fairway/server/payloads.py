"""Payloads that go out with a reservation, as many as one answer can hold, and few others.

Guards: the memory that answers take is bounded, each and all together, whatever was reserved; what did not fit is asked
for on its own. Of a page of which little is reserved only that is sent: where tenants take turns a chunk would bring
a whole page along.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import msgspec

from fairway.client.wire import Pages
from fairway.engine.commands import Reserved
from fairway.errors import PayloadCorrupt
from fairway.face.driving import AsyncPort, drive_async
from fairway.face.keeping import KeptPages
from fairway.face.leasing import leases_of, pages_wanted, places_wanted, with_ended
from fairway.face.reads import ReadPages, Where
from fairway.limits import ANSWER_BYTES_MAX
from fairway.model.lease import Lease
from fairway.model.page import cut_page, payloads_of
from fairway.server.held import Held

_SLICE = 64  # pages read at a time; each has a megabyte at most


class _Fitting:
    """The payload pages of one answer, as many as fit."""

    def __init__(self, held: Held) -> None:
        self.pages: Pages = {}
        self._held = held

    def add(self, where: Where, page: bytes) -> bool:
        """False: it does not fit."""
        if (self.pages and self._held.size + len(page) > ANSWER_BYTES_MAX) or not self._held.take(len(page)):
            return False
        self.pages[where] = page
        return True

    async def read(self, port: AsyncPort, wanted: list[Where], sent: Callable[[Where, bytes], bytes]) -> bool:
        """Read pages, in order, and add what is sent of each. False: not all of it fits."""
        for start in range(0, len(wanted), _SLICE):
            some = wanted[start : start + _SLICE]
            async with self._held.reading(len(some)):
                for where, page in (await port.ask(ReadPages(some))).items():
                    if not self.add(where, sent(where, page)):
                        return False
        return True


async def bundled(
    port: AsyncPort, reserved: Reserved, held: Held, kept: KeptPages
) -> tuple[Reserved, Pages, bool]:
    """A reservation with all that describes it, and the payload pages that fit into its answer; whether all did."""
    if not reserved.spans:
        return reserved, {}, True
    if not reserved.runs.keys() >= {span[0] for span in reserved.spans}:
        reserved = await drive_async(with_ended(reserved), port)
    wanted = places_wanted(reserved)
    little = {where: places for where, places in wanted.items() if _is_little(reserved, where, places)}
    answer = _Fitting(held)
    for where, payloads in kept.find(little).items():
        page = _cut(payloads, little[where])
        if page is not None and not answer.add(where, page):
            return reserved, answer.pages, False

    def sent(where: Where, page: bytes) -> bytes:
        return _part(where, page, little[where], kept) if where in little else page

    missing = [where for where in wanted if where not in answer.pages]
    whole = await answer.read(port, missing, sent)
    return reserved, answer.pages, whole


async def read(port: AsyncPort, wanted: list[Where], held: Held) -> Pages:
    """As many of these pages as fit, in order; at least one of those that are there, or TooManyCalls or Busy."""
    answer = _Fitting(held)
    if not await answer.read(port, wanted, lambda _, page: page) and not answer.pages:
        held.check()
    return answer.pages


def _is_little(reserved: Reserved, where: Where, places: list[range]) -> bool:
    """Whether less than half of a page's chunks are reserved."""
    submission, number = where
    described = reserved.runs[submission]
    starts = described.page_starts
    end = starts[number + 1] if number + 1 < len(starts) else described.total
    return 2 * sum(map(len, places)) < end - starts[number]


def _part(where: Where, page: bytes, places: list[range], kept: KeptPages) -> bytes:
    """What is reserved of a page that was read; it is kept for the next reservation."""
    try:
        payloads = payloads_of(page)
    except PayloadCorrupt:
        return page  # who gets it finds out, and fails its chunks
    kept.keep(where, payloads, len(page))
    return _cut(payloads, places) or page


def _cut(payloads: list[bytes], places: list[range]) -> bytes | None:
    """The payloads at these places as a page; None if one has none, as in a page that is not its submission's."""
    if max(some.stop for some in places) > len(payloads):
        return None
    return cut_page(payloads, chain.from_iterable(places))


class _Read:
    """A port for what was read already."""

    def __init__(self, port: AsyncPort, pages: Pages) -> None:
        self._port, self._pages = port, pages
        self.do, self.unreceived = port.do, port.unreceived

    async def ask(self, command: Any) -> Any:
        if type(command) is ReadPages:
            return {where: self._pages[where] for where in command.wanted if where in self._pages}
        return await self._port.ask(command)

    async def close(self) -> None:
        """The queue stays open for others."""


async def leases(port: AsyncPort, reserved: Reserved, held: Held, kept: KeptPages) -> list[Lease]:
    """The leases of a reservation; those whose payloads did not fit have none, and are told as late."""
    reserved, pages, whole = await bundled(port, reserved, held, kept)
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
        for submission, index, _, attempt in late
    ]
