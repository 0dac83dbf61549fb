"""The long runs leave their figures: a row for each, whether it passed, and a table of them all in the page."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fairway.cli.verify import verify
from fairway.store.sqlite.statements import steps
from fairway.testing.checker import check_history
from fairway.testing.history import BadHistory, History, Note, load
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


SPEECHLESS = """
    import pytest

    @pytest.mark.proof
    def test_storm(record_proof):
        assert {good}, "7 | 8 violations"
        record_proof("A storm", operations=1000, faults=7, lost=0)
"""
DEADLY = """
    import os
    import pytest

    @pytest.mark.proof
    def test_first(record_proof):
        record_proof("A first storm", operations=1, faults=1, lost=0)

    @pytest.mark.proof
    def test_second(record_proof):
        {how}
        record_proof("A second storm", operations=1, faults=1, lost=0)
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
    run = proven(project, "tests")
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == "Failed: tests/a/test_bad.py", run.stdout
    found = rows(project)
    assert {name: (row["lost"], row["passed"]) for name, row in found.items()} == {
        "A bad storm": (2, False),
        "A good storm": (0, True),
    }
    page = (project.root / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert "| A bad storm **failed** | 1,000 | 7 | 2 |" in page
    assert "| **all**, 1 failed | **2,000** | **14** | **2** |" in page
    assert (
        page.startswith("# Reliability\n\nBefore.\n") and page.endswith("\n\nAfter.\n") and "old" not in page
    )


def proven(project: Project, *chosen: str) -> subprocess.CompletedProcess[str]:
    """`make proof` in the small project."""
    command = ["sh", str(project.root / "tools" / "proof.sh"), *chosen]
    return subprocess.run(command, capture_output=True, text=True, timeout=400)


def test_a_run_that_fails_before_it_tells_anything_leaves_no_earlier_row_standing(project: Project) -> None:
    for good in (True, False):
        project.write("tests/b/test_good.py", SPEECHLESS.format(good=good))
        assert (project.run("-m", "proof", "tests/b").returncode == 0) is good
        assert rows(project)["A storm"]["passed"] is good
    row = rows(project)["A storm"]
    assert (row["operations"], row["lost"], row["test"]) == (0, None, "tests/b/test_good.py::test_storm")
    row_told = "| A storm **failed** (AssertionError: 7 / 8 violations) | 0 | 0 | not told |"
    assert row_told in proof.tables([row]) and "| **all**, 1 failed |" in proof.tables([row])


def test_a_run_that_never_told_anything_fails_under_its_own_name(project: Project) -> None:
    project.write("tests/b/test_good.py", SPEECHLESS.format(good=False))
    assert project.run("-m", "proof", "tests/b").returncode == 1
    assert {name: row["passed"] for name, row in rows(project).items()} == {"storm": False}


def test_a_run_that_takes_its_process_with_it_leaves_no_earlier_row_standing(project: Project) -> None:
    project.write("tests/b/test_good.py", DEADLY.format(how="pass"))
    assert project.run("-m", "proof", "tests/b").returncode == 0
    project.write("tests/b/test_good.py", DEADLY.format(how="os.kill(os.getpid(), 9)"))
    assert proven(project, "tests/b").returncode == 1
    found = {name: row["passed"] for name, row in rows(project).items()}
    assert found == {"A first storm": True, "A second storm": False}


@pytest.mark.parametrize("chosen", [("tests/b", "-k", "second"), ("tests/b/test_good.py::test_second",)])
def test_what_is_chosen_is_what_runs(project: Project, chosen: tuple[str, ...]) -> None:
    project.write("tests/b/test_good.py", DEADLY.format(how="pass"))
    assert proven(project, *chosen).returncode == 0
    assert set(rows(project)) == {"A second storm"}
    (project.root / "docs/histories/rows/a-second-storm.json").unlink()
    assert proven(project, "tests/b", "-k", "first").returncode == 0
    project.write("tests/b/test_good.py", DEADLY.format(how="os.kill(os.getpid(), 9)"))
    assert proven(project, *chosen).returncode == 1
    assert rows(project)["A first storm"]["passed"], "it was not chosen, so it did not fail"


def test_a_file_that_cannot_be_read_is_told_and_the_others_run(project: Project) -> None:
    project.write("tests/a/test_bad.py", "import no_such_thing\n")
    run = proven(project, "tests")
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == "Failed: collecting", run.stdout
    assert "no_such_thing" in run.stdout and rows(project)["A good storm"]["passed"]


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


TOLD = {"seeds": 20, "steps": 3000, "calls": 900, "faults": {"crash": 4, "jump": 2}, "seconds": 1.4}


def test_a_simulation_is_a_row_that_says_how_long_its_histories_are(tmp_path: Path) -> None:
    proof.write_simulated("histories", [TOLD | {"failing": [7]}, TOLD | {"failing": []}], folder=tmp_path)
    (row,) = proof.rows_of(tmp_path)
    assert (row["operations"], row["faults"], row["lost"], row["passed"]) == (1800, 12, 1, False)
    assert row["seed"] == "40 seeds x 150 steps"


def test_calls_with_a_planted_bug_are_not_added_to_those_without(tmp_path: Path) -> None:
    proof.write_simulated("histories", [TOLD | {"failing": []}], folder=tmp_path)
    planted = {"operations": 1_000_000, "faults": 7, "lost": 0, "seconds": 1, "simulated": True}
    proof.write_row("planted bugs found from scratch", **planted, folder=tmp_path)
    clean, found = proof.tables(proof.rows_of(tmp_path)).split("planted on purpose")
    assert "1,000,000" not in clean and "| lost or wrong |" in clean
    assert "1,000,000" in found and "| not found |" in found


def test_what_is_simulated_is_not_added_to_what_is_real(tmp_path: Path) -> None:
    proof.write_simulated("histories", [TOLD | {"failing": []}], folder=tmp_path)
    for name, faults in (("Kills", 7), ("Soak", 0)):
        proof.write_row(name, operations=5, faults=faults, lost=0, seconds=1, folder=tmp_path)
    page = proof.tables(proof.rows_of(tmp_path))
    assert page.count("| **all** |") == 3
    for sum in ("**5** | **7** | **0**", "**5** | **0** | **0**", "**900** | **6** | **0**"):
        assert f"| **all** | {sum} |" in page


SIMULATE = """#!/bin/sh
echo "$@" >>asked
case "$*" in
*"--start 0 "*) code={first} ;;
*) code={others} ;;
esac
found=$([ "$code" = 0 ] || echo 7)
said='"seeds": 20, "steps": 3000, "calls": 900, "faults": {{}}, "seconds": 1'
[ "$code" -gt 1 ] || echo "{{$said, \\"failing\\": [$found]}}"
exit "$code"
"""


@pytest.mark.parametrize(
    ("first", "others", "parts", "found"),
    [
        (0, 0, 3, (60, 0, True, "")),
        (1, 0, 3, (60, 1, False, "")),  # a history that fails stops no other
        (0, 2, 2, (20, 0, False, "it died, 40 seeds did not run")),
        (2, 2, 1, (0, None, False, "it died, 60 seeds did not run")),
    ],
)
def test_a_simulation_goes_on_when_a_history_fails_and_is_failed_when_seeds_are_missing(
    project: Project, first: int, others: int, parts: int, found: tuple
) -> None:
    project.write(".venv/bin/fairway", SIMULATE.format(first=first, others=others))
    (project.root / ".venv/bin/fairway").chmod(0o755)
    script = project.root / "tools/proof.sh"
    text = script.read_text(encoding="utf-8")
    begin, end = text.index("if [ "), text.index('if [ "${1:-}" != sim')
    script.write_text(f"{text[:begin]}simulate 'some histories' 60 20 --steps 150\n{text[end:]}")
    run = proven(project, "sim")
    assert (run.returncode == 0) is found[2], run.stdout
    (row,) = rows(project).values()
    seeds = int(row["seed"].split()[0])
    assert (seeds, row["lost"], row["passed"], row["note"]) == found
    assert len((project.root / "asked").read_text().splitlines()) == parts


def test_a_row_whose_commit_did_not_lead_to_this_tree_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Old", "New"):
        proof.write_row(name, operations=1, lost=0, seconds=1, folder=tmp_path)
    found = {row["name"]: row for row in proof.rows_of(tmp_path)}
    proof._write(found["Old"] | {"commit": "0123456"}, tmp_path)
    answers: dict[str, bool | None] = {"0123456": False}
    monkeypatch.setattr(proof, "is_here", lambda commit: answers.get(commit, True))
    proof.look_for_commits(tmp_path)
    page = proof.tables(proof.rows_of(tmp_path))
    assert "| 0123456 †," in page and page.count("†") == 2 and "before that history was put in order" in page
    answers["0123456"] = None  # a shallow clone, or none
    proof.look_for_commits(tmp_path)
    assert proof.tables(proof.rows_of(tmp_path)) == page


def test_git_is_asked_where_it_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    assert proof.is_here("0123456") is None and proof.commit_here() == "unknown", "no clone"

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        command = ["git", *who, *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "--short", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert proof.is_here(first) and proof.is_here(f"{first}-dirty") and proof.commit_here() != first
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-q", "--allow-empty", "-m", "another beginning")
    assert proof.is_here(first) is False and proof.is_here("0123456") is False
    monkeypatch.setenv("PATH", str(tmp_path))
    assert proof.is_here(first) is None and proof.commit_here() == "unknown", "no git"


def test_every_row_says_whether_its_commit_led_to_this_tree() -> None:
    for row in proof.rows_of(proof.ROWS):
        here = proof.is_here(row["commit"])
        assert here is None or here == row["here"], f"{row['name']}: run python -m tools.proof"


def test_a_file_of_every_older_schema_was_opened_under_power_cuts() -> None:
    names = {row["name"] for row in proof.rows_of(proof.ROWS)}
    for version in range(len(steps())):
        name = f"power cut while a file of schema {version} is opened or upgraded"
        assert name in names, "run sh tools/proof.sh tests/faults/test_upgrade.py: it takes seconds"


def test_calls_that_an_overload_refuses_are_no_faults() -> None:
    rows = [row for row in proof.rows_of(proof.ROWS) if row["test"].startswith("tests/soak/test_overload.py")]
    assert rows and not any(row["faults"] for row in rows)


def test_every_row_names_a_test_that_exists() -> None:
    """Otherwise a run of it that fails would leave the row standing."""
    for row in proof.rows_of(proof.ROWS):
        if row["test"]:  # simulations have none, nor have rows of long ago
            file, _, test = row["test"].partition("::")
            told = (proof.ROOT / file).read_text(encoding="utf-8")
            assert f"def {test.partition('[')[0]}(" in told, row["name"]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {name: tmp_path / name for name in ("folder", "histories", "kept")}


def test_the_history_of_a_run_lies_beside_the_page_and_can_be_checked_again(
    tmp_path: Path, places: dict[str, Path]
) -> None:
    told = simulate(7).recorder.history()
    figures = {"operations": 1, "faults": 1, "lost": 0, "seconds": 1}
    proof.write_row("A storm", **figures, history=told, part="1 of 9 storms", **places)
    (row,) = proof.rows_of(places["folder"])
    link = "[history of 1 of 9 storms](histories/a-storm.jsonl.xz)"
    assert f"| A storm {link} |" in proof.tables([row])
    published = places["histories"] / row["history"]
    found = load(published)
    assert found.lines == told.lines and check_history(found) == []
    (tmp_path / "cut.xz").write_bytes(published.read_bytes()[:-9])
    with pytest.raises(BadHistory, match="cannot be unpacked"):
        load(tmp_path / "cut.xz")
    proof.write_row("A storm", **figures, passed=False, history=told, **places)
    assert not published.exists(), "it is not of this row"


def test_a_history_that_failed_or_is_too_long_is_kept_and_not_published(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, last = simulate(7).recorder.history(), simulate(8).recorder.history()
    wrong = History([line for line in good.lines if not isinstance(line, Note)][:-1] + good.lines[-1:] * 2)
    assert check_history(wrong)
    figures = {"operations": 1, "faults": 1, "lost": 0, "seconds": 1, **places}
    proof.write_row("Failed", **figures, passed=False, history=good, last=last)
    proof.write_row("Wrong for who reads it alone", **figures, history=wrong)
    monkeypatch.setattr(proof, "HISTORY_BYTES_MAX", 100)
    proof.write_row("Long", **figures, history=good)
    assert not places["histories"].exists() and not any(r["history"] for r in proof.rows_of(places["folder"]))
    kept = {path.name: load(path).lines for path in places["kept"].iterdir()}
    assert kept == {
        "failed.jsonl.xz": last.lines,
        "wrong-for-who-reads-it-alone.jsonl.xz": wrong.lines,
        "long.jsonl.xz": good.lines,
    }


def test_a_run_that_checks_a_history_keeps_it() -> None:
    """Otherwise a storm that fails leaves nothing to look at."""
    bare: list[str] = []
    for path in sorted((proof.ROOT / "tests").rglob("*.py")):
        for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(one, ast.FunctionDef):
                continue
            calls = [call for call in ast.walk(one) if isinstance(call, ast.Call)]
            named = [(call, call.func.id) for call in calls if isinstance(call.func, ast.Name)]
            checked = any(name in ("check_history", "judge") for _, name in named)
            for call, name in named:
                told = {keyword.arg for keyword in call.keywords}  # None: `**`
                if checked and name in ("record", "record_proof") and not told & {"history", None}:
                    bare.append(f"{path.relative_to(proof.ROOT)}:{call.lineno}")
    assert not bare, "give record_proof the history that was checked"


def test_every_published_history_is_of_a_row() -> None:
    linked = {row["history"] for row in proof.rows_of(proof.ROWS)} - {""}
    assert linked == {path.name for path in proof.HISTORIES.glob("*.xz")}


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
