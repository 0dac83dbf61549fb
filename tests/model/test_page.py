"""Pages of payloads: whatever a damaged file gives instead of one is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairway import limits
from fairway.errors import PayloadCorrupt
from fairway.model.page import cut_page, message_pages, payload_pages, payloads_in, payloads_of


def flipped(page: bytes) -> bytes:
    return page[:-1] + bytes([page[-1] ^ 1])


PAGE = message_pages(b"hello")[0]


@pytest.mark.parametrize("page", [flipped(PAGE), PAGE[:-1], b"", b"abc", -8234015, None, "text", 1.5])
def test_a_page_that_is_not_what_was_stored_is_refused(page: Any) -> None:
    """A bit that turns over in a record's header makes a number or a text of it."""
    assert payloads_of(PAGE) == payloads_in(PAGE) == [b"hello"]
    for opened in (payloads_of, payloads_in):
        with pytest.raises(PayloadCorrupt):
            opened(page)


@pytest.mark.parametrize(
    ("chunks", "about"), [(1000, limits.PAGE_BYTES), (10_000, 31_000), (100_000, limits.PAGE_BYTES_MAX)]
)
def test_the_pages_of_a_submission_are_small_until_there_are_many(chunks: int, about: int) -> None:
    payloads = [bytes(200)] * chunks
    pages, starts = payload_pages(payloads)
    assert all(0.95 * about < len(page) < 1.05 * about for page in pages[:-1])
    assert [payload for page in pages for payload in payloads_of(page)] == payloads
    assert len(pages) == len(starts) <= 1 + max(limits.PAYLOAD_PAGES, 205 * chunks // limits.PAGE_BYTES_MAX)


def test_a_cut_page_has_what_was_wanted_and_is_no_page_of_a_store() -> None:
    page = cut_page([b"a", b"b", b"c"], [0, 2])
    assert payloads_in(page) == {0: b"a", 2: b"c"}
    with pytest.raises(msgspec.ValidationError):
        payloads_of(page)
    with pytest.raises(PayloadCorrupt):
        payloads_in(flipped(page))
