"""Sheets: a page of winners as it is stored, so many rows to a sheet.

Guards: a page that changes costs a sheet or two, however much of it is done; rows of a full sheet never change.

Sheet n of page p is the PAGE object with the part n << SHEET_SHIFT | p. A page without any was written whole, as p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final

import msgspec

from fairway.engine.done import Page
from fairway.engine.run import Run
from fairway.limits import SHEET_ROWS
from fairway.model.stored import Kind, Put

SHEET_SHIFT: Final = 16  # a submission has fewer pages than 2^16, and a page fewer sheets than 2^15
_ROW_NUMBERS: Final = 4  # of 8 bytes


Reader = Callable[[Kind, int, int], bytes | None]
"""Store.object: the body of (kind, key, part), or None."""


class SheetBody(msgspec.Struct, array_like=True):
    """A sheet, as stored."""

    as_of: int
    winners: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SheetBody).decode


def _sheet_bytes() -> int:
    return SHEET_ROWS * _ROW_NUMBERS * 8


def page_of(part: int) -> int:
    """The page that a stored part belongs to."""
    return part & (1 << SHEET_SHIFT) - 1


def written(page: Page, id: int, number: int, as_of: int) -> Iterator[Put]:
    """What is to be stored of a page that changed; it is clean afterwards."""
    flat, step = page.winners, SHEET_ROWS * _ROW_NUMBERS
    rows = len(flat) // _ROW_NUMBERS
    first = page.final // SHEET_ROWS
    page.final, page.as_of, page.marked = max(0, rows - 1), as_of, False  # its last row may still grow
    for at in range(first, max(1, -(-rows // SHEET_ROWS))):
        body = _encode(SheetBody(as_of, flat[at * step : (at + 1) * step].tobytes()))
        yield Put(Kind.PAGE, id, at << SHEET_SHIFT | number, body)


def put_pages(run: Run, stored: Iterable[tuple[int, bytes]]) -> None:
    """Put stored parts into a run that does not have these pages."""
    pages: dict[int, list[SheetBody]] = {}
    for part, body in sorted(stored):
        pages.setdefault(page_of(part), []).append(_decode(body))
    for number, sheets in pages.items():
        as_of = max(sheet.as_of for sheet in sheets)
        page = Page.stored(b"".join([sheet.winners for sheet in sheets]), as_of)
        if len(sheets[0].winners) <= _sheet_bytes():  # else it is to be cut into sheets when it changes
            page.final = (len(sheets) - 1) * SHEET_ROWS
        run.own_done().put(number, page)


def parts_of(read: Reader, id: int, number: int) -> Iterator[tuple[int, bytes]]:
    """The stored parts of one page, read one after the other."""
    for at in count():
        part = at << SHEET_SHIFT | number
        body = read(Kind.PAGE, id, part)
        if body is None:
            return
        yield part, body
        if len(_decode(body).winners) != _sheet_bytes():
            return  # the last one, or the whole page
