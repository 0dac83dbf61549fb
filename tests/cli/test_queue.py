"""`fairway queue`, `tenants`, `status`, `cancel`, `dead`, `redrive`: looking at a queue and steering it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED
from tests.cli.conftest import Cli


def test_a_queue_is_made_once(cli: Cli, tmp_path: Path) -> None:
    told = cli(
        "queue",
        "create",
        "new.db",
        "--queue",
        "images",
        "--attempts-max",
        3,
        "--lease-seconds",
        "5m",
        "--json",
    )
    assert told.code == DONE
    assert (told.json["config"]["attempts_max"], told.json["config"]["lease_seconds"]) == (3, 300.0)
    told = cli("queue", "create", "new.db", "--queue", "images")
    assert told.code == FAILED and "--if-missing" in told.err
    assert cli("queue", "create", "new.db", "--queue", "images", "--if-missing").code == DONE
    assert cli("queue", "create", "new.db").code == DONE
    assert [one["queue"] for one in cli("queue", "list", "new.db", "--json").jsons] == ["images", "default"]
    assert "images" in cli("queue", "list", "new.db").out
    assert cli("queue", "create", tmp_path / "none" / "x.db", "--json").error["code"] == "bad_argument"
    assert cli("queue", "create", "new.db", "--queue", "no/slash", "--json").error["code"] == "bad_argument"


def test_settings_are_shown_and_changed(cli: Cli, file: Path) -> None:
    strategy = 'MaxSimultaneous("tenant", 5, Fair)'
    told = cli("queue", "configure", file, "--host", "--strategy", strategy, "--strategy-locked", "--json")
    assert (told.json["strategy"], told.json["strategy_locked"]) == (strategy, True)
    assert cli("queue", "show", file, "--json").json["config"] == told.json
    assert strategy in cli("queue", "show", file).out
    assert (
        cli("queue", "configure", file, "--host", "--strategy-free", "--json").json["strategy_locked"]
        is False
    )
    told = cli("queue", "configure", file, "--host")
    assert told.code == FAILED and "nothing to change" in told.err
    told = cli("queue", "configure", file, "--host", "--attempts-max", 0, "--json")
    assert told.error["code"] == "bad_argument"
    assert cli("queue", "configure", file, "--host", "--strategy", "Unfair").code == FAILED


def test_pauses_of_a_queue_a_tenant_and_a_submission_are_independent(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        id = next(q.submissions(tenant="acme")).id
        assert "queue 'default' is paused" in cli("queue", "pause", file).out
        assert cli("queue", "pause", file, "--tenant", "whale", "--json").json["paused"] is True
        assert cli("queue", "pause", file, "--submission", id).code == DONE
        assert "(paused)" in cli("queue", "list", file).out and "(paused)" in cli("status", file).out
        assert q.reserve() == []
        for words in ([], ["--tenant", "whale"], ["--submission", id]):
            assert q.reserve(max=1) == [] or words == ["--submission", id]
            assert cli("queue", "resume", file, *words).code == DONE
        assert len(q.reserve(max=100)) == 12
        assert (
            cli("queue", "pause", file, "--tenant", "a", "--submission", id, "--json").error["code"]
            == "bad_argument"
        )


def test_tenants_are_listed_weighed_and_paused(cli: Cli, file: Path) -> None:
    assert [(one["name"], one["waiting"]) for one in cli("tenants", file, "--json").jsons] == [
        ("acme", 3),
        ("whale", 10),
    ]
    assert cli("tenants", file, "--json").jsons[0]["oldest"] > 1e9
    told = cli("tenants", file, "acme", "--weight", 5, "--pause", "--host", "--json")
    assert (told.json["weight"], told.json["paused"]) == (5.0, True)
    assert cli("tenants", file, "acme", "--resume", "--host", "--json").json["paused"] is False
    assert cli("tenants", file, "new", "--weight", 2, "--host", "--json").json["weight"] == 2.0
    assert "whale" in cli("tenants", file).out
    assert cli("tenants", file, "nobody", "--json").code == FAILED
    assert "say which tenant" in cli("tenants", file, "--weight", 5, "--host").err
    assert cli("tenants", file, "acme", "--weight", 1000, "--host").code == FAILED
    assert cli("tenants", file, "acme", "--pause", "--resume", "--host").code == FAILED


def test_a_tenant_that_is_not_there_is_told_by_name(cli: Cli, file: Path) -> None:
    told = cli("tenants", file, "acmee")
    assert (told.code, told.out) == (FAILED, "") and "there is no tenant 'acmee'" in told.err
    assert cli("tenants", file, "acmee", "--json").error["code"] == "not_found"


def test_a_redrive_of_all_says_so_if_nothing_is_dead(cli: Cli, file: Path) -> None:
    told = cli("redrive", file, "--all", "--host")
    assert (told.code, told.out) == (DONE, "no chunk is dead\n")
    assert cli("redrive", file, "--all", "--host", "--json").out == ""


def test_status_tells_of_the_queue_and_of_submissions(cli: Cli, file: Path) -> None:
    told = cli("status", file, "--json").json
    assert (told["stats"]["chunks_waiting"], told["more"]) == (13, False)
    acme, whale = told["submissions"]
    assert cli("status", file, acme["id"], whale["id"], "--json").jsons == [acme, whale]
    assert "mode=preview" in cli("status", file, acme["id"]).out
    assert cli("status", file, "--tenant", "whale", "--json").json["submissions"] == [whale]
    assert cli("status", file, "--meta", "mode=preview", "--json").json["submissions"] == [acme]
    assert cli("status", file, "--state", "failed", "--json").json["submissions"] == []
    limited = cli("status", file, "--limit", 1)
    assert acme["id"] in limited.out and whale["id"] not in limited.out and "--limit" in limited.out
    assert cli("status", file, 5, "--json").error["code"] == "not_found"


def test_status_waits_for_the_end(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        acme = next(q.submissions(tenant="acme"))
        told = cli("status", file, acme.id, "--wait", "--timeout", "50ms", "--json")
        assert (told.code, told.error["code"]) == (FAILED, "wait_timeout")
        q.complete(q.reserve(max=3, strategy='SelectOnly("tenant", "acme", Fair)'))
        assert cli("status", file, acme.id, "--wait", "--json").json["state"] == "completed"
        whale = q.cancel(next(q.submissions(tenant="whale", state="active")).id)
        assert cli("status", file, acme.id, whale.id, "--wait").code == FAILED


def test_cancel_tries_all_of_them(cli: Cli, file: Path) -> None:
    id = cli("status", file, "--json").json["submissions"][0]["id"]
    told = cli("cancel", file, 5, id, "--host")
    assert told.code == FAILED and "no submission 5" in told.err and f"{id} is cancelled" in told.out
    told = cli("cancel", file, id, "--host", "--json")
    assert (told.code, told.json["error"]["code"]) == (FAILED, "already_ended")
    assert cli("cancel", file, "--host").code == FAILED


def test_the_dead_are_listed_and_redriven(cli: Cli, file: Path) -> None:
    with fairway.open(file) as q:
        bad = [q.put(b"bad", tenant=f"t{i}") for i in range(3)]
        for lease in q.reserve(max=100):
            if lease.payload == b"bad":
                q.fail(lease, "a trace\nValueError: broken", retry=False)
        listed = cli("dead", file, "--json").jsons
        assert [one["submission"] for one in listed] == [str(one.id) for one in bad]
        assert "ValueError: broken" in cli("dead", file).out
        assert len(cli("dead", file, "--limit", 2, "--json").jsons) == 2
        assert "--limit" in cli("dead", file, "--limit", 2).out
        assert cli("redrive", file, bad[0].id, "--json").json["life"] == 2
        assert cli("redrive", file, bad[0].id).code == FAILED, "nothing is dead in it any more"
        assert len(cli("redrive", file, "--all", "--json").jsons) == 2
        assert cli("dead", file, "--json").jsons == []
        for words in ([], [bad[0].id, "--all"]):
            assert "--all" in cli("redrive", file, *words).err


@pytest.mark.parametrize("words", [["status"], ["tenants"], ["queue", "show"], ["consumers"], ["dead"]])
def test_strange_names_are_shown_as_they_are(cli: Cli, tmp_path: Path, words: list[str]) -> None:
    with fairway.open(tmp_path / "odd.db") as q:
        q.configure(attempts_max=1)
        q.put(b"x", tenant="[red]a[/b]", metadata={"[bold]": "[/]"})
        q.fail(q.reserve(consumer="[c]", seq=1), "[/oops]")
        q.put(b"x", tenant="[red]a[/b]")
    told = cli(*words[:1], *words[1:], "odd.db")
    assert told.code == DONE
    if words == ["tenants"]:
        assert "[red]a[/b]" in told.out
    if words == ["dead"]:
        assert "[/oops]" in told.out
    if words == ["consumers"]:
        assert "[c]" in told.out


def test_queues_of_a_file_are_listed_with_buckets_and_deleted_beside_their_host(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "work.db"
    with fairway.open(path, "kept") as kept, fairway.open(path, "gone") as gone:
        kept.put(b"x")
        gone.put(b"x")
        with fairway.open(path, "events", kind="bucket") as bucket:
            bucket.put(b"x")
        listed = cli("queue", "list", path, "--json").out
        assert [json.loads(line)["queue"] for line in listed.splitlines()] == ["kept", "gone", "events"]
        for name in ("gone", "events"):
            assert cli("queue", "delete", path, "--queue", name, "--yes").code == DONE
        with pytest.raises(fairway.NotFound, match="deleted"):
            gone.put(b"y")
        assert [lease.payload for lease in kept.reserve(9)] == [b"x"]
        assert [
            json.loads(line)["queue"] for line in cli("queue", "list", path, "--json").out.splitlines()
        ] == ["kept"]
    with fairway.open(path, "gone") as anew:
        assert anew.stats().submissions_active == 0 and anew.reserve(9) == []
    assert "no queue" in cli("queue", "delete", path, "--queue", "events", "--yes").err
    for wrong, message in (
        (tmp_path / "none.db", "no file"),
        (":memory:", "memory"),
        ("cassandra://h/k", "server"),
    ):
        with pytest.raises(fairway.CallerError, match=message):
            fairway.delete(wrong, "default")
