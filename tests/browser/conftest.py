"""A browser for the tests of one module, and the gate for machines without one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session", autouse=True)
def needs_browser() -> None:
    if chromium() is None:
        if os.environ.get("FAIRWAY_REQUIRE_BROWSER") == "1":
            pytest.fail("FAIRWAY_REQUIRE_BROWSER=1, and there is no Chromium; `make system` installs one")
        pytest.skip("needs a browser: no Chromium here")


@pytest.fixture(scope="module")
def browser(needs_browser: None) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    # Chromium's sandbox does not work for root, nor where namespaces are forbidden.
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield made
        made.close()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Somebody at a desk; the test fails if the browser complained."""
    with Visitor(browser) as made:
        yield made
        made.check()
