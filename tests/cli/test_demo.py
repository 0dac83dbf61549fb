"""The demo without Spark: a whole story, right figures, claims that are checked, commands that can be used."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

import fairway
from fairway import Event, Fair, OldestFirst
from fairway.cli import app, sparkling
from fairway.cli.demo import following, run, telling
from fairway.cli.demo.embedded import QUICK_CHUNKS
from fairway.cli.demo.racing import Run, _Desk, race
from fairway.cli.demo.story import CHUNKS_MAX, CHUNKS_MIN, WHALE, Arrival, story
from fairway.cli.demo.waits import waits_of

# -- the story


@pytest.mark.parametrize("chunks", [CHUNKS_MIN, QUICK_CHUNKS, 1_000_000, CHUNKS_MAX])
def test_a_story_has_a_whale_and_twenty_small_tenants_and_all_the_chunks(chunks: int) -> None:
    whale, *small = story(chunks, seed=3)
    assert whale.tenant == WHALE and whale.after == 0
    assert len({arrival.tenant for arrival in small}) == 20
    assert whale.chunks + sum(arrival.chunks for arrival in small) == chunks
    assert 0.85 * chunks < whale.chunks < 0.95 * chunks
    assert max(a.chunks for a in small) > 8 * min(a.chunks for a in small) > 0
    assert {arrival.after for arrival in small} == {chunks // 100}


def test_one_seed_is_one_story() -> None:
    assert story(100_000, 7) == story(100_000, 7) != story(100_000, 8)


@pytest.mark.parametrize("chunks", [CHUNKS_MIN - 1, CHUNKS_MAX + 1, -1])
def test_a_story_out_of_bounds_is_refused(chunks: int) -> None:
    with pytest.raises(fairway.BadArgument, match="chunks"):
        story(chunks, 1)


@pytest.mark.parametrize("how", [[], ["--embedded"]])
def test_no_chunks_are_out_of_bounds_too(
    how: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["demo", "--chunks", "0", "--dir", str(tmp_path), *how]) == 1
    assert "--chunks must be from" in capsys.readouterr().err


# -- the figures


def submitted(id: int, tenant: str, chunks: int, time: float) -> Event:
    return Event(0, "submitted", time, id, 0, chunks, tenant=tenant)


def reserved(id: int, start: int, count: int, time: float) -> Event:
    return Event(0, "reserved", time, id, start, count)


def test_waiting_is_counted_in_chunks_handed_out_to_anybody_since_the_submit() -> None:
    log = [
        submitted(1, WHALE, 4, 10.0),
        reserved(1, 0, 2, 11.0),  # waited 0 and 1
        submitted(2, "small", 2, 12.0),
        reserved(1, 2, 1, 13.0),  # 2
        reserved(2, 0, 1, 14.0),  # 1
        reserved(1, 3, 1, 15.0),  # 4
        reserved(2, 1, 1, 17.0),  # 3
        Event(0, "completed", 18.0, 2, 0, 2),
    ]
    waits = waits_of(log, 2)
    whale, small = waits.by_tenant[WHALE], waits.by_tenant["small"]
    assert (whale.mean_work, small.mean_work) == ((0 + 1 + 2 + 4) / 4, (1 + 3) / 2)
    assert (whale.mean_seconds, small.mean_seconds) == ((1 + 1 + 3 + 5) / 4, (2 + 5) / 2)
    assert waits.seconds == 7.0
    assert sorted(waits.shares) == [1, 2]  # until the whale was handed its last chunk


def test_the_middle_and_the_worst_are_those_of_the_small_tenants() -> None:
    log = [submitted(1, WHALE, 1, 0.0), *(submitted(id, f"small {id}", 1, 0.0) for id in (2, 3, 4))]
    log += [reserved(id, 0, 1, float(id)) for id in (1, 2, 3, 4)]
    assert waits_of(log, 4).means(WHALE) == (0, 2, 3)
    assert waits_of(log, 4).means(WHALE, in_seconds=True) == (1, 3, 4)


@pytest.mark.parametrize(("order", "jain"), [("ababab", 1.0), ("aaaaaa", 0.5), ("aab", 0.9)])
def test_jains_index_of_what_each_got_while_all_waited(order: str, jain: float) -> None:
    log = [submitted(1, "a", 7, 0.0), submitted(2, "b", 7, 0.0)]
    log += [reserved(1 if tenant == "a" else 2, 0, 1, 0.0) for tenant in order]
    assert waits_of(log, 2).jain == pytest.approx(jain)


# -- a run


def quietly(chunks: int, tenants: int) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    arrivals = story(QUICK_CHUNKS, 1)
    oldest = race(folder / "oldest.db", OldestFirst(), arrivals, quietly)
    return oldest, race(folder / "fair.db", Fair(), arrivals, quietly)


def test_a_run_completes_every_chunk_once_and_leaves_nothing(runs: tuple[Run, Run]) -> None:
    for ran in runs:
        assert ran.problems == ()
        assert sum(wait.handed for wait in ran.waits.by_tenant.values()) == QUICK_CHUNKS
        assert all(wait.handed == wait.chunks for wait in ran.waits.by_tenant.values())


def test_oldest_first_gives_the_whale_everything_and_fair_gives_equal_shares(runs: tuple[Run, Run]) -> None:
    oldest, fair = runs
    assert oldest.waits.jain == pytest.approx(1 / 21)
    assert fair.waits.jain > 0.99
    assert fair.waits.means(WHALE)[1] * 10 < oldest.waits.means(WHALE)[1]
    assert fair.waits.means(WHALE)[2] * 3 < oldest.waits.means(WHALE)[2]


def test_every_chunk_and_every_small_tenant_is_told_once(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    race(tmp_path / "fair.db", Fair(), story(CHUNKS_MIN, 1), lambda *news: told.append(news))
    assert sum(chunks for chunks, _ in told) == CHUNKS_MIN
    assert sum(tenants for _, tenants in told) == 20


def test_a_consumer_that_fails_ends_the_run(tmp_path: Path) -> None:
    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1
        if counted == 3:
            raise RuntimeError("the third batch")
        if 3 < counted < 1000:
            time.sleep(0.05)  # whoever is to hear of it may be slow

    with pytest.raises(RuntimeError, match="the third batch"):
        race(tmp_path / "fair.db", Fair(), story(1_000_000, 1), count)
    assert counted < 1000  # of 10,000


def test_a_run_that_is_not_what_it_should_be_says_so() -> None:
    with fairway.open(":memory:") as queue:
        desk = _Desk(queue, Fair(), [Arrival(WHALE, 5, 0)], quietly)
        desk._greet()
        queue.complete(queue.reserve(max=3))  # behind the desk's back
        problems = "\n".join(desk.problems())
    assert "5 chunks were not completed exactly once" in problems
    assert "is active with 3 of 5 done" in problems
    assert "not at rest" in problems and "chunks_waiting=2" in problems


def test_a_problem_is_said_and_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_Desk, "problems", lambda self: ["chunk 3 was lost"])
    assert run(embedded=True, quick=True, dir=tmp_path) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Not as promised: OldestFirst: chunk 3 was lost; Fair: chunk 3 was lost" in said
    assert "Checked" not in said


# -- the whole


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A quick demo by the command line, in a folder with a space in its name, and what it printed."""
    home = tmp_path_factory.mktemp("home")
    command = [
        Path(sys.executable).with_name("fairway"),
        "demo",
        "--embedded",
        "--quick",
        "--dir",
        "shown here",
    ]
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return home, ran.stdout


def test_the_demo_tells_its_story(told: tuple[Path, str]) -> None:
    out = told[1]
    said = " ".join(out.split())
    assert "A whale submits 18,000 chunks" in said
    assert "each of the 20,000 chunks was completed exactly once" in said
    for strategy in ("OldestFirst", "Fair"):
        assert re.search(rf"^{strategy} .* 100% .*[\d,]+ chunks/s 20/20 small", out, re.MULTILINE)
    for group in ("whale", "small tenants, median", "small tenants, worst", "Jain's index"):
        assert group in out


def test_the_picture_is_drawn_twice(told: tuple[Path, str]) -> None:
    folder = told[0] / "shown here"
    assert (folder / "fairness.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "fairness.svg").read_text()[:1000]


def test_the_three_commands_to_play_on_with_work(told: tuple[Path, str]) -> None:
    home, out = told
    commands = [line.removeprefix("  $ ") for line in out.splitlines() if line.startswith("  $ ")]
    assert len(commands) == 3
    for command in commands:
        ran = subprocess.run(command, shell=True, cwd=home, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0 and ran.stdout.strip(), (command, ran.stderr)


def test_a_second_demo_replaces_the_first_and_tells_programs_what_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for as_json in (False, True):
        capsys.readouterr()
        assert run(embedded=True, quick=True, dir=tmp_path, json=as_json) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["chunks"] == QUICK_CHUNKS and told["problems"] == []
    oldest, fair = told["strategies"]
    assert (oldest["name"], fair["name"]) == ("OldestFirst", "Fair") and fair["jain"] > oldest["jain"]
    assert fair["wait_seconds"]["small_worst"] < oldest["wait_seconds"]["small_median"]
    assert "Checked" in said.err, "what is to be watched is on standard error"
    with fairway.open(tmp_path / "fair.db") as queue:
        assert len(list(queue.submissions())) == 21


def test_a_file_that_is_no_queue_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fair.db").write_text("my own notes")
    with pytest.raises(fairway.NotFairway):
        run(embedded=True, quick=True, dir=tmp_path)
    assert (tmp_path / "fair.db").read_text() == "my own notes"


def test_without_matplotlib_it_says_how_to_get_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "fairway.cli.demo.picture", raising=False)
    assert run(embedded=True, quick=True, dir=tmp_path) == 0
    assert "pip install 'fairway[plots]'" in " ".join(capsys.readouterr().out.split())
    assert not list(tmp_path.glob("fairness.*"))


def test_the_table_fits_eighty_columns(runs: tuple[Run, Run]) -> None:
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(telling.table(*runs))
    assert "…" not in captured.get()
    assert max(map(len, captured.get().splitlines())) <= 80


def test_a_stage_that_counts_nothing_shows_no_count() -> None:
    console = Console(width=80, file=io.StringIO())
    progress = following.bars(console)
    progress.add_task("Fair: process", total=480, completed=96)
    with following.stage(progress, "warm up"):
        console.print(progress.make_tasks_table(progress.tasks))
    console.print(progress.make_tasks_table(progress.tasks))
    shown = cast("io.StringIO", console.file).getvalue()
    assert " 96/480 " in shown and "0/?" not in shown and "1/1" not in shown


def test_without_spark_it_says_how_to_get_it_and_tells_the_story_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fairway.cli.sparkling.find_spec", lambda name: None)
    assert run(quick=True, dir=tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "runs on Spark, and pyspark is not installed: `pip install 'fairway[spark]'`" in said
    assert "each of the 20,000 chunks was completed exactly once" in said


def test_without_spark_the_audit_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fairway.cli.sparkling.find_spec", lambda name: None)
    assert app.run(["audit", "work.db"]) == app.FAILED
    assert "pip install 'fairway[spark]'" in " ".join(capsys.readouterr().err.split())


def test_without_java_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("fairway.spark.java.find", lambda: None)
    assert "Java 17" in str(sparkling.missing())
