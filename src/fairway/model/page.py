"""Pages: inline payloads and results as checked blobs.

Guards: what is read back is byte for byte what was written, or PayloadCorrupt.
"""

from __future__ import annotations

from collections.abc import Sequence

import google_crc32c
import msgspec

from fairway.errors import PayloadCorrupt
from fairway.limits import PAGE_BYTES

_checksum = google_crc32c.value
_encode = msgspec.msgpack.Encoder().encode
_payloads = msgspec.msgpack.Decoder(list[bytes])
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
    """Cut payloads into pages of about PAGE_BYTES; also the first chunk index of each page."""
    if len(payloads) == 1:
        return message_pages(payloads[0]), (0,)
    pages: list[bytes] = []
    starts: list[int] = []
    first = size = 0
    for i, payload in enumerate(payloads):
        size += len(payload) + 5
        if size >= PAGE_BYTES or i + 1 == len(payloads):
            pages.append(_sealed(_encode(payloads[first : i + 1])))
            starts.append(first)
            first, size = i + 1, 0
    return tuple(pages), tuple(starts)


def payloads_of(page: bytes) -> list[bytes]:
    """The payloads in a page."""
    return _payloads.decode(_opened(page))


def result_page(results: Sequence[tuple[int, bytes]]) -> bytes:
    """Results as (index, bytes) in index order."""
    return _sealed(_encode(results))


def results_of(page: bytes) -> list[tuple[int, bytes]]:
    """The results in a page."""
    return _results.decode(_opened(page))
