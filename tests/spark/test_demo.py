"""The demo on Spark: the whole pipeline in little, told in words, with a report and commands that work."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import fairway
from fairway.cli.audit import table
from fairway.cli.demo import concluding, dataset, telling
from fairway.cli.demo.pipeline import Served
from tests.spark.pipeline import patiently

# A busy machine takes its time over a Spark that starts.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

# -- the data set


@pytest.mark.parametrize("chunks", [dataset.CHUNKS_MIN, 480, dataset.CHUNKS_MAX])
def test_the_sizes_add_up_and_are_skewed(chunks: int) -> None:
    (whale, most), *small = dataset.sizes(chunks, seed=3)
    assert whale == "whale" and most + sum(size for _, size in small) == chunks
    assert len({name for name, _ in small}) == dataset.SMALL_TENANTS
    assert most > 0.7 * chunks and max(size for _, size in small) > 3 * min(size for _, size in small) > 0


def test_one_seed_is_one_data_set() -> None:
    assert dataset.sizes(480, 7) == dataset.sizes(480, 7) != dataset.sizes(480, 8)


@pytest.mark.parametrize("chunks", [dataset.CHUNKS_MIN - 1, dataset.CHUNKS_MAX + 1])
def test_a_size_out_of_bounds_is_refused(chunks: int) -> None:
    with pytest.raises(fairway.BadArgument, match="--chunks must be from"):
        dataset.sizes(chunks, 1)


# -- the verdict


def served(differing: int) -> Any:
    return Served("Fair", Path("fair.db"), None, 500, differing)  # pyright: ignore[reportArgumentType]


def shown(**counts: int) -> Any:
    told = dict.fromkeys(("lost", "duplicate", "stale", "disorder", "faults"), 0)
    return SimpleNamespace(
        name="Fair", counts=SimpleNamespace(**told | {"completed": 9, "chunks": 9} | counts)
    )


def test_all_as_promised_is_said_with_its_figures() -> None:
    assert concluding.problems([served(0)], [shown()]) == []
    assert "500 result rows equal to plain Spark" in concluding.verdict([served(0)], [shown()], 3.0)
    assert "lost 0, duplicate 0, stale 0" in concluding.verdict([served(0)], [shown()], 3.0)


@pytest.mark.parametrize(
    ("rows", "counts", "said"),
    [
        (3, {}, "3 rows differ from plain Spark"),
        (0, {"lost": 2, "faults": 2}, "lost 2, duplicate 0"),
        (0, {"stale": 1, "faults": 1}, "stale 1"),
        (0, {"completed": 8}, "8 of 9 chunks are completed"),
    ],
)
def test_whatever_is_not_as_promised_is_said(rows: int, counts: dict[str, int], said: str) -> None:
    verdict = concluding.verdict([served(rows)], [shown(**counts)], 3.0)
    assert verdict.startswith("[bold red]Not as promised:") and said in verdict


# -- what people read


def test_what_is_the_same_as_shown_is_called_so() -> None:
    assert [
        telling.ratio(then, now) for then, now in ((11.3, 11.34), (0.0, 0.0), (6.2, 1.0), (1.0, 3.0))
    ] == [
        "the same",
        "the same",
        "6.2 x less",
        "3.0 x more",
    ]


def test_a_tenant_of_the_audit_has_one_line_on_a_narrow_screen() -> None:
    times = {"wait_p50": 8.15, "wait_p99": 13.46, "run_p50": 0.72, "run_p99": 1.25}
    names = [f"small {n:02}" for n in range(1, 16)]
    rows = [
        times | {"tenant": name, "chunks": 25, "completed": 25, "retries": 0, "lag": 0.0} for name in names
    ]
    shown: Any = SimpleNamespace(name="default", tenants=rows)
    screen = Console(width=80, file=io.StringIO(), record=True)
    screen.print(table(shown))
    lines = screen.export_text().splitlines()
    assert [line[:8] for line in lines if line.startswith("small")] == names
    assert sum("8.15 s" in line for line in lines) == len(names)


def test_the_commands_to_play_on_with_can_be_read() -> None:
    for line in concluding.play_on(Path("fairway-demo")):
        assert line.count("'") in (0, 2), line


# -- the whole, by the command line


# The demo, and then what it tells one to type: in one process, because a Java that runs starts Spark sooner.
_RUNNER = """
import contextlib, io, json, os, shlex, sys
import fairway
from fairway.cli import app

def told(call):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = call()
    return [code, out.getvalue()]

def typed(line):
    program, *given = shlex.split(line)
    assert os.access(program, os.X_OK), line
    if os.path.basename(program) == "fairway":
        return told(lambda: app.run(given))
    option, code = given
    assert option == "-c" and os.path.samefile(program, sys.executable), line
    return told(lambda: exec(code, {"__name__": "__main__"}) or 0)

demo = told(lambda: app.run(["demo", "--chunks", "80", "--dir", "shown here"]))
lines = [line.removeprefix("  $ ") for line in demo[1].splitlines() if line.startswith("  $ ")]

def left(name):
    with fairway.open("shown here/" + name, create=False) as q:
        stats, states = q.stats(), {one.state for one in q.submissions()}
        return [stats.chunks_waiting, stats.chunks_leased, stats.chunks_dead, *sorted(states)]

rest = [left("oldest-first.db"), left("fair.db")]
with open("told.json", "w") as file:
    json.dump({"demo": demo, "rest": rest, "lines": lines, "typed": list(map(typed, lines[:3]))}, file)
"""


@dataclass(frozen=True)
class Told:
    """The smallest demo, in a folder with a space in its name: what it printed, and what its commands did."""

    folder: Path
    said: str
    rest: list[list[int | str]]  # what was left in each queue
    lines: list[str]
    typed: list[tuple[int, str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    home = tmp_path_factory.mktemp("home")

    def once() -> Told:
        command = [sys.executable, "-c", _RUNNER]
        ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=1700)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        found = json.loads((home / "told.json").read_text())
        assert found["demo"][0] == 0, found["demo"][1] + ran.stderr
        return Told(home / "shown here", found["demo"][1], found["rest"], found["lines"], found["typed"])

    return patiently(once)


def test_the_demo_compares_every_row_and_counts_no_fault(told: Told) -> None:
    said = " ".join(told.said.split())
    assert f"{2 * 80 * dataset.CHUNK_ROWS:,} result rows equal to plain Spark, row for row" in said
    assert "lost 0, duplicate 0, stale 0" in said
    for stage in ("OldestFirst: process", "Fair: process"):
        assert re.search(rf"^{stage} .* 80/80", told.said, re.MULTILINE)
    for row in ("whale", "small tenants, median", "Jain's index", "worst lag"):
        assert row in said


def test_the_report_shows_both_strategies(told: Told) -> None:
    text = (told.folder / "report.html").read_text()
    assert text.count("figure good") == 3 and "figure bad" not in text
    assert f"OldestFirst: {80 * dataset.CHUNK_ROWS:,} rows equal to plain Spark" in text
    assert f"Fair: {80 * dataset.CHUNK_ROWS:,} rows equal to plain Spark" in text
    for tenant, _ in dataset.sizes(80, 1):
        assert f"<b>{tenant}</b>" in text


def test_both_queues_are_left_at_rest(told: Told) -> None:
    assert told.rest == [[0, 0, 0, "completed"]] * 2


def test_the_commands_to_play_on_with_work(told: Told) -> None:
    assert len(told.lines) == 4 and "demo --embedded" in told.lines[3]  # told by tests/cli/test_demo.py
    assert [code for code, _ in told.typed] == [0, 0, 0]
    audited, collected, explained = (out for _, out in told.typed)
    assert "lost 0, duplicate 0, stale 0" in " ".join(audited.split())
    assert (told.folder / "audit.html").exists()
    whale = dataset.sizes(80, 1)[0][1] * dataset.CHUNK_ROWS
    assert re.search(rf"\| *whale\| *{whale}\|", collected), collected
    assert "whale" in explained and "'me'" in explained, explained
