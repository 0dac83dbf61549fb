"""Real processes on one file, killed at any instant: nothing accepted is lost, nothing completed comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import fairway
from fairway.testing.bucket.checker import check_history
from tests.bucket.storming import Storm, stories
from tests.proving import number

LONG_KILLS = number("BUCKET_KILLS", 200)  # of each seed in `make proof`


def blow(tmp_path: Path, kills: int, seed: int, record: Callable[..., None] = lambda *_, **__: None) -> None:
    url = str(tmp_path / "work.db")
    with fairway.open(url, "storm", kind="bucket") as queue:
        queue.configure(
            bucket_rows=50, seal_seconds=1.0, lease_seconds=2.0, attempts_max=20, retry_delay_seconds=0.1
        )
    storm = Storm(url, tmp_path, seed)
    storm.blow(kills, 15.0 * kills)
    history = storm.drain()
    wrong = check_history(history)
    accepted = sum(len(put.args["uids"]) for put in history.of("put") if put.answered)
    name = f"processes on a bucket queue killed, seed {seed}"
    shown = history if seed == 0 else None  # one of them is enough to look at
    figures = {"operations": accepted, "faults": storm.kills, "lost": len(wrong)}
    note = "every kill is counted, whatever the process was doing"
    record(name, **figures, seed=seed, note=note, history=shown, last=history)
    assert not wrong, stories(history, wrong)
    hidden = sum(not put.answered for put in history.of("put"))
    print(f"{storm.kills} kills, {accepted} accepted, {hidden} puts without an answer")
    assert storm.kills >= kills and accepted > 10 * kills


@pytest.mark.real
def test_nothing_accepted_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    blow(tmp_path, 20, 1)


@pytest.mark.proof
@pytest.mark.real
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_in_a_long_storm_of_kills(
    tmp_path: Path, seed: int, record_proof: Callable[..., None]
) -> None:
    blow(tmp_path, LONG_KILLS, seed, record_proof)
