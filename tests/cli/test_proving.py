"""`fairway sim` and `fairway verify`, as a person calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fairway import __version__
from fairway.cli.app import DONE, FAILED, USAGE, run


def test_sim_prints_its_figures_and_saves_a_history_that_verify_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["sim", "--seeds", "1", "--start", "7", "--steps", "60", "--save", str(tmp_path), "--json"])
        == DONE
    )
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == 1 and told["calls"] > 50 and told["failing"] == [] and told["faults"]
    (saved,) = told["saved"]
    assert run(["verify", saved]) == DONE
    assert "nothing wrong" in capsys.readouterr().out


def test_the_same_seed_is_the_same_history_whatever_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    figures = []
    for jobs in ("1", "2"):
        assert run(["sim", "--seeds", "4", "--steps", "30", "--jobs", jobs, "--json"]) == DONE
        told = json.loads(capsys.readouterr().out)
        figures.append({name: told[name] for name in ("steps", "calls", "owners", "faults")})
    assert figures[0] == figures[1]


def test_verify_tells_what_is_wrong_with_a_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["sim", "--seeds", "1", "--start", "7", "--steps", "60", "--save", str(tmp_path), "--json"])
    saved = Path(json.loads(capsys.readouterr().out)["saved"][0])
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    answers = [line for line in lines if line["is"] == "end" and isinstance(line.get("ok"), dict)]
    done = next(line for line in answers if "done" in str(line["ok"].get("outcomes")))
    done["ok"]["outcomes"] = [["renewed", 1]]  # not what a completion is answered
    saved.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["verify", str(saved), "--json"]) == FAILED
    violations = json.loads(capsys.readouterr().out)["violations"]
    assert violations and all(violation["what"] and violation["lines"] for violation in violations)


def test_verify_checks_several_histories_each_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"is":"header"}\n')
    bad.write_text('{"is":"header","drained":true}\n')
    assert run(["verify", str(good), str(good)]) == DONE
    assert capsys.readouterr().out.count(f"{good}: 1 lines, 0 requests") == 2
    assert run(["verify", str(bad), str(good)]) == FAILED
    told = capsys.readouterr().out
    assert "1 violations" in told and told.endswith("nothing wrong\n")
    assert run(["verify", str(good), str(bad), "--json"]) == FAILED
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["history"], len(one["violations"])) for one in plain] == [(str(good), 0), (str(bad), 1)]
    bad.write_text("{}\n")
    assert run(["verify", str(good), str(bad)]) == FAILED
    assert f"{bad}: line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["verify", "nowhere.jsonl"], FAILED, "nowhere.jsonl"),
        (["sim", "--seeds", "0"], USAGE, "seeds"),
        (["sim", "--sedes", "3"], USAGE, "--sedes"),
        (["simm"], USAGE, "simm"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    assert says in capsys.readouterr().err


def test_a_file_that_is_no_history_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("roses are red\n")
    assert run(["verify", str(path)]) == FAILED
    assert "line 1 is not a line of a history" in capsys.readouterr().err


BAD_CALLS = {
    "a submit without its offers": ({"op": "submit"}, {"ids": [1]}),
    "a reserve without its epoch": ({"op": "reserve", "args": {"max": 1}}, {"spans": [[1, 0, 1, 1]]}),
    "an answer of another kind": ({"op": "reserve", "args": {"max": 1}}, {"spans": 7}),
    "an answer that is a list": ({"op": "reserve", "args": {"max": 1}}, [[1, 0, 1, 1]]),
}


@pytest.mark.parametrize("bad", BAD_CALLS)
@pytest.mark.parametrize("kind", ["fair", "linear", "bucket"])
def test_a_history_whose_lines_lack_fields_is_refused_or_judged(
    bad: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, answered = BAD_CALLS[bad]
    lines = [
        {"is": "header", "origin": {"kind": kind}},
        {"is": "begin", "t": 1.0, "call": 1, "who": "a", **asked},
        {"is": "end", "t": 2.0, "call": 1, "ok": answered},
    ]
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["verify", str(path)]) == FAILED
    told = capsys.readouterr()
    assert "has something else where" in told.err or "violations" in told.out


def test_a_simulated_cluster_without_the_driver_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = ("cassandra", "fairway.store.cassandra", "fairway.testing.imagined")
    for name in [name for name in sys.modules if name.startswith(gone)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cassandra", None)
    assert run(["sim", "--store", "cassandra", "--seeds", "1"]) == FAILED
    assert "fairway[cassandra]" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == DONE
    assert __version__ in capsys.readouterr().out
    assert run(["--help"]) == DONE
    told = capsys.readouterr().out
    assert all(word in told for word in ("demo", "sim", "verify"))
