"""Every command beside a living host process, with --json that a program can read; backups among them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED
from fairway.cli.commands import COMMANDS, QUEUE_COMMANDS
from tests.cli.conftest import Cli, Told


@pytest.mark.real
def test_every_command_works_beside_a_host_and_speaks_json(cli: Cli, hosted: Path, tmp_path: Path) -> None:
    used: set[str] = set()

    def json(*words: object, code: int = DONE) -> Told:
        used.add(str(words[1]) if words[0] == "queue" else str(words[0]))
        place = 2 if words[0] == "queue" else 1
        told = cli(*words[:place], hosted, *words[place:], "--json")
        assert (told.code, told.err) == (code, ""), words
        assert told.jsons or code, words
        return told

    json("queue", "list"), json("queue", "show"), json("queue", "create", "--if-missing")
    json("queue", "configure", "--attempts-max", 2)
    json("queue", "pause", "--tenant", "whale")
    (tmp_path / "lines.txt").write_text("a\nb\n")
    job = json("submit", "lines.txt", "-t", "new").json["id"]
    json("put", "hello", "-t", "small")
    json("queue", "resume", "--tenant", "whale")
    first, second, third, *rest = json("reserve", "-n", 5).jsons
    json("complete", first["receipt"]), json("renew", second["receipt"])
    json("fail", second["receipt"], "--give-up"), json("release", third["receipt"])
    json("release", *(one["receipt"] for one in rest))
    json("work", "cat", "--until-empty")
    assert json("status", job, "--wait").json["state"] == "completed"
    assert [one["text"] for one in json("results", job).jsons] == ["a", "b"]
    json("status"), json("top", "--once", "--interval", "100ms"), json("explain")
    json("tenants", "small", "--weight", 2)
    json("put", "again"), json("reserve", "--consumer", "nightly", "--seq", 1)
    assert json("consumers").json["seqs"] == [1]
    failed = second["submission"]
    json("put", "bad", "-t", "bad")
    (bad,) = json("reserve").jsons
    json("fail", bad["receipt"], "--give-up")
    assert [one["tenant"] for one in json("dead").jsons][-1] == "bad"
    json("redrive", failed)
    json("cancel", failed)
    made = json("backup", tmp_path / "copy.db").json
    assert made["queues"][0]["queue"] == "default" and made["bytes"] == (tmp_path / "copy.db").stat().st_size
    assert json("queue", "delete", "--yes").json == {
        "queue": "default",
        "deleted": True,
    }  # last: the host hears of it
    # The audit starts Spark (tests/spark/test_audit_queue.py has it), and a server is a host (tests/server).
    assert used == {one.name for one in (*COMMANDS, *QUEUE_COMMANDS)} - {"completion", "audit", "serve"}


def test_a_backup_is_told_and_a_second_one_replaces_it_only_when_asked(cli: Cli, file: Path) -> None:
    told = cli("backup", file, "copy.db")
    assert told.code == DONE and "checked" in told.out and "default (2 active submissions)" in told.out
    told = cli("backup", file, "copy.db", "--json")
    assert (told.code, told.error["code"]) == (FAILED, "bad_argument")
    assert cli("backup", file, "copy.db", "--replace").code == DONE
    with fairway.open("copy.db") as q:
        assert q.stats().chunks_waiting == 13
