"""The gates of a test run: an unlisted skip fails it, a listed one passes, each area's time is shown."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent

TESTS = """
    import pytest

    def test_passes():
        assert True

    @pytest.mark.parametrize("n", [1, 2])
    def test_skips(n):
        pytest.skip("needs a moon")
"""
MOON = '[[skip]]\ntest = "tests/sky/test_sky.py::test_skips[*]"\nreason = "needs a *"\n'


class Project:
    """A small project under the same conftest.py as this one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("conftest.py", "ordering.py"):
            self.write(f"tests/{name}", (HERE / name).read_text(encoding="utf-8"))
        self.write("tests/order.toml", "")
        self.write("tests/skips.toml", "")
        self.write("tests/budgets.toml", "whole_seconds = 60\nother_seconds = 30\n[areas]\n")
        shutil.copy(HERE.parent / "pyproject.toml", root)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--assert=plain", *options]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=120)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    "options", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "two workers"]
)
def test_an_unlisted_skip_fails_the_run(project: Project, options: tuple[str, ...]) -> None:
    project.write("tests/sky/test_sky.py", TESTS)
    run = project.run(*options)
    assert run.returncode == 1, run.stdout
    assert "skipped tests: 2, not listed in tests/skips.toml: 2" in run.stdout
    assert "NOT LISTED tests/sky/test_sky.py::test_skips[1]: needs a moon" in run.stdout


@pytest.mark.parametrize(
    "options", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "two workers"]
)
def test_a_listed_skip_is_counted_and_passes(project: Project, options: tuple[str, ...]) -> None:
    project.write("tests/sky/test_sky.py", TESTS)
    project.write("tests/skips.toml", MOON)
    run = project.run(*options)
    assert run.returncode == 0, run.stdout
    assert "skipped tests: 2, not listed in tests/skips.toml: 0" in run.stdout


@pytest.mark.parametrize(
    "entry",
    [MOON.replace("test_sky.py", "test_sea.py"), MOON.replace("needs a *", "needs a sun")],
    ids=["another test", "another reason"],
)
def test_a_skip_must_match_by_test_and_by_reason(project: Project, entry: str) -> None:
    project.write("tests/sky/test_sky.py", TESTS)
    project.write("tests/skips.toml", entry)
    assert project.run().returncode == 1


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_whole_module_that_skips_is_a_skip(project: Project, options: tuple[str, ...]) -> None:
    project.write("tests/test_a.py", "def test_passes(): pass")
    project.write(
        "tests/test_b.py", "import pytest\npytest.importorskip('no_such_module', reason='needs it')"
    )
    run = project.run(*options)
    assert run.returncode == 1, run.stdout
    assert "NOT LISTED tests/test_b.py: needs it" in run.stdout


def test_an_expected_failure_is_a_skip_too(project: Project) -> None:
    mark = "import pytest\n@pytest.mark.xfail(reason='wrong so far')\ndef test_x(): assert False"
    project.write("tests/test_a.py", mark)
    run = project.run()
    assert run.returncode == 1, run.stdout
    assert "NOT LISTED tests/test_a.py::test_x: wrong so far" in run.stdout


def test_an_entry_without_a_reason_is_refused(project: Project) -> None:
    project.write("tests/test_a.py", "def test_passes(): pass")
    project.write("tests/skips.toml", '[[skip]]\ntest = "*"\n')
    run = project.run()
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "an entry has a test and a reason" in run.stderr


def test_the_budget_table_shows_every_area_and_never_fails_the_run(project: Project) -> None:
    project.write(
        "tests/sky/test_sky.py", "import time\ndef test_slow(): time.sleep(0.2)\ndef test_quick(): pass"
    )
    project.write("tests/test_sea.py", "def test_quick(): pass")
    project.write("tests/budgets.toml", "whole_seconds = 60\nother_seconds = 30\n[areas]\nsky = 0.05\n")
    run = project.run("--budgets", "-n", "2")
    assert run.returncode == 0, run.stdout
    rows = {line.split()[0]: line for line in run.stdout.splitlines() if line}
    assert rows["sky"].split()[1] == "2"
    assert rows["sky"].endswith("0.05  over, WARNING: twice over")
    assert rows["test_sea"].split()[1] == "1"
    assert rows["test_sea"].endswith("30")
    assert rows["whole,"].endswith("60")
    assert "skipped tests: 0, not listed in tests/skips.toml: 0" in run.stdout


def test_the_longest_files_come_first_and_of_a_wide_area_one_at_a_time(project: Project) -> None:
    log = """
        import os, time

        def test_it():
            with open("log", "a") as log:
                log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {__name__} begins\\n")
            time.sleep(0.3)
            with open("log", "a") as log:
                log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {__name__} ends\\n")

        def test_more():
            pass

        def test_still_more():
            pass

        def test_the_last():
            pass
    """
    project.write("tests/order.toml", 'wide_areas = ["wide", "broad"]\n[seconds]\n')
    for name in (
        *(f"wide/test_{n}" for n in "abc"),
        *(f"thin/test_{n}" for n in "def"),
        *(f"broad/test_{n}" for n in "gh"),
    ):
        project.write(f"tests/{name}.py", log)
        with (project.root / "tests/order.toml").open("a") as order:
            order.write(f'"tests/{name}.py" = {ord(name[-1])}\n')
    run = project.run("-n", "3", "--dist", "loadfile", "--budgets")
    assert run.returncode == 0, run.stdout
    lines = [line.split() for line in (project.root / "log").read_text().splitlines()]
    for area, files in (("wide", "cba"), ("broad", "hg")):
        told = [(name[-1], what) for _, name, what in lines if area in name]
        assert told == [(name, what) for name in files for what in ("begins", "ends")], lines
        assert len({worker for worker, name, _ in lines if area in name}) == 1, (
            "who is in an area stays there"
        )
    assert [name[-1] for _, name, what in lines if "thin" in name and what == "begins"] == ["f", "e", "d"]
    assert len({worker for worker, _, _ in lines}) == 3
    assert "longest files" in run.stdout


def test_files_of_one_wide_area_alone_are_all_run(project: Project) -> None:
    project.write("tests/order.toml", 'wide_areas = ["wide"]\n')
    for name in "abcdef":
        project.write(f"tests/wide/test_{name}.py", "\n".join(f"def test_{n}(): pass" for n in range(9)))
    run = project.run("-n", "2", "--dist", "loadfile")
    assert run.returncode == 0 and "54 passed" in run.stdout, run.stdout


def test_the_order_names_files_that_are_there() -> None:
    order = tomllib.loads((HERE / "order.toml").read_text(encoding="utf-8"))
    assert order["wide_areas"] and order["seconds"]
    assert [name for name in order["seconds"] if not (HERE.parent / name).is_file()] == []
    assert [area for area in order["wide_areas"] if not (HERE / area).is_dir()] == []


def test_proof_stays_out_of_an_ordinary_run(project: Project) -> None:
    project.write("tests/test_a.py", "import pytest\n@pytest.mark.proof\ndef test_storm(): assert False")
    assert project.run().returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert project.run("-m", "proof").returncode == pytest.ExitCode.TESTS_FAILED


def test_a_warning_is_a_failure(project: Project) -> None:
    project.write(
        "tests/test_a.py", "import warnings\ndef test_x(): warnings.warn('old', DeprecationWarning)"
    )
    assert project.run().returncode == pytest.ExitCode.TESTS_FAILED


# -- .ci/run -----------------------------------------------------------------------------------------------

CLOSING = "===== 3 passed, 1 skipped in 0.10s ====="


@pytest.mark.parametrize(("check", "test"), [("true", "true"), ("false", "true"), ("true", "false")])
def test_ci_fails_when_either_half_fails_and_always_shows_the_closing_line(
    project: Project, check: str, test: str
) -> None:
    says = f"@echo 'skipped tests: 1, not listed'; echo '{CLOSING}'; {test}"
    project.write("Makefile", f"system:\n\t@true\ncheck:\n\t@{check}\ntest:\n\t{says}\n")
    project.write(".ci/run", (HERE.parent / ".ci" / "run").read_text(encoding="utf-8"))
    run = subprocess.run(["bash", project.root / ".ci" / "run"], capture_output=True, text=True, timeout=60)
    assert (run.returncode == 0) == (check == test == "true"), run.stderr
    assert run.stdout.splitlines()[-2:] == [f"closing line: {CLOSING}", "skipped tests: 1, not listed"]


def test_ci_says_so_when_pytest_did_not_finish(project: Project) -> None:
    project.write("Makefile", "system:\n\t@true\ncheck:\n\t@true\ntest:\n\t@false\n")
    project.write(".ci/run", (HERE.parent / ".ci" / "run").read_text(encoding="utf-8"))
    run = subprocess.run(["bash", project.root / ".ci" / "run"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert "closing line: none: pytest did not finish" in run.stdout
    assert "skipped tests: unknown" in run.stdout


def test_ci_can_be_run_as_it_is() -> None:
    assert (HERE.parent / ".ci" / "run").stat().st_mode & 0o111
