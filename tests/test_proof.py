"""The long runs leave their figures: a row for each, whether it passed, and a table of them all in the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairway.cli.verify import verify
from fairway.testing.checker import check_history
from fairway.testing.history import BadHistory, load
from fairway.testing.simulate import simulate
from tests.test_gates import Project
from tools import proof

PAGE = f"# Reliability\n\nBefore.\n\n{proof.BEGIN}\nold\n{proof.END}\n\nAfter.\n"
STORMS = """
    import pytest

    @pytest.mark.proof
    def test_storm(record_proof):
        record_proof("{name}", operations=1000, faults=7, lost={lost}, seed=3)
        assert {lost} == 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two long runs, one of which fails, and the tools that gather them."""
    made = Project(tmp_path)
    for name in ("proof.py", "proof.sh"):
        made.write(f"tools/{name}", (proof.ROOT / "tools" / name).read_text(encoding="utf-8"))
    made.write("docs/reliability.md", PAGE)
    made.write("tests/a/test_bad.py", STORMS.format(name="A bad storm", lost=2))
    made.write("tests/b/test_good.py", STORMS.format(name="A good storm", lost=0))
    made.write(".venv/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return made


def rows(project: Project) -> dict[str, dict]:
    return {row["name"]: row for row in proof.rows_of(project.root / "docs" / "histories" / "rows")}


def test_all_long_runs_are_made_though_one_fails_and_the_page_has_their_table(project: Project) -> None:
    command = ["sh", str(project.root / "tools" / "proof.sh"), "tests"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == "Failed: tests/a/test_bad.py", run.stdout
    found = rows(project)
    assert {name: (row["lost"], row["passed"]) for name, row in found.items()} == {
        "A bad storm": (2, False),
        "A good storm": (0, True),
    }
    page = (project.root / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert "| A bad storm **failed** | 1,000 | 7 | 2 |" in page
    assert "| **all** | **2,000** | **14** | **2** |" in page
    assert (
        page.startswith("# Reliability\n\nBefore.\n") and page.endswith("\n\nAfter.\n") and "old" not in page
    )


def test_a_short_form_leaves_no_row(project: Project) -> None:
    project.write(
        "tests/a/test_bad.py", STORMS.format(name="Short", lost=0).replace("@pytest.mark.proof", "")
    )
    assert project.run("tests/a").returncode == 0
    assert not rows(project)


def test_a_row_says_where_it_comes_from_and_replaces_the_last_one(tmp_path: Path) -> None:
    for operations in (1, 2):
        path = proof.write_row(
            "Kills, of a kind", operations=operations, faults=3, lost=0, seconds=4, seed=5, folder=tmp_path
        )
    assert path.name == "kills-of-a-kind.json"
    (row,) = proof.rows_of(tmp_path)
    assert (row["operations"], row["faults"], row["seed"]) == (2, 3, "5")
    assert row["commit"] and row["date"][:2] == "20" and "cores" in row["machine"]


def test_a_simulation_is_a_row(tmp_path: Path) -> None:
    told = {"seeds": 20, "calls": 900, "faults": {"crash": 4, "jump": 2}, "failing": [7], "seconds": 1.4}
    proof.write_simulated("simulated histories", json.loads(json.dumps(told)), tmp_path)
    (row,) = proof.rows_of(tmp_path)
    assert (row["operations"], row["faults"], row["lost"], row["passed"]) == (900, 6, 1, False)


def test_the_history_of_a_run_lies_beside_the_page_and_can_be_checked_again(tmp_path: Path) -> None:
    told = simulate(7).recorder.history()
    proof.write_row(
        "A storm", operations=1, lost=0, seconds=1, history=told, folder=tmp_path, histories=tmp_path / "kept"
    )
    (row,) = proof.rows_of(tmp_path)
    assert "| A storm [history](histories/a-storm.jsonl.xz) |" in proof.table([row])
    found = load(tmp_path / "kept" / row["history"])
    assert found.lines == told.lines and check_history(found) == []
    (tmp_path / "cut.xz").write_bytes((tmp_path / "kept" / row["history"]).read_bytes()[:-9])
    with pytest.raises(BadHistory, match="cannot be unpacked"):
        load(tmp_path / "cut.xz")


@pytest.mark.parametrize("path", sorted(proof.HISTORIES.glob("*.xz")), ids=lambda path: path.name)
def test_every_published_history_stands_the_check(path: Path) -> None:
    assert verify(path) == 0


def test_the_table_of_the_page_is_that_of_its_rows() -> None:
    page = proof.PAGE.read_text(encoding="utf-8")
    assert proof.filled(page, proof.rows_of(proof.ROWS)) == page, "run python -m tools.proof"


def test_a_page_without_its_marks_is_left_alone() -> None:
    with pytest.raises(SystemExit):
        proof.filled("# Reliability\n", [])


def test_the_page_of_the_project_has_its_marks() -> None:
    page = proof.PAGE.read_text(encoding="utf-8")
    assert page.count(proof.BEGIN) == page.count(proof.END) == 1 and page.index(proof.BEGIN) < page.index(
        proof.END
    )
