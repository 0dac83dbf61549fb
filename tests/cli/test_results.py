"""`fairway results`: every registered result, in index order, as it was given."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED
from tests.cli.conftest import Cli


@pytest.fixture
def done(tmp_path: Path) -> tuple[Path, int]:
    with fairway.open(tmp_path / "work.db") as q:
        job = q.submit(chunks=4)
        leases = q.reserve(max=4)
        q.complete([leases[3], leases[0], leases[1]], results=[b"\xff\n", b"zero", b""])
    return tmp_path / "work.db", job.id


def test_results_come_a_line_each_or_raw(cli: Cli, done: tuple[Path, int]) -> None:
    file, id = done
    assert cli("results", file, id, "-o", "lines").code == DONE
    assert Path("lines").read_bytes() == b"zero\n\n\xff\n\n"
    assert cli("results", file, id, "-o", "raw", "--raw", "--json").json["results"] == 3
    assert Path("raw").read_bytes() == b"zero\xff\n"


def test_results_are_printed(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        leases = q.reserve(max=3, strategy='SelectOnly("tenant", "acme", Fair)')
        q.complete(leases, results=[(lease.payload or b"").upper() for lease in leases])
    told = cli("results", file, leases[0].submission)
    assert told.out == "ONE\nTWO\nTHREE\n"


def test_results_as_json_are_base64_with_the_text_beside(cli: Cli, done: tuple[Path, int]) -> None:
    file, id = done
    found = cli("results", file, id, "--json").jsons
    assert [one["index"] for one in found] == [0, 1, 3]
    assert [base64.b64decode(one["data"]) for one in found] == [b"zero", b"", b"\xff\n"]
    assert [one["text"] for one in found] == ["zero", "", None]


def test_each_result_goes_to_a_file_of_its_own(cli: Cli, done: tuple[Path, int]) -> None:
    file, id = done
    told = cli("results", file, id, "--folder", "out/deep")
    assert told.code == DONE and "3 results" in told.out
    assert {path.name: path.read_bytes() for path in Path("out/deep").iterdir()} == {
        "0": b"zero",
        "1": b"",
        "3": b"\xff\n",
    }


def test_results_that_are_objects_are_read_or_named(cli: Cli, tmp_path: Path) -> None:
    prefix = (tmp_path / "data").as_uri()
    with fairway.open("work.db" if Path("work.db").exists() else tmp_path / "work.db") as q:
        job = q.submit([b"a", b"b"], objects=prefix)
        leases = q.reserve(max=2)
        q.complete(leases, results=[b"A", b"B"])
    assert cli("results", "work.db", job.id).out == "A\nB\n"
    named = cli("results", "work.db", job.id, "--names", "--json").jsons
    assert all(
        one["object"].startswith(f"{prefix}/{one['index']}.out.") and one["data"] is None for one in named
    )
    assert cli("results", "work.db", job.id, "--names").out.startswith(f"{prefix}/0.out.")


def test_bad_places_and_ids_are_refused(cli: Cli, done: tuple[Path, int]) -> None:
    file, id = done
    assert cli("results", file, 5, "--json").error["code"] == "not_found"
    assert cli("results", file, id, "-o", "a", "--folder", "b").code == FAILED
    assert "cannot be written" in cli("results", file, id, "-o", "none/deep/x").err
    Path("plain").touch()
    assert "cannot be written" in cli("results", file, id, "--folder", "plain/x").err
