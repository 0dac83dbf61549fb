"""Every bench works: --quick runs it in seconds, it prints tables, and what it writes is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.running import BENCH, HEAVY, LIGHT, quick
from tests.ring.need import need_ring

# What Python sees where nobody could build the extension.
UNBUILT = """
import runpy, sys
sys.modules["fairway.ring._ring"] = None
sys.path.insert(0, sys.argv[1])
sys.argv = ["ring.py", "--quick", "--only", "cpu"]
runpy.run_path(sys.path[0] + "/ring.py", run_name="__main__")
"""


@pytest.mark.real
@pytest.mark.parametrize("name", LIGHT)
def test_every_bench_runs_quickly_and_tells_rows(name: str, tmp_path: Path) -> None:
    quick(name, tmp_path)


@pytest.mark.real
def test_the_bench_of_the_ring_runs_quickly_and_its_storm_loses_nothing(tmp_path: Path) -> None:
    need_ring()
    costs, storm = quick("ring", tmp_path)["tables"]
    assert costs["rows"][0][0].startswith("fairway.Ring")
    (found,) = [dict(zip(storm["columns"], row, strict=True)) for row in storm["rows"]]
    assert (
        found["kills until nothing came any more"] >= 12 and found["put"] > 0 and found["then"] == "goes on"
    )
    assert not any(found[name] for name in ("never received", "altered", "failed by itself"))


@pytest.mark.real
def test_where_the_ring_is_not_built_its_bench_measures_the_others_and_says_so() -> None:
    command = [sys.executable, "-c", UNBUILT, str(BENCH)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "Left out here: fairway.Ring" in ended.stdout
    rows = [line.split("  ")[0] for line in ended.stdout.splitlines()]
    assert "multiprocessing.Queue" in rows and not [row for row in rows if row.startswith("fairway.Ring")]


@pytest.mark.proof
@pytest.mark.real
@pytest.mark.parametrize("name", HEAVY)
def test_the_benches_that_start_a_cluster_run_too(name: str, tmp_path: Path) -> None:
    quick(name, tmp_path)


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_bench_takes_what_all_take(name: str) -> None:
    text = (BENCH / f"{name}.py").read_text(encoding="utf-8")
    assert "parser(__doc__)" in text and "given.quick" in text and f'Figures("{name}", given)' in text
