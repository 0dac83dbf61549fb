"""The report of an audit in a real browser, opened from disk: nothing is complained of, and its pictures are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairway.spark.auditing.judging import Counts
from fairway.spark.auditing.report import write_report
from fairway.spark.auditing.summary import Summary
from tests.browser.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.real
NONE = dict.fromkeys(Counts.__dataclass_fields__, 0)
TIMES = ("wait_mean", "wait_p50", "wait_p95", "wait_p99", "run_p50", "run_p95", "run_p99")
SIZES = [384, 23, 14, 11, 9, 7, 6, 5, 5, 4, 3, 3, 2, 2, 1, 1]
WIDTHS = {"desk": 1280, "phone": 390}
_DRAWN = """() => {
  const size = (e) => e.getBoundingClientRect();
  const page = document.documentElement;
  return {
    bars: [...document.querySelectorAll(".bar")].map((e) => [size(e).width, size(e).height]),
    lines: [...document.querySelectorAll("path.line")].map((e) => [size(e).width, getComputedStyle(e).stroke]),
    overflow: page.scrollWidth - page.clientWidth,
  };
}"""


def summary(name: str, waits: list[float], jain: list[float | None]) -> Summary:
    """An audit as the demo has it: a whale and fifteen small tenants."""
    names = ["whale", *(f"small {i:02}" for i in range(1, len(SIZES)))]
    tenants = [
        {"tenant": who, "chunks": size, "completed": size, "retries": 0, "weight": 1.0, "lag": 0.5}
        | dict.fromkeys(TIMES, wait)
        for who, size, wait in zip(names, SIZES, waits, strict=True)
    ]
    windows = [
        {"at": 2.5 * at, "jain": value, "handed": 30, "per_second": 10.0 + at % 3, "lag": 1.0}
        for at, value in enumerate(jain)
    ]
    counts = Counts(**NONE | {"chunks": sum(SIZES), "completed": sum(SIZES)})
    return Summary(name, counts, tenants, len(tenants), windows, [], 2.5 * len(jain), 2.5)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = summary(
        "OldestFirst", [16.0, *[33.0 + i / 5 for i in range(15)]], [*[0.07] * 11, 0.4, None, None]
    )
    after = summary("Fair", [19.0, *[8.0 - i / 2 for i in range(15)]], [*[0.98] * 4, 0.9, *[None] * 9])
    checks = [(True, "Fair: 120,000 rows equal to plain Spark")]
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html", [before, after], checks=checks, note="Made up."
    )


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_opened_from_disk_draws_its_pictures(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    with Visitor(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as visitor:
        asked: list[str] = []
        visitor.page.on("request", lambda request: asked.append(request.url))
        page = visitor.page
        page.goto(report.as_uri())
        assert asked == [report.as_uri()], "it needs nothing else"
        assert page.locator("h1").inner_text()
        assert page.locator(".figure b").all_inner_texts() == ["0", "0", "0"]
        drawn = page.evaluate(_DRAWN)
        bars, lines = drawn["bars"], drawn["lines"]
        assert len(bars) == 2 * len(SIZES) and all(wide > 1 and high > 5 for wide, high in bars)
        assert max(wide for wide, _ in bars) > width / 5, "the longest is long"
        assert len(lines) == 4
        assert all(wide > width / 8 and stroke not in ("none", "rgba(0, 0, 0, 0)") for wide, stroke in lines)
        assert drawn["overflow"] <= 0, "nothing sticks out"
        visitor.check()


def test_every_tenant_can_be_seen_in_figures(visitor: Visitor, report: Path) -> None:
    page = visitor.page
    page.goto(report.as_uri())
    page.locator("summary").first.click()
    table = page.locator("details[open] table")
    assert table.locator("tr").count() == len(SIZES) + 1
    assert "whale" in table.inner_text()
