"""The arithmetic under the figures: how cells are shown, the ideal behind a lag, syncs that are counted."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """A module of bench/, which finds its neighbours; behind all others, for one is called like a package."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCH)])

    def found(name: str) -> ModuleType:
        return importlib.import_module(name)

    return found


def test_a_figure_is_shown_with_the_digits_that_count(load) -> None:
    shown, times = load("figures").shown, load("figures").times
    cells = [None, "text", 1234567, 0.0, 1234.5, 12.345, 1.2345, 0.99949, 0.00012345]
    told = ["", "text", "1,234,567", "0", "1,234", "12.3", "1.23", "0.999", "0.000123"]
    assert [shown(cell) for cell in cells] == told
    assert [times(1, 2), times(2000, 1), times(1, 1000), times(1, 0)] == ["0.50 x", "2,000 x", "0.001 x", ""]


def test_growth_is_told_for_each_ten_times_the_work_beside_the_step_before(load) -> None:
    tenfold = load("growth").tenfold
    assert tenfold([10, 100, 1000], [2.0, 3.0, 12.0]) == "1.50 x, 4.00 x"
    assert tenfold([10, 1000], [1.0, 9.0]) == "3.00 x", "of a step by 100 the root"
    assert tenfold([10], [1.0]) == "" and tenfold([10, 100], [0.0, 1.0]) == ""


def test_what_a_host_takes_of_the_cores_is_told_as_a_share_of_what_was_asked_for(load) -> None:
    stolen = load("figures").stolen
    before, after = [100] * 10, [400, 100, 200, 9000, 900, 100, 100, 200, 100, 100]
    # 300 for users, 100 for the system, 100 taken; idle ones do not count.
    assert stolen(before, after) == 0.2
    assert stolen(before, before) == 0.0
    assert stolen([], after) is None


def test_the_ideal_serves_all_that_have_messages_left_at_one_speed(load) -> None:
    ideal = load("fairness").Ideal([1, 3, 3])
    assert ideal.served == [0, 3, 5, 7]
    assert [ideal.share(n) for n in (0, 1.5, 3, 4, 7)] == [0, 0.5, 1.0, 1.5, 3.0]


def test_the_lag_is_that_of_the_one_who_waited_longest(load) -> None:
    lag = load("fairness").Lag([3, 2])
    for id, tenant in enumerate([0, 0, 0, 1, 1]):
        lag.see(tenant, id)
    assert lag.worst == 1.5  # of three dispatches the second tenant should have had half
    assert list(lag.ended) == [3, 5]
    assert lag.breaks == 0


def test_fairway_is_less_than_one_dispatch_behind_and_fifo_is_not(load) -> None:
    fairness = load("fairness")
    order = fairness.skewed(20, 10)
    counts = [order.count(tenant) for tenant in range(20)]
    worst = {}
    for name in ("fairway", "fifo"):
        lag = fairness.Lag(counts)
        fairness.RULES[name](order, lag, True)
        worst[name] = lag.worst
        assert lag.done == len(order) and lag.breaks == 0
    assert worst["fairway"] < 1.0 < worst["fifo"]


@pytest.mark.real
def test_syncs_of_other_processes_are_counted(load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = load("peers.syncs")
    environment = syncs.environment(tmp_path)
    if not (shutil.which("cc") or shutil.which("gcc")):
        assert environment == {}
        return
    script = (
        "import os; f = open('x', 'w'); [os.fsync(f) for _ in range(3)]; [os.fdatasync(f) for _ in range(2)]"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, cwd=tmp_path, env={**os.environ, **environment}
    )
    monkeypatch.setenv(syncs.NAME, environment[syncs.NAME])
    counted = syncs.so_far()
    assert counted.calls == 5 and counted.seconds > 0
    monkeypatch.delenv(syncs.NAME)
    assert syncs.so_far() is None


def test_nobody_is_said_to_keep_what_it_does_not_sync(load) -> None:
    kept = load("queues").kept
    always, never = {"syncs_a_call": 1.0}, {"syncs_a_call": 0.06}
    assert kept(always, always, "x") == "power loss"
    assert kept(never, always, "x") == "put: power loss; end: a killed process"
    assert kept(never, never, "x") == "a killed process"
    assert kept({}, {}, "x") == "not counted"
    assert kept(always, always, "multiprocessing.Queue") == "nothing"
