"""`fairway ring stat` shows who uses a ring and who is stuck, and says what is wrong with what is none."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fairway.cli.app import run
from fairway.ring.face import Ring
from tests.ring.victims import stop


@pytest.mark.real
def test_a_stuck_writer_is_shown_with_its_process(
    place: Path, faults: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with Ring.create(place / "ring", 1 << 16) as ring:
        ring.put(b"before")
        pid = stop(faults, place / "ring", 5, lambda victim: victim.put(b"slow"))
        assert run(["ring", "stat", str(place / "ring")]) == 0
        told = capsys.readouterr().out
        assert "1 messages wait" in told
        assert f"process {pid}, stopped  STUCK" in " ".join(told.split("\n"))
        assert str(os.getpid()) in told
        assert run(["ring", "stat", str(place / "ring"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["stuck"] == 1
        assert {one["pid"] for one in found["owners"]} >= {pid, os.getpid()}
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert run(["ring", "stat", str(place / "ring"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["stuck"], found["skipped"]) == (0, 1), "what the dead left is cleared up"


def test_a_ring_whose_places_are_all_taken_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ring.create(place / "ring", 1 << 16) as ring:
        others = [Ring.attach(ring.path) for _ in range(255)]
        assert run(["ring", "stat", ring.path, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["owners"]) == 256
        for other in others:
            other.close()


def test_what_is_no_ring_is_refused_with_a_word(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").write_text("mine")
    assert run(["ring", "stat", str(place / "file")]) == 1
    assert "not a ring" in capsys.readouterr().err
    assert run(["ring", "stat", str(place / "none")]) == 1
    assert "create it first" in capsys.readouterr().err
