"""A bench in a process of its own, and what every one of them must write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[2] / "bench"
ALL = sorted(path.stem for path in BENCH.glob("*.py"))
HEAVY = ["cassandra", "pipeline"]  # they start a Cassandra and a Spark
SERVED = [
    "bounds",
    "growth",
    "processes",
    "queues",
    "server",
    "window",
]  # they start processes of Fairway's own
NATIVE = ["ring"]  # it needs the extension
LIGHT = [name for name in ALL if name not in (*HEAVY, *SERVED, *NATIVE)]


def quick(name: str, folder: Path, *options: str) -> dict[str, Any]:
    """What a quick run found; it is whole, and was printed."""
    wrote = folder / f"{name}.json"
    command = [sys.executable, str(BENCH / f"{name}.py"), "--quick", "--json", str(wrote), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found: dict[str, Any] = json.loads(wrote.read_text())
    assert found["bench"] == name
    assert found["machine"] and found["date"] and len(found["load"]) == 2
    assert {"Fairway", "Python", "SQLite"} <= set(found["versions"])
    assert found["tables"]
    for table in found["tables"]:
        assert table["rows"], f"{name}: no rows under {table['title']}"
        assert table["title"] in ended.stdout
        for row, shown in zip(table["rows"], table["shown"], strict=True):
            assert len(row) == len(shown) == len(table["columns"])
            assert shown[0] in ended.stdout
            assert any(character.isdigit() for cell in shown[1:] for character in cell)
    return found
