"""Pages: inline payloads and results as checked blobs.

Guards: what is read back is byte for byte what was written, or PayloadCorrupt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import google_crc32c
import msgspec

from fairway.errors import PayloadCorrupt
from fairway.limits import PAGE_BYTES, PAGE_BYTES_MAX, PAYLOAD_PAGES

_checksum = google_crc32c.value
_encode = msgspec.msgpack.Encoder().encode
_payloads = msgspec.msgpack.Decoder(list[bytes])
_some = msgspec.msgpack.Decoder(list[bytes] | dict[int, bytes])
_HEAD_BYTES = 5  # of a payload in a page, at most
_results = msgspec.msgpack.Decoder(list[tuple[int, bytes]])


def _sealed(body: bytes) -> bytes:
    return _checksum(body).to_bytes(4, "big") + body


def _opened(page: bytes) -> bytes:
    if type(page) is not bytes:  # a bit that turned over in the file may have made it something else
        raise PayloadCorrupt
    body = page[4:]
    if len(page) < 4 or _checksum(body) != int.from_bytes(page[:4], "big"):
        raise PayloadCorrupt
    return body


def message_pages(payload: bytes) -> tuple[bytes]:
    """The pages of a message: one, with its one payload."""
    body = _encode((payload,))
    return (_checksum(body).to_bytes(4, "big") + body,)


def payload_pages(payloads: Sequence[bytes]) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """Cut payloads into pages; also the first chunk index of each page.

    Where tenants take turns a page is read for each chunk, so it is small; a larger submission has larger ones, since
    where they begin is told with every reservation.
    """
    if len(payloads) == 1:
        return message_pages(payloads[0]), (0,)
    whole = sum(map(len, payloads)) + _HEAD_BYTES * len(payloads)
    enough = min(max(whole // PAYLOAD_PAGES, PAGE_BYTES), PAGE_BYTES_MAX)
    pages: list[bytes] = []
    starts: list[int] = []
    first = size = 0
    for i, payload in enumerate(payloads):
        size += len(payload) + _HEAD_BYTES
        if size >= enough or i + 1 == len(payloads):
            pages.append(_sealed(_encode(payloads[first : i + 1])))
            starts.append(first)
            first, size = i + 1, 0
    return tuple(pages), tuple(starts)


def payloads_of(page: bytes) -> list[bytes]:
    """The payloads in a page."""
    return _payloads.decode(_opened(page))


def cut_page(payloads: Sequence[bytes], places: Iterable[int]) -> bytes:
    """A page with those of its payloads that are wanted, under their places: what is sent in place of a whole one."""
    return _sealed(_encode({at: payloads[at] for at in places}))


def payloads_in(page: bytes) -> list[bytes] | dict[int, bytes]:
    """The payloads in a page as it came: all of them, or of a cut one those that were wanted, by place."""
    return _some.decode(_opened(page))


def result_page(results: Sequence[tuple[int, bytes]]) -> bytes:
    """Results as (index, bytes) in index order."""
    return _sealed(_encode(results))


def results_of(page: bytes) -> list[tuple[int, bytes]]:
    """The results in a page."""
    return _results.decode(_opened(page))
