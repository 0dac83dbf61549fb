"""A visitor: a window of a browser that remembers every complaint."""

from __future__ import annotations

from typing import Any, Self

from playwright.sync_api import Browser, Locator, Page, expect

PATIENCE_MS = 30_000  # two busy cores are slow
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => {
  window.violations.push(`${e.violatedDirective} ${e.blockedURI}`);
});
"""


class Visitor:
    """One window with a cookie jar of its own."""

    def __init__(self, browser: Browser, **settings: Any) -> None:
        settings.setdefault("viewport", {"width": 1280, "height": 900})
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(_WATCH)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.page.on("console", lambda said: self._heard(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in self.expected):
            self.complaints.append(f"{kind}: {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def go(self, url: str) -> Page:
        answer = self.page.goto(url)
        assert answer is not None
        self.status = answer.status
        return self.page

    def check(self) -> None:
        """Nothing was said on the console, and the policy was never broken."""
        assert self.complaints == []
        assert self.page.evaluate("window.violations || []") == []

    def live(self) -> None:
        """Until the page is connected to its stream."""
        soon(self.page.locator("#live.on")).to_be_visible()


def soon(place: Locator):  # type: ignore[no-untyped-def]
    """What is expected to become true, with patience for a busy machine."""
    return expect(place)


expect.set_options(timeout=PATIENCE_MS)
