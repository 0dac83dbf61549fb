"""Results: how they are registered with a completion, and how they are read back in index order.

Guards: a result object has a name that no other try uses, and is removed if it was not registered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

import msgspec

from fairway import limits
from fairway.engine.commands import Complete, Outcome, Win, Winners
from fairway.errors import BadArgument
from fairway.face.leasing import Fetch
from fairway.face.reads import Describe, ReadResults
from fairway.face.receipts import Held, parts_of
from fairway.face.steps import Ask, Items, Listing
from fairway.model.lease import Lease
from fairway.model.names import result_name
from fairway.model.page import results_of
from fairway.model.stored import ResultPage
from fairway.model.submission import Described


class Result(msgspec.Struct, frozen=True):
    """The registered result of a chunk: `data` if it is inline, `object` if it is one."""

    index: int  # of the chunk
    data: bytes | None = None  # the bytes of an inline result
    object: str | None = None  # the name of the object that holds it
    fetch: Fetch | None = None  # reads the object; None where that would block an event loop

    def read(self) -> bytes:
        """The result's bytes, from its object if it is one."""
        if self.data is not None:
            return self.data
        assert self.object is not None
        if self.fetch is None:
            raise BadArgument(
                f"the result is the object {self.object}; read it with `await queue.read(result)`"
            )
        return self.fetch(self.object)


class Registering:
    """Completions with results: what to upload, the commands, and the outcomes in the order of the leases."""

    def __init__(self, given: list[Held], blobs: list[bytes | None], writer: Callable[[], int]) -> None:
        self._given = given
        self._names: dict[int, str] = {}
        self.uploads: dict[str, bytes] = {}
        self.outcomes: list[Outcome] = ["lost"] * len(given)
        inline: list[int] = []
        objects: list[int] = []
        for i, lease in enumerate(given):
            by_object = blobs[i] is not None and isinstance(lease, Lease) and lease.described.segments
            (objects if by_object else inline).append(i)
        self.commands: list[tuple[list[int], Complete]] = list(self._inline(inline, blobs))
        if objects:
            number = writer()
            for i in objects:
                self._name(i, blobs[i] or b"", number)
            for start in range(0, len(objects), limits.CALL_CHUNKS_MAX):
                some = objects[start : start + limits.CALL_CHUNKS_MAX]
                self.commands.append((some, Complete(parts_of([given[i] for i in some]), None, True, number)))

    def _inline(self, places: list[int], blobs: list[bytes | None]) -> Iterator[tuple[list[int], Complete]]:
        """Cut by the number of leases and by bytes, so that each call fits into one group."""
        some: list[int] = []
        size = 0
        for i in places:
            weight = len(blobs[i] or b"") + 16
            if len(some) == limits.CALL_CHUNKS_MAX or size + weight > limits.GROUP_BYTES_MAX:
                yield self._call(some, blobs)
                some, size = [], 0
            some.append(i)
            size += weight
        if some:
            yield self._call(some, blobs)

    def _call(self, places: list[int], blobs: list[bytes | None]) -> tuple[list[int], Complete]:
        if len(places) == len(self._given):
            return places, Complete(parts_of(self._given), blobs)
        return places, Complete(parts_of([self._given[i] for i in places]), [blobs[i] for i in places])

    def _name(self, place: int, blob: bytes, writer: int) -> None:
        lease = self._given[place]
        assert isinstance(lease, Lease)
        name = lease.result_object(writer)
        assert name is not None
        self._names[place] = name
        self.uploads.setdefault(name, blob)  # of a lease that is named twice the first result counts

    def settled(self, places: list[int], outcomes: list[Outcome]) -> None:
        """The outcomes of one of the commands."""
        if len(places) == len(self._given):
            self.outcomes = outcomes
        for place, outcome in zip(places, outcomes, strict=True):
            self.outcomes[place] = outcome

    def useless(self) -> list[str]:
        """The objects that were written and not registered, when everything is settled."""
        return unregistered((name, self.outcomes[place]) for place, name in self._names.items())


def unregistered(settled: Iterable[tuple[str, Outcome]]) -> list[str]:
    """The names of which no completion was done: a lease that is named twice has one name and two outcomes."""
    told = list(settled)
    done = {name for name, outcome in told if outcome == "done"}
    return [name for name in dict.fromkeys(name for name, _ in told) if name not in done]


class _Inline:
    """Inline results by index, merged from pages that may overlap."""

    def __init__(self, id: int) -> None:
        self._id = id
        self._rest: list[tuple[int, bytes]] = []
        self._first = 0
        self.certain = -1  # every registered result up to this index has been read

    def more(self) -> ReadResults:
        return ReadResults(self._id, self._first)

    def add(self, pages: list[ResultPage], read: ReadResults) -> None:
        for page in pages:
            self._rest.extend(results_of(page.body))
        self._rest.sort()  # pages are sorted runs, which this merges
        if read.is_last(pages):
            self.certain = limits.CHUNKS_MAX
        else:
            self.certain = pages[-1].first
            self._first = self.certain + 1

    def take(self, last: int) -> list[tuple[int, bytes]]:
        """What is certain and has an index up to `last`."""
        cut = bisect_right(self._rest, min(last, self.certain), key=lambda pair: pair[0])
        taken, self._rest = self._rest[:cut], self._rest[cut:]
        return taken


def results_in_order(id: int, fetch: Fetch | None) -> Listing[Result]:
    """Every registered result of a submission, in index order."""
    described: Described = yield Ask(Describe(id))
    inline = _Inline(id)
    # Without objects there is one window; with them, windows of bitmap pages are merged with their winners.
    step = limits.PAGE_CHUNKS if described.segments else limits.CHUNKS_MAX
    for start in range(0, described.total, step):
        last = start + step - 1
        objects: list[Result] = []
        if described.segments:
            wins: list[Win] = yield Ask(Winners(id, start, min(step, described.total - start)))
            objects = [result for win in wins if win.kind == 2 for result in _objects(described, win, fetch)]
        while True:
            found = [Result(index, data) for index, data in inline.take(last)]
            if inline.certain >= last:
                break
            if found and not objects:
                yield Items(found)
            else:
                objects += found
            more = inline.more()
            inline.add((yield Ask(more)), more)
        if objects:
            found = sorted(objects + found, key=lambda result: result.index)
        yield Items(found)


def _objects(described: Described, win: Win, fetch: Fetch | None) -> Iterator[Result]:
    for index in range(win.start, win.start + win.count):
        name = result_name(described, index, win.epoch, win.reservation, win.writer)
        yield Result(index, None, name, fetch)
