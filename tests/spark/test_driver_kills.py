"""The driver, its JVM and the host of the queue are killed at each place between reserve and commit log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import fairway
from fairway.runtime.objects import read
from fairway.spark.batches import batch_of
from fairway.spark.codec import decode
from tests.spark.killing import MODES
from tests.spark.pipeline import BUSY, collected, numbers, submit

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]
ROOT = Path(__file__).resolve().parents[2]
CHUNKS, ROWS = 18, 10
# (place, how many times it is passed before): each falls between its own line and the next of a batch.
PLACES = [("reserved", 1), ("planning", 1), ("working", 1), ("committing", 0), ("committed", 0)]


@dataclass
class Kill:
    """What a kill left: the lines of its run, and the last batch in Spark's two logs."""

    lines: list[str]
    offsets: int
    commits: int


@dataclass
class Story:
    kills: dict[str, Kill]
    lines: list[str]
    folder: Path


def last(folder: Path) -> int:
    """The highest batch that a log of Spark's checkpoint has; -1: none."""
    return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)


def run(top: Path, place: str, left: int) -> dict[str, list[str]]:
    """Start the program; again if a Python worker of a busy machine was too slow for the JVM, and for nothing else."""
    command = [sys.executable, "-m", "tests.spark.killing", str(top), place, str(left), *MODES]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for _ in range(4):
        for mode in MODES:
            (top / mode / "log").write_text("")
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode == (0 if place == "none" else -9):
            return {mode: (top / mode / "log").read_text().splitlines() for mode in MODES}
        if BUSY not in done.stderr.rpartition("Traceback (most recent call last)")[2]:
            break
    raise AssertionError(f"{place}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """A queue and a checkpoint for each mode through five kills, and then to the end: six drivers in all."""
    top = tmp_path_factory.mktemp("killed")
    told = {mode: Story({}, [], top / mode) for mode in MODES}
    for story in told.values():
        story.folder.mkdir()
        for tenant in range(3):
            part = numbers(CHUNKS, ROWS)[tenant * CHUNKS // 3 : (tenant + 1) * CHUNKS // 3]
            submit(str(story.folder / "q.db"), part, tenant=f"t{tenant}")
    for place, left in PLACES:
        lines = run(top, place, left)
        for mode, story in told.items():
            logs = story.folder / "q.db-spark"
            story.kills[place] = Kill(lines[mode], last(logs / "offsets"), last(logs / "commits"))
    lines = run(top, "none", 0)
    return {mode: replace(story, lines=lines[mode]) for mode, story in told.items()}


@pytest.fixture(params=MODES)
def story(stories: dict[str, Story], request: pytest.FixtureRequest) -> Story:
    return stories[request.param]


def test_killed_between_reserve_and_offset_log(story: Story) -> None:
    kill = story.kills["reserved"]
    assert kill.lines[-1].startswith("reserved"), kill.lines
    assert kill.offsets == kill.commits, "Spark had not noted the offset yet"
    seq = kill.lines[-1].split()[1]
    following = story.kills["planning"].lines
    assert following[0] == f"reserved {seq}", "the same start gives the same seq"


def test_killed_between_offset_log_and_partitions(story: Story) -> None:
    kill = story.kills["planning"]
    assert kill.lines[-1].startswith("planning"), kill.lines
    assert kill.offsets == kill.commits + 1, "Spark had noted the offset"
    assert story.kills["working"].lines[0] == kill.lines[-1], "only partitions comes again"


def test_killed_between_partitions_and_sink_commit(story: Story) -> None:
    kill = story.kills["working"]
    assert kill.lines[-1] == "working", kill.lines
    before = [line.split()[0] for line in kill.lines]
    assert before[len(before) - before[::-1].index("planning") :].count("committing") == 0
    assert kill.offsets == kill.commits + 1


def test_killed_between_tasks_and_completion(story: Story) -> None:
    kill = story.kills["committing"]
    assert kill.lines[-1].startswith("committing"), kill.lines
    assert kill.offsets == kill.commits + 1


def test_killed_between_completion_and_commit_log(story: Story) -> None:
    kill = story.kills["committed"]
    assert kill.lines[-1].startswith("committed"), kill.lines
    assert kill.offsets == kill.commits + 1, "Spark had not noted the commit yet"
    assert kill.lines[-1] in story.lines, "the batch is committed again, under the same number"


def test_every_row_is_in_the_result_exactly_once(story: Story) -> None:
    url = str(story.folder / "q.db")
    with fairway.open(url) as q:
        assert {one.state for one in q.submissions()} == {"completed"}
        assert sum(one.done for one in q.submissions()) == CHUNKS
        assert list(q.dead()) == []
    if story.folder.name == "references":
        assert collected(url) == Counter(range(CHUNKS * ROWS))
        return
    # The state of a groupBy().count() after its last batch: each row was added once.
    assert last_counts(url) == Counter(x % 7 for x in range(CHUNKS * ROWS))


def last_counts(url: str) -> Counter[int]:
    """What the last batch of a count in the output mode complete says."""
    found: dict[int, list[str]] = {}
    with fairway.open(url) as q:
        for one in q.submissions():
            for result in q.results(one.id):
                batch = batch_of(result.data)
                assert batch is not None
                if batch.objects:
                    assert found.setdefault(batch.number, batch.objects) == batch.objects, "registered once"
    counts: Counter[int] = Counter()
    for name in found[max(found)]:
        table = decode(read(name), "a result").to_pydict()
        counts.update(dict(zip(table["k"], table["count"], strict=True)))
    return counts
