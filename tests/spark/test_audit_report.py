"""The report: one file that needs nothing else, says what is wrong in big figures, and escapes what it is told."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import BadArgument
from fairway.spark.auditing.judging import Counts
from fairway.spark.auditing.pictures import lines, round_up, seconds
from fairway.spark.auditing.report import headline, page, write_report
from fairway.spark.auditing.summary import Summary

NONE = dict.fromkeys(Counts.__dataclass_fields__, 0)
TIMES = ("wait_p50", "wait_p95", "wait_p99", "run_p50", "run_p95", "run_p99")


def tenant(name: str, chunks: int, wait: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {"tenant": name, "chunks": chunks, "completed": chunks, "retries": 0, "weight": 1.0}
    return row | {"wait_mean": wait, "lag": 0.5, **dict.fromkeys(TIMES, wait)}


def shown(name: str, waits: dict[str, float | None], **counts: int) -> Summary:
    rows = [tenant(who, 100 - i, wait) for i, (who, wait) in enumerate(waits.items())]
    windows = [
        {"at": float(at), "jain": jain, "handed": 4, "per_second": 2.0 * at, "lag": 0.25 * at}
        for at, jain in enumerate([None, 1.0, 0.5])
    ]
    return Summary(name, Counts(**NONE | {"completed": 30} | counts), rows, len(rows), windows, [], 3.0, 1.0)


OLDEST = shown("OldestFirst", {"whale": 2.0, "a": 8.0, "b": 10.0})
FAIR = shown("Fair", {"whale": 5.0, "a": 1.0, "b": 3.5})


class Tags(HTMLParser):
    """Every tag with its attributes; those that are closed must have been opened."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "line", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "path"):
            assert self.open.pop() == tag


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def test_the_report_needs_nothing_from_outside(tmp_path: Path) -> None:
    text = write_report(tmp_path / "new" / "report.html", [OLDEST, FAIR]).read_text()
    tags = parsed(text)
    assert not {tag for tag, _ in tags.tags} & {"script", "link", "img", "iframe", "object"}
    assert not [
        a for _, attrs in tags.tags for a in attrs if a in ("src", "href", "xlink:href") or a.startswith("on")
    ]
    assert not re.search(r"url\(|@import|https?://", text)


def test_it_is_made_for_light_and_dark_and_a_phone() -> None:
    text = page([FAIR], "t", (), "")
    assert "prefers-color-scheme: dark" in text and "max-width: 34rem" in text
    assert 'name="viewport" content="width=device-width' in text


@pytest.mark.parametrize("kind", ["lost", "duplicate", "stale", "disorder"])
def test_a_fault_is_a_big_red_figure(kind: str) -> None:
    good, bad = page([FAIR], "t", (), ""), page([shown("Fair", {"a": 1.0}, **{kind: 7})], "t", (), "")
    assert "figure bad" not in good and good.count("figure good") == 3
    assert f"<b>7</b><span>{kind}</span>" in bad and bad.count("figure bad") == 1


def test_a_queue_that_had_no_chunk_has_a_report_too() -> None:
    """Submissions of no chunks are allowed, and a queue may have no other."""
    none = Summary("x", Counts(**NONE), [], 0, [], [], 0.0, 1.0)
    for summaries in ([none], [none, none]):
        text = page(summaries, "t", (), "")
        parsed(text)
        assert "0 chunks of 0 tenants" in text and "Largest tenant" not in text
        assert headline(summaries) == "0 chunks, none lost, none twice, none stale"


def test_the_figures_add_up_over_the_audits() -> None:
    both = [shown("x", {"a": 1.0}, lost=2), shown("y", {"a": 1.0}, lost=3)]
    assert "<b>5</b><span>lost</span>" in page(both, "t", (), "")
    assert headline(both) == "5 chunks are not as promised"


def test_the_headline_says_what_fairness_did() -> None:
    # The medians of the others: 9 s and 2.25 s.
    assert headline([OLDEST, FAIR]) == "Under Fair small tenants waited 4.0 times less than under OldestFirst"
    assert headline([FAIR]) == headline([FAIR, OLDEST]) == "30 chunks, none lost, none twice, none stale"


def test_the_longest_wait_has_the_longest_bar() -> None:
    widths = re.findall(r'class="bar s(\d)" style="width:([\d.]+)%"', page([OLDEST, FAIR], "t", (), ""))
    assert widths == [
        ("0", "20.00"),
        ("1", "50.00"),
        ("0", "80.00"),
        ("1", "10.00"),
        ("0", "100.00"),
        ("1", "35.00"),
    ]


def test_a_line_is_as_high_as_its_values_and_has_gaps() -> None:
    drawn = lines([("x", [(0.0, 0.5), (1.0, None), (2.0, 1.0)], 1.0)], 1.0, "")
    assert 'd="M0.00,50.00 L33.33,50.00 M66.67,0.00 L100.00,0.00"' in drawn


def test_names_are_escaped() -> None:
    evil = "<script>alert('x')</script>&\""
    text = page([shown(evil, {evil: 1.0, "": None})], evil, [(False, evil)], evil)
    assert "<script" not in text and "&lt;script&gt;" in text
    parsed(text)


def test_a_check_that_failed_looks_like_one() -> None:
    text = page([FAIR], "t", [(True, "all rows are equal"), (False, "3 rows differ")], "")
    assert "<li>all rows are equal</li><li class=wrong>3 rows differ</li>" in text


def test_more_tenants_than_fit_are_told_of() -> None:
    many = Summary("x", FAIR.counts, FAIR.tenants, 1_003, [], [], 1.0, 1.0)
    assert "And 1,000 smaller tenants." in page([many], "t", (), "")


def test_the_averages_weigh_windows_by_what_was_handed_out() -> None:
    windows = [{"jain": 1.0, "handed": 30, "lag": 0.1}, {"jain": 0.5, "handed": 10, "lag": 2.0}]
    assert Summary("x", FAIR.counts, [], 0, windows, [], 1.0, 1.0).jain == pytest.approx(0.875)
    assert Summary("x", FAIR.counts, [], 0, windows, [], 1.0, 1.0).lag == 2.0
    assert Summary("x", FAIR.counts, [], 0, [], [], 1.0, 1.0).jain is None


@pytest.mark.parametrize(
    ("value", "told"), [(0, "0 s"), (0.0123, "12 ms"), (3.14, "3.1 s"), (600, "10.0 min"), (9000, "2.5 h")]
)
def test_times_are_told_as_a_person_says_them(value: float, told: str) -> None:
    assert seconds(value) == told


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.3, 0.4), (1, 1), (25, 40), (41, 60), (61, 80), (90, 100), (400, 400)]
)
def test_the_scale_ends_at_a_round_number(value: float, top: float) -> None:
    assert round_up(value) == pytest.approx(top)


@pytest.mark.parametrize(
    ("long", "told"),
    [
        (28.2, ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s"]),
        (12.4, ["0 s", "5 s", "10 s"]),
        (3.0, ["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s", "3 s"]),
        (0.05, ["0 s", "0.01 s", "0.02 s", "0.03 s", "0.04 s", "0.05 s"]),
    ],
)
def test_times_below_a_picture_are_round_and_stand_where_they_are(long: float, told: list[str]) -> None:
    drawn = lines([("x", [(0.0, 1.0)], long)], 1.0, "")
    found = re.findall(r'<span style="left:([\d.]+)%">([^<]+)</span>', drawn)
    assert [text for _, text in found] == told
    for left, text in found:
        assert float(left) == pytest.approx(100 * float(text.split()[0]) / long, abs=0.01)


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadArgument, match="cannot be written"):
        write_report(tmp_path / "file" / "report.html", [FAIR])
    with pytest.raises(BadArgument, match="1 to 4 audits"):
        write_report(tmp_path / "x.html", [])
