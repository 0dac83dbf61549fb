"""Every example runs, by itself, and says something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SAYS = {
    "quickstart.py": "completed [b'ONE', b'TWO', b'THREE']\n",
    "workers.py": "tenant small: given up after 2 attempts: ValueError",
    "event_loop.py": "5000 messages by 1000 consumers\n",
    "processes.py": "completed\n100 results\n",
    "objects.py": "completed 20 results, the last: Page 19 Of A Large Book\n",
}


@pytest.mark.real
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout.startswith(SAYS[path.name]), done.stdout
