"""The page of a bucket queue in a real browser: sizes that move, and letters that are put back and removed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from tests.browser.visitor import Visitor, soon
from tests.server.live import Live, live

pytestmark = pytest.mark.real
EVIL = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path) as found:
        yield found


def test_letters_are_put_back_and_removed_by_buttons(server: Live, visitor: Visitor) -> None:
    with fairway.open(server.url, "events", kind="bucket") as q:
        q.put_many([b"a", b"b", b"c"])
        for _ in range(3):
            (lease,) = q.reserve(wait_seconds=30)
            q.fail(lease, EVIL, retry=False)
        until = time.monotonic() + 60
        while q.stats().dead < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
        page = visitor.go(server.url + "/")
        page.get_by_role("link", name="events").click()
        soon(page.locator("#n-dead")).to_have_text("3")
        soon(page.locator("tr[data-letter]")).to_have_count(3)
        assert EVIL in page.locator("tr[data-letter] code").first.inner_text()
        assert page.title() == "events · Fairway"
        page.locator("tr[data-letter]").first.get_by_role("button", name="Redrive").click()
        soon(page.locator("tr[data-letter]")).to_have_count(2)
        soon(page.locator("#n-ready")).to_have_text("1")
        page.locator("#purge-all").click()
        page.get_by_role("button", name="Go ahead").click()
        soon(page.locator("tr[data-letter]")).to_have_count(0)
        soon(page.locator("#n-dead")).to_have_text("0")
        assert q.stats().ready == 1
        q.put(b"more")
        soon(page.locator("#n-ready")).to_have_text("2")  # it looks again by itself
