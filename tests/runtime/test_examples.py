"""Every example runs, by itself, and says something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ring.need import need_ring

# Those that need Spark or Cassandra run where there is one: tests/spark/test_pages.py, tests/cassandra/test_example.py.
FOUND = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
EXAMPLES = [path for path in FOUND if not path.name.startswith(("spark_", "cassandra_"))]
SAYS = {
    "multi_tenant.py": "paying-1 is through after 900 of 6200 chunks\npaying-2 is through after 900 of 6200 chunks\n",
    "fragile_api.py": "['completed', 'completed', 'completed'] by 12 workers; most calls at a time: 3\n",
    "producer.py": "500 of 500 producers have their results\n",
    "bucket.py": "killed with 20 messages\n200 messages completed by the others\n",
    "bucket_rest.py": "30 messages, each once: True\nleft: 0\n",
    "quickstart.py": "completed [b'ONE', b'TWO', b'THREE']\n",
    "workers.py": "tenant small: given up after 2 attempts: ValueError",
    "event_loop.py": "5000 messages by 1000 consumers\n",
    "processes.py": "completed\n100 results\n",
    "ring.py": "worked on an order\ndelivered again: 1\n",
    "objects.py": "completed 20 results, the last: Page 19 Of A Large Book\n",
}


@pytest.mark.real
def test_an_example_that_needs_an_address_says_so() -> None:
    path = next(path for path in FOUND if path.name == "cassandra_failover.py")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert done.stderr.startswith("usage: python cassandra_failover.py cassandra://")


@pytest.mark.real
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    if path.name == "ring.py":
        need_ring()
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout.startswith(SAYS[path.name]), done.stdout
