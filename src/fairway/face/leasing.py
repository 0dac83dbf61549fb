"""Leases as they reach a worker: a reservation with its payloads read and checked.

Guards: a payload that is handed out is byte for byte what was submitted; a damaged one fails its chunk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import msgspec

from fairway.engine.commands import Fail, LeasedSpan, Part, Reserved, Settled
from fairway.errors import NotFound, PayloadCorrupt
from fairway.face.keeping import KeptPages
from fairway.face.reads import Describe, ReadPages, Where
from fairway.face.receipts import Leases, spread
from fairway.face.steps import Ask, Steps
from fairway.model.lease import Lease
from fairway.model.page import payloads_in

Fetch = Callable[[str], bytes]
Pages = Mapping[Where, Sequence[bytes] | Mapping[int, bytes]]


def leases_of(reserved: Reserved, fetch: Fetch | None, kept: KeptPages | None = None) -> Steps[list[Lease]]:
    """The leases of a reservation; `fetch` reads an object when a worker looks at a payload by reference."""
    leases = _without_pages(reserved, fetch)
    if leases is not None:
        return Leases(leases, reserved)
    if not reserved.runs.keys() >= {span[0] for span in reserved.spans}:
        reserved = yield from with_ended(reserved)
    wanted = pages_wanted(reserved)
    if not wanted:
        return _leases(reserved, {}, fetch)[0]
    pages: Pages = kept.find(wanted) if kept is not None else {}
    missing = [where for where in wanted if where not in pages] if pages else wanted
    if missing:
        raw: dict[Where, bytes] = yield Ask(ReadPages(missing))
        pages = {**pages, **_opened(raw, kept)}
    leases, damaged = _leases(reserved, pages, fetch)
    if damaged:
        yield from _fail(reserved, damaged, bool(leases))
        return leases
    return Leases(leases, reserved)


def with_ended(reserved: Reserved) -> Steps[Reserved]:
    """A named reservation that is handed back has finished chunks too; those of purged submissions leave it."""
    runs = dict(reserved.runs)
    for submission in {span[0] for span in reserved.spans} - runs.keys():
        try:
            runs[submission] = yield Ask(Describe(submission))
        except NotFound:
            continue
    spans = [span for span in reserved.spans if span[0] in runs]
    return msgspec.structs.replace(reserved, runs=runs, spans=spans)


def pages_wanted(reserved: Reserved) -> list[Where]:
    """The payload pages that hold the reserved chunks."""
    runs = reserved.runs
    found: dict[Where, None] = {}
    for submission, start, count, _ in reserved.spans:
        starts = runs[submission].page_starts
        if not starts:
            continue
        if len(starts) == 1:
            found[submission, 0] = None
        else:
            first = bisect_right(starts, start) - 1
            last = bisect_right(starts, start + count - 1, first) - 1
            for page in range(first, last + 1):
                found[submission, page] = None
    return list(found)


def places_wanted(reserved: Reserved) -> dict[Where, list[range]]:
    """The payload pages that hold the reserved chunks, and where in each of them these are."""
    found: dict[Where, list[range]] = {}
    for submission, start, count, _ in reserved.spans:
        starts, end = reserved.runs[submission].page_starts, start + count
        page = bisect_right(starts, start) - 1
        while starts and start < end:
            until = min(end, starts[page + 1]) if page + 1 < len(starts) else end
            places = range(start - starts[page], until - starts[page])
            found.setdefault((submission, page), []).append(places)
            start, page = until, page + 1
    return found


def _without_pages(reserved: Reserved, fetch: Fetch | None) -> list[Lease] | None:
    """The leases of chunks whose submissions are described and have no inline payloads; None if any has."""
    leases: list[Lease] = []
    epoch, reservation, seal, deadline = reserved.epoch, reserved.count, reserved.seal, reserved.deadline
    described_of, add, lease = reserved.runs.get, leases.append, Lease
    for submission, start, count, attempt in reserved.spans:
        described = described_of(submission)
        if described is None or described.page_starts:
            return None
        if count == 1:
            add(lease(submission, start, attempt, deadline, epoch, reservation, seal, described, None, fetch))
            continue
        for index in range(start, start + count):
            add(Lease(submission, index, attempt, deadline, epoch, reservation, seal, described, None, fetch))
    return leases


def _opened(raw: dict[Where, bytes], kept: KeptPages | None) -> Pages:
    pages: dict[Where, list[bytes] | dict[int, bytes]] = {}
    for where, page in raw.items():
        try:
            pages[where] = found = payloads_in(page)
        except PayloadCorrupt:
            continue  # the chunks in it are found missing when their leases are made
        if kept is not None and type(found) is list:  # a server may have cut it for this reservation
            kept.keep(where, found, len(page))
    return pages


def _leases(reserved: Reserved, pages: Pages, fetch: Fetch | None) -> tuple[list[Lease], list[LeasedSpan]]:
    leases: list[Lease] = []
    damaged: list[LeasedSpan] = []
    epoch, reservation, seal, deadline = reserved.epoch, reserved.count, reserved.seal, reserved.deadline
    for submission, start, count, attempt in reserved.spans:
        described = reserved.runs[submission]
        starts = described.page_starts
        if not starts:
            for index in range(start, start + count):
                leases.append(
                    Lease(
                        submission, index, attempt, deadline, epoch, reservation, seal, described, None, fetch
                    )
                )
            continue
        for index in range(start, start + count):
            number = bisect_right(starts, index) - 1 if len(starts) > 1 else 0
            page, at = pages.get((submission, number), ()), index - starts[number]
            if at not in page if type(page) is dict else at >= len(page):
                damaged.append((submission, index, 1, attempt))
                continue
            data = page[at]
            leases.append(
                Lease(submission, index, attempt, deadline, epoch, reservation, seal, described, data)
            )
    return leases, damaged


def _fail(reserved: Reserved, damaged: list[LeasedSpan], others: bool) -> Steps[None]:
    """Damaged chunks count an attempt and die as others that cannot be processed; their neighbours go on."""
    spans = [(submission, index, count) for submission, index, count, _ in damaged]
    submission, index, _, _ = damaged[0]
    where = f"the payload of chunk {index} of submission {submission}"
    error = f"{where} is missing or does not match its checksum; the chunk was not handed out"
    part = Part(reserved.epoch, reserved.count, reserved.seal, spans)
    settled: Settled = yield Ask(Fail([part], error=error))
    # A submission that ended and was purged since has no payloads either; that is no damage.
    if not others and any(outcome in ("retrying", "dead") for outcome in spread(settled.outcomes)):
        raise PayloadCorrupt(error, submission=submission, index=index)
