"""What `make bench` writes into a page: the region of each bench, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools import bench

PAGE = "# Page\n\nBefore.\n\n<!-- bench:one:begin -->\nold\n<!-- bench:one:end -->\n\nAfter, by hand.\n"
FOUND: dict[str, Any] = {
    "bench": "one",
    "date": "2026-11-16 12:00",
    "seconds": 12.3,
    "load": [0.5, 1.5],
    "stolen": 0.126,
    "commit": "0123456",
    "machine": "2 cores, some model",
    "versions": {"Fairway": "0.1.0", "redis": "7.0"},
    "options": {},
    "notes": ["Left out here: nothing."],
    "tables": [
        {"title": "Rates", "columns": ["what", "a second"], "rows": [["a|b", 1]], "shown": [["a|b", "1"]]}
    ],
}


def test_a_region_is_replaced_and_the_prose_around_it_stays() -> None:
    made = bench.put(PAGE, "one", "| new |")
    assert made == PAGE.replace("\nold\n", "\n\n| new |\n\n")
    assert bench.put(made, "one", "| new |") == made


def test_a_region_says_when_where_with_what_and_under_which_load() -> None:
    text = bench.region(FOUND)
    for said in (
        "2026-11-16 12:00 UTC at commit 0123456",
        "2 cores, some model",
        "Fairway 0.1.0, redis 7.0",
        "load 0.5 before and 1.5 after, 13% of the cores' time taken by others",
    ):
        assert said in text
    assert "Rates:\n\n| what | a second |\n|---|---|\n| a\\|b | 1 |" in text
    assert text.endswith("Left out here: nothing.")


def test_the_table_of_a_full_run_is_not_written_over_by_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = bench.names()[0]
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("bench:one", f"bench:{name}"))
    monkeypatch.setattr(bench, "FOUND", tmp_path)

    def found(date: str, *asked: str, full: bool) -> str:
        run = {**FOUND, "bench": name, "date": date, "options": {"full": full}}
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
        assert bench.main([name, "--found", "--page", str(page), *asked]) == 0
        return page.read_text()

    assert "on Monday" in found("Monday", full=False)
    assert "--full` on Tuesday" in found("Tuesday", full=True)
    assert "on Tuesday" in found("Wednesday", full=False) and "kept" in capsys.readouterr().out
    assert "on Thursday" in found("Thursday", full=True)
    assert "on Friday" in found("Friday", "--force", full=False)


def test_a_table_is_not_written_over_by_one_that_lacks_a_peer_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = bench.names()[0]
    page = tmp_path / "page.md"
    had = "| beanstalkd | 1 |\n\nLeft out here: opsqueue (no opsqueue).\n"
    page.write_text(PAGE.replace("bench:one", f"bench:{name}").replace("old\n", had))
    before = page.read_text()
    lacks = {"beanstalkd": "no beanstalkd: apt-get install beanstalkd", "opsqueue": "no opsqueue"}
    (tmp_path / f"{name}.json").write_text(json.dumps({**FOUND, "bench": name, "left_out": lacks}))
    monkeypatch.setattr(bench, "FOUND", tmp_path)
    asked = [name, "--found", "--page", str(page)]
    assert bench.main(asked) == 1
    said = capsys.readouterr().out
    assert "KEPT" in said and "apt-get install beanstalkd" in said and "no opsqueue" not in said
    assert page.read_text() == before
    assert bench.main([*asked, "--force"]) == 0 and "some model" in page.read_text()
    assert bench.main(asked) == 0, "a peer that was never there is not missed"


@pytest.mark.parametrize(
    "page", ["no region", PAGE + PAGE, PAGE.replace("begin", "x").replace("end", "begin")]
)
def test_a_page_without_one_region_is_not_touched(page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(page)
    with pytest.raises(SystemExit, match="bench:one:begin"):
        bench.write(file, FOUND)
    assert file.read_text() == page


def test_the_page_of_performance_has_one_region_for_every_bench() -> None:
    page = (bench.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert sorted(bench.regions(page)) == bench.names()
    for name in bench.names():
        bench.put(page, name, "")


def test_what_was_found_last_is_written_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = bench.names()[0]
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("bench:one", f"bench:{name}"))
    (tmp_path / f"{name}.json").write_text(json.dumps({**FOUND, "bench": name}))
    monkeypatch.setattr(bench, "FOUND", tmp_path)
    assert bench.main([name, "--found", "--page", str(page)]) == 0
    assert "2 cores, some model" in page.read_text() and "After, by hand." in page.read_text()
    other = bench.names()[1]
    assert bench.main([other, "--found", "--page", str(page)]) == 1
    assert f"FAILED: {other}" in capsys.readouterr().out


def test_a_name_that_is_no_bench_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        bench.main(["nosuch"])
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert "nosuch" in said and all(name in said for name in bench.names())


def test_what_is_said_of_the_aims_of_the_server_is_what_its_table_says() -> None:
    page = (bench.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    said = page[page.index("By 64 it is") : page.index("Beside an opsqueue")]
    table = page[page.index("<!-- bench:server:begin -->") : page.index("<!-- bench:server:end -->")]
    cells = {cell.strip() for line in table.splitlines() for cell in line.split("|")}
    rates = re.findall(r"([\d,]+)/s", said)
    assert len(rates) == 3 and set(rates) <= cells
    for times in (told := re.findall(r"([\d.]+) times: that aim", said)):
        digits = len(times.partition(".")[2])
        assert times in {
            f"{float(cell[:-2].replace(',', '')):.{digits}f}" for cell in cells if cell.endswith(" x")
        }
    assert len(told) == 2
