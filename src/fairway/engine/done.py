"""Which chunks of a run are done, and which attempt won each: bitmap pages and run-length winners.

Guards: a chunk is done at most once; memory grows with the fragmentation of what is done, not with chunks.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from types import MappingProxyType

import msgspec
from pyroaring import BitMap

from fairway.engine.commands import Win
from fairway.limits import PAGE_CHUNKS

_LOW = 0xFFFFFFFF


_FEW = 8  # runs of winners that are scanned faster than a bitmap is made


class Page(msgspec.Struct, eq=False, gc=False):
    """PAGE_CHUNKS chunks: winners, four numbers per run of chunks, and a bitmap once they are many.

    The collector need not know pages, of which every run gets one: nothing leads back from them.
    """

    # (start << 32 | count, epoch, reservation, writer << 2 | kind), in the order of completion
    winners: array[int]
    as_of: int = 0
    final: int = 0  # rows that are stored and will not change
    marked: bool = False  # it is in State.dirty, so it need not be marked again
    bits: BitMap | None = None

    @classmethod
    def stored(cls, winners: bytes, as_of: int) -> Page:
        """A page as it was stored."""
        return cls(array("Q", winners), as_of)

    def __contains__(self, low: int) -> bool:
        bits = self.bits
        if bits is None:
            flat = self.winners
            if len(flat) > 4 * _FEW:
                return low in self._make_bits()
            return any(where >> 32 <= low < (where >> 32) + (where & _LOW) for where in flat[::4])
        return low in bits

    def __len__(self) -> int:
        return sum(where & _LOW for where in self.winners[::4])

    def add(self, low: int, n: int, epoch: int, reservation: int, who: int) -> None:
        """Mark n chunks from `low` on."""
        flat, bits = self.winners, self.bits
        if bits is not None:
            bits.add_range(low, low + n)
        if flat and flat[-2] == reservation and flat[-1] == who and flat[-3] == epoch:
            where = flat[-4]
            if (where >> 32) + (where & _LOW) == low:
                flat[-4] = where + n  # the last run grows
                return
        append = flat.append  # four times faster than to extend by a tuple
        append(low << 32 | n)
        append(epoch)
        append(reservation)
        append(who)

    def _make_bits(self) -> BitMap:
        bits = self.bits = BitMap()
        for where in self.winners[::4]:
            bits.add_range(where >> 32, (where >> 32) + (where & _LOW))
        return bits


def wins_of(page: Page, first: int) -> Iterator[Win]:
    """The winners in a page that begins with chunk `first`."""
    flat = page.winners
    for at in range(0, len(flat), 4):
        where, epoch, reservation, who = flat[at : at + 4]
        yield Win(first + (where >> 32), where & _LOW, epoch, reservation, who >> 2, who & 3)


_NO_PAGES: dict[int, Page] = MappingProxyType[int, Page]({})  # pyright: ignore[reportAssignmentType]


class Done(msgspec.Struct, eq=False, gc=False):
    """The done chunks of one run."""

    pages: dict[int, Page] = _NO_PAGES
    count: int = 0

    def __contains__(self, index: int) -> bool:
        page = self.pages.get(index // PAGE_CHUNKS)
        return page is not None and index % PAGE_CHUNKS in page

    def add(self, start: int, count: int, epoch: int, reservation: int, who: int) -> Page | None:
        """Mark [start, start + count), none of which is done; gives their page, if it is only one."""
        self.count += count
        number, low = start // PAGE_CHUNKS, start % PAGE_CHUNKS
        page = self.pages.get(number)
        if page is None:
            page = self._put(number, Page(array("Q")))
        if low + count <= PAGE_CHUNKS:
            page.add(low, count, epoch, reservation, who)
            return page
        here = PAGE_CHUNKS - low
        page.add(low, here, epoch, reservation, who)
        self.count -= count - here
        self.add(start + here, count - here, epoch, reservation, who)
        return None

    def win(self, start: int, count: int, winner: array[int]) -> Page | None:
        """`add` for many spans of one winner (epoch, reservation, writer << 2 | kind), without its calls."""
        page, low = self.pages.get(start // PAGE_CHUNKS), start % PAGE_CHUNKS
        if page is None or page.bits is not None or low + count > PAGE_CHUNKS:
            return self.add(start, count, *winner)
        flat = page.winners
        if flat and flat[-2] == winner[1]:
            return self.add(start, count, *winner)  # the last run may grow
        self.count += count
        flat.append(low << 32 | count)
        flat.extend(winner)
        return page

    def put(self, number: int, page: Page) -> None:
        """Restore a page."""
        self._put(number, page)
        self.count += len(page)

    def _put(self, number: int, page: Page) -> Page:
        if self.pages is _NO_PAGES:
            self.pages = {}
        self.pages[number] = page
        return page

    def wins(self, start: int, count: int) -> Iterator[Win]:
        """The winners that touch [start, start + count), page by page, in the order of completion inside each."""
        for number in range(start // PAGE_CHUNKS, (start + count - 1) // PAGE_CHUNKS + 1):
            page = self.pages.get(number)
            if page is not None:
                for win in wins_of(page, number * PAGE_CHUNKS):
                    if win.start < start + count and win.start + win.count > start:
                        yield win

    def won(self, index: int, epoch: int, reservation: int) -> bool:
        """Whether this attempt completed the chunk."""
        return any(win.epoch == epoch and win.reservation == reservation for win in self.wins(index, 1))


class NoneDone(Done, frozen=True, eq=False, gc=False):  # pyright: ignore[reportGeneralTypeIssues]
    """What is done of a run of which nothing is: shared by all such runs, so it cannot be written to."""
