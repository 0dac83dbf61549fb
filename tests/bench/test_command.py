"""`fairway bench`: the list, one of them, and what it says where there is nothing to measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.cli import bench
from fairway.cli.app import DONE, FAILED, run
from tools.bench import names


def test_without_a_name_it_lists_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--json"]) == DONE
    told = json.loads(capfd.readouterr().out)
    assert sorted(told) == names()
    assert all(sentence.endswith(".") for sentence in told.values())
    assert run(["bench"]) == DONE
    said = capfd.readouterr().out
    assert all(name in said for name in names())


def test_a_bench_that_is_not_there_is_answered_with_those_that_are(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "nosuch"]) == FAILED
    said = capfd.readouterr().err
    assert "nosuch" in said and "embedded" in said


def test_an_installed_package_says_where_benches_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "d" / "bench.py"))
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "embedded"]) == FAILED
    assert "source tree" in capfd.readouterr().err


@pytest.mark.real
def test_it_runs_one_and_gives_it_more_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["bench", "strategies", "--quick", "--json", "--", "--only", "NewestFirst", "--no-pauses"])
        == DONE
    )
    told = json.loads(capfd.readouterr().out)
    assert told["bench"] == "strategies"
    assert [row[0] for row in told["tables"][0]["rows"]] == ["`NewestFirst`"]
    assert run(["bench", "strategies", "--", "--bogus"]) == FAILED
    assert "--bogus" in capfd.readouterr().err
