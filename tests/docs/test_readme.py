"""The README is short, and its example runs word for word and prints what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, blocks

README = ROOT / "README.md"


def test_the_example_runs_word_for_word_and_prints_what_the_readme_says(tmp_path: Path) -> None:
    (example,) = blocks(README, "python")
    (printed,) = blocks(README, "text")

    def run() -> str:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", example.text],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    assert run() == printed.text
    assert (tmp_path / "work.db").is_file()
    assert "Run it again and `acme` is served first" in README.read_text(encoding="utf-8")
    assert run().splitlines()[0] == "acme b'hello'"


def test_the_example_has_ten_lines_and_the_readme_at_most_150() -> None:
    (example,) = blocks(README, "python")
    assert len([line for line in example.text.splitlines() if line.strip()]) <= 10
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_two_commands_are_there_and_exist() -> None:
    text, makefile = README.read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"make {command}" in text and f"\n{command}:" in makefile
