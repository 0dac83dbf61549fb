"""Pages of payloads: whatever a damaged file gives instead of one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.errors import PayloadCorrupt
from fairway.model.page import message_pages, payloads_of


def flipped(page: bytes) -> bytes:
    return page[:-1] + bytes([page[-1] ^ 1])


PAGE = message_pages(b"hello")[0]


@pytest.mark.parametrize("page", [flipped(PAGE), PAGE[:-1], b"", b"abc", -8234015, None, "text", 1.5])
def test_a_page_that_is_not_what_was_stored_is_refused(page: Any) -> None:
    """A bit that turns over in a record's header makes a number or a text of it."""
    assert payloads_of(PAGE) == [b"hello"]
    with pytest.raises(PayloadCorrupt):
        payloads_of(page)
