"""The pages and the examples about Spark run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.spark.pipeline import patiently

pytestmark = [pytest.mark.real, pytest.mark.timeout(1700)]
EXAMPLES = {
    "spark_pipeline.py": "8 submissions, 10000 rows, equal to plain Spark: True",
    "spark_tpch.py": "7 tenants, 7 chunks; equal to plain Spark: True",
}
PAGES = {"spark.md": 3, "audit.md": 2}  # with how many blocks of Python, at least
# Programs follow each other in one process, because a Java that runs starts Spark sooner.
_RUNNER = """
import os, runpy, shutil, sys
for program in sys.argv[1:]:
    sys.argv = [program, "0.001"]  # the scale of TPC-H
    runpy.run_path(program, run_name="__main__")
    for name in os.listdir():  # each begins with an empty folder
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)
"""


def run(folder: Path, *programs: Path) -> str:
    def once() -> str:
        command = [sys.executable, "-c", _RUNNER, *map(str, programs)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1500)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr[-4000:])
        return done.stdout

    return patiently(once)


def page(folder: Path, name: str, examples: int) -> Path:
    """All Python of a page, as one program."""
    found = [block for block in blocks(ROOT / "docs" / name, "python") if not block.not_run]
    assert len(found) >= examples
    program = folder / f"{name}.py"
    program.write_text("\n".join(block.text for block in found) + f"\nprint({name!r} + ': to its end')\n")
    return program


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What all of them print, one after the other."""
    folder = tmp_path_factory.mktemp("pages")
    pages = [page(folder, name, many) for name, many in PAGES.items()]
    (empty := folder / "empty").mkdir()
    return run(empty, *(ROOT / "examples" / name for name in EXAMPLES), *pages)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_says_what_it_should(said: str, name: str) -> None:
    assert EXAMPLES[name] in said


@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs_to_its_end(said: str, name: str) -> None:
    assert f"{name}: to its end" in said


def test_the_tutorial_shows_the_example_and_what_it_says() -> None:
    page = ROOT / "docs" / "tutorial.md"
    (block,) = (block for block in blocks(page, "python") if "fairway.spark" in block.text)
    _, _, program = (ROOT / "examples" / "spark_pipeline.py").read_text(encoding="utf-8").partition('"""\n\n')
    assert block.text == program
    assert any(text.text == EXAMPLES["spark_pipeline.py"] + "\n" for text in blocks(page, "text"))
