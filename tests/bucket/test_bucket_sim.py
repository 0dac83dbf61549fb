"""Simulated bucket queues under faults: nothing is wrong with any of them, and what is broken is found out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from fairway.cli.app import run
from fairway.testing.bucket.checker import CHECKS
from fairway.testing.bucket.simulate import simulate
from fairway.testing.history import parse
from fairway.testing.shrink import shrink
from tests.bucket.planted import FAULTS, MACHINES, STORAGES, planted

SEEDS = 150
SLICES = 6
PLANTED_SEEDS_MAX = 400
FAULT_KINDS = {"kill", "pause", "late", "lost_reply", "lost_read", "dropped"}


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    return Counter()


def wrong_with(seed: int, seen: Counter[str]) -> str:
    simulation = simulate(seed)
    seen.update(simulation.outcome.faults)
    seen["seeds"] += 1
    history = simulation.recorder.history()
    seen["accepted"] += sum(len(put.args["uids"]) for put in history.of("put") if put.answered)
    seen["redriven"] += sum(len(one.args["uids"]) for one in history.of("redrive") if one.answered)
    told = [violation.story(history) for violation in simulation.outcome.violations[:3]]
    return f"seed {seed}\n" + "\n".join(told) if told else ""


@pytest.mark.parametrize("part", range(SLICES))
def test_nothing_is_lost_or_stuck_under_faults(part: int, seen: Counter[str]) -> None:
    for seed in range(part, SEEDS, SLICES):
        assert not (wrong := wrong_with(seed, seen)), wrong


def test_every_fault_of_storage_and_nodes_happened(seen: Counter[str]) -> None:
    if seen["seeds"] < SEEDS:
        for seed in range(20):
            wrong_with(seed, seen)
    assert set(seen) >= FAULT_KINDS and seen["accepted"] > 50 * seen["seeds"]
    assert seen["redriven"] > seen["seeds"]


@pytest.mark.proof
def test_two_thousand_seeds_are_clean(seen: Counter[str]) -> None:
    for seed in range(2000):
        assert not (wrong := wrong_with(seed, seen)), wrong
    print(dict(seen))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_bucket_queue_is_found_out(fault: str) -> None:
    with planted(fault) as make:
        for seed in range(PLANTED_SEEDS_MAX):
            found = simulate(seed, make=make).outcome.violations
            if any(violation.check == FAULTS[fault] for violation in found):
                return
    pytest.fail(f"in {PLANTED_SEEDS_MAX} seeds {FAULTS[fault]} did not find that {fault}")


def test_every_bucket_check_finds_a_planted_fault() -> None:
    assert set(FAULTS) == {*STORAGES, *MACHINES}
    assert {f"check_{name}" for name in FAULTS.values()} == {check.__name__ for check in CHECKS}


def test_a_failing_bucket_seed_shrinks_to_a_short_story() -> None:
    with planted("repair goes by time") as make:
        run = partial(simulate, make=make)
        shrunk = shrink(0, 150, run=run, check="accepted_is_not_lost", tries_max=60)
        assert shrunk is not None and len(shrunk.steps) < 40
        again = run(0, 150, keep=shrunk.steps).outcome.violations
        assert any(violation.check == "accepted_is_not_lost" for violation in again), "what is left replays"
    assert "put" in shrunk.story()


@pytest.mark.parametrize("seed", [3, 11])
def test_one_bucket_seed_is_one_history_on_every_machine(seed: int) -> None:
    code = (
        "import sys; from fairway.testing.bucket.simulate import simulate;"
        f" sys.stdout.buffer.write(simulate({seed}).recorder.dump())"
    )
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, env={"PYTHONHASHSEED": "7"}, capture_output=True, check=True).stdout
    assert other == simulate(seed).recorder.dump()
    assert len(parse(other).requests) > 50


def test_the_command_line_simulates_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sim", "--kind", "bucket", "--seeds", "1", "--start", "5", "--save", str(tmp_path), "--json"]
    assert run(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == 1 and told["failing"] == [] and told["calls"] > 50
    (saved,) = told["saved"]
    assert run(["verify", saved, "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["checks"] == 16 and checked["violations"] == []
    lines = Path(saved).read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(
        b"".join(line for line in lines if b'"finished"' not in line and b'"op":"complete"' not in line)
    )
    assert run(["verify", str(broken), "--json"]) == 1, "without its completions everything is lost"
