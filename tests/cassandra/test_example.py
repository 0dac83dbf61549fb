"""The example of a failover runs as it stands, on a real node."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from fairway.testing.cassandra.sharing import Address

EXAMPLE = Path(__file__).parents[2] / "examples" / "cassandra_failover.py"


@pytest.mark.real
def test_the_standby_of_the_example_takes_over_and_nothing_is_lost(cassandra: Address) -> None:
    url = f"{cassandra.url}fairway_tests?realm=example-{uuid.uuid4().hex[:8]}"
    done = subprocess.run([sys.executable, str(EXAMPLE), url], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"taken over after [\d.]+ s; lost: 0\nleft: 0\n", done.stdout), done.stdout
