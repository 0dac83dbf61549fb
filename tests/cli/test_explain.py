"""`fairway explain` tells what a host would do, whether there is one or not."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with fairway.open(tmp_path / "work.db") as q:
        q.submit(chunks=3, tenant="whale")
        q.submit(chunks=1, tenant="small")
    return tmp_path / "work.db"


def test_it_says_who_is_next(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(file), "Fair", "--host"]) == DONE
    said = capsys.readouterr().out
    assert "1. tenant 'whale'" in said and "2. tenant 'small'" in said


def test_it_works_beside_the_process_that_has_the_queue_open(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fairway.open(file) as q:
        q.pause(tenant="whale")
        assert run(["explain", str(file)]) == DONE
        said = capsys.readouterr().out
    assert "its tenant is paused" in said and "1. tenant 'small'" in said


def test_without_a_host_it_tells_what_the_file_holds(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = file.read_bytes()
    assert run(["explain", str(file)]) == DONE
    assert "1. tenant 'whale'" in capsys.readouterr().out
    assert file.read_bytes() == before


def test_a_bad_strategy_is_pointed_at(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(file), "Unfair", "--host"]) == FAILED
    assert "Unfair" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert run(["explain", str(tmp_path / "none.db"), "--host"]) == FAILED
    assert list(tmp_path.iterdir()) == []
