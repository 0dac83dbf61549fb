"""`fairway reserve`, `complete`, `fail`, `renew`, `release`: a worker that is a script."""

from __future__ import annotations

import base64
from pathlib import Path

import fairway
from fairway.cli.app import DONE, FAILED
from tests.cli.conftest import Cli


def test_a_script_reserves_and_answers(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        leases = cli("reserve", file, "--max", 13, "--lease", "5m", "--json").jsons
        assert len(leases) == 13 and cli("reserve", file, "--json").code == FAILED
        acme = [one for one in leases if one["tenant"] == "acme"]
        first = acme[0]
        assert (first["text"], base64.b64decode(first["payload"]), first["metadata"]) == (
            "one",
            b"one",
            {"mode": "preview"},
        )
        receipts = [one["receipt"] for one in acme]
        assert cli("renew", file, *receipts, "--lease", "10m", "--json").jsons[0]["outcome"] == "renewed"
        assert cli("complete", file, receipts[0], "--result", "ONE").code == DONE
        told = cli("fail", file, receipts[1], "--error", "no network", "--delay", "0", "--json")
        assert (told.code, told.json["outcome"]) == (DONE, "retrying")
        assert cli("release", file, receipts[2], "--json").json == {
            "receipt": receipts[2],
            "outcome": "released",
        }
        again = cli("reserve", file, "-n", 5, "--json").jsons
        assert sorted((one["index"], one["attempt"]) for one in again) == [(1, 2), (2, 1)]
        told = cli("complete", file, *receipts, "--json")
        assert [one["outcome"] for one in told.jsons] == ["already", "lost", "lost"]
        assert told.code == FAILED
        assert [result.data for result in q.results(int(first["submission"]))] == [b"ONE"]
        assert cli("fail", file, again[0]["receipt"], "--give-up", "--json").json["outcome"] == "dead"


def test_leases_are_shown_in_a_table_and_nothing_is_said_as_such(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        told = cli("reserve", file, "-n", 13, "--strategy", "OldestFirst")
        assert told.code == DONE and "preview" not in told.out and "three" in told.out
        told = cli("reserve", file, "--wait", "50ms")
        assert (told.code, told.out) == (FAILED, "") and "nothing to hand out" in told.err
        assert q.stats().chunks_leased == 13


def test_a_named_reservation_comes_back(cli: Cli, file: Path) -> None:
    with fairway.open(file):
        named = ["reserve", file, "-n", 2, "--consumer", "nightly", "--seq", 7, "--json"]
        batch = cli(*named).jsons
        receipts = [one["receipt"] for one in batch]
        assert cli("complete", file, receipts[0]).code == DONE
        assert [one["receipt"] for one in cli(*named).jsons] == receipts
        (consumer,) = cli("consumers", file, "--json").jsons
        assert (consumer["name"], consumer["seqs"]) == ("nightly", [7])
        assert "nightly" in cli("consumers", file).out


def test_what_is_no_receipt_is_refused(cli: Cli, file: Path) -> None:
    with fairway.open(file):
        told = cli("complete", file, "nonsense", "--json")
        assert (told.code, told.error["code"]) == (FAILED, "bad_argument")
        told = cli("reserve", file, "--strategy", "Unfair", "--json")
        assert (told.code, told.error["code"]) == (FAILED, "bad_strategy")
        told = cli("reserve", file, "--consumer", "nightly", "--json")
        assert (told.code, told.error["code"]) == (FAILED, "bad_argument")


def test_what_others_wrote_says_nothing_to_the_terminal(cli: Cli, file: Path) -> None:
    evil = "x\x1b]0;evil\x07\x9b31m"
    with fairway.open(file) as q:
        q.put(evil.encode(), tenant=evil, metadata={"a": evil}, priority=100)
        said = [
            cli("reserve", file, "--max", 20),
            cli("tenants", file),
            cli("status", file),
            cli("complete", file, evil),
        ]
    for told in said:
        assert not set("\x1b\x07\x9b") & set(told.out + told.err), told
    assert "x\\x1b]0;evil\\x07\\x9b31m" in said[0].out + said[1].out


def test_receipts_come_from_standard_input_too(cli: Cli, file: Path, monkeypatch) -> None:
    with fairway.open(file) as q:
        leases = q.reserve(max=3)
        Path("receipts.txt").write_text("".join(f"{lease.receipt}\n" for lease in leases))
        with open("receipts.txt") as lines:
            monkeypatch.setattr("sys.stdin", lines)
            assert [one["outcome"] for one in cli("complete", file, "--json").jsons] == ["done"] * 3
        Path("receipts.txt").write_bytes(b"\xff\xfe\n")
        with open("receipts.txt", encoding="utf-8") as lines:
            monkeypatch.setattr("sys.stdin", lines)
            told = cli("complete", file, "--json")
            assert (told.code, told.error["code"]) == (FAILED, "bad_argument")
