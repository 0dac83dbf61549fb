"""Where a command's queue is: an argument, an option or a variable; hosted, or not."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED, USAGE
from fairway.cli.places import Where
from fairway.errors import BadArgument
from tests.cli.conftest import Cli


def test_the_place_is_an_argument_an_option_or_a_variable(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_argument = cli("status", file, "--json").json
    assert cli("status", "--store", file, "--json").json["submissions"] == by_argument["submissions"]
    assert cli("status", f"--store={file}", "--json").json["submissions"] == by_argument["submissions"]
    assert cli("status", file.as_uri(), "--json").json["submissions"] == by_argument["submissions"]
    monkeypatch.setenv("FAIRWAY_STORE", str(file))
    id = by_argument["submissions"][0]["id"]
    assert cli("status", id, "--json").json == by_argument["submissions"][0]
    assert cli("queue", "list", "--json").jsons[0]["queue"] == "default"
    assert cli("status", "--store", "none.db").code == FAILED, "an option is stronger"


def test_the_audit_is_told_its_queue_as_every_other_command_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def audited(place: str, where: Where, *_: object) -> None:
        asked.append((place, where.queue))
        raise BadArgument("enough")

    monkeypatch.setattr("fairway.cli.audit.audited", audited)
    assert cli("audit", "a.db", "-q", "images").code == FAILED
    assert cli("audit", "--store", "b.db").code == FAILED
    monkeypatch.setenv("FAIRWAY_STORE", "c.db")
    monkeypatch.setenv("FAIRWAY_QUEUE", "pages")
    assert cli("audit").code == FAILED
    assert cli("audit", "--store=d.db", "--json").error["message"] == "enough"
    assert asked == [("a.db", "images"), ("b.db", "default"), ("c.db", "pages"), ("d.db", "pages")]


def test_words_after_two_dashes_are_no_options(cli: Cli, file: Path) -> None:
    assert cli("put", file, "--host", "--", "--store", "x").code == DONE
    with fairway.open(file) as q:
        assert {lease.payload for lease in q.reserve(max=100)} >= {b"--store", b"x"}


def test_the_queue_is_an_option_or_a_variable(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fairway.open(file, "other") as q:
        q.put(b"hello")
    assert cli("status", file, "--queue", "other", "--json").json["stats"]["chunks_waiting"] == 1
    monkeypatch.setenv("FAIRWAY_QUEUE", "other")
    assert cli("status", file, "--json").json["stats"]["queue"] == "other"


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["put", "x"],
        ["results", "5"],
        ["top", "--once"],
        ["queue", "list"],
        ["backup", "b.db"],
        ["work", "cat"],
    ],
)
def test_a_file_that_is_not_there_is_not_made(cli: Cli, words: list[str], tmp_path: Path) -> None:
    chain = 2 if words[0] == "queue" else 1
    told = cli(*words[:chain], "none.db", *words[chain:])
    assert told.code == FAILED and "there is no file" in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_message_that_was_taken_for_the_file_is_explained(cli: Cli) -> None:
    told = cli("put", "hello")
    assert told.code == FAILED
    assert "there is no file hello; the first argument names it, unless --store" in told.err


def test_a_folder_is_no_file(cli: Cli, tmp_path: Path) -> None:
    for words in (["status", tmp_path], ["put", tmp_path, "--host", "hello"]):
        told = cli(*words)
        assert told.code == FAILED and f"{tmp_path} is no file" in told.err


def test_a_queue_that_is_not_there_is_not_made_and_those_that_are_there_are_named(
    cli: Cli, file: Path
) -> None:
    for words in (["status", file], ["put", file, "x", "--host"], ["work", file, "cat"]):
        told = cli(*words, "--queue", "thrid")
        assert told.code == FAILED
        assert "has: default" in told.err and "fairway queue create" in told.err
    assert [one["queue"] for one in cli("queue", "list", file, "--json").jsons] == ["default"]


def test_without_a_host_a_change_is_refused_and_taught(cli: Cli, file: Path) -> None:
    told = cli("put", file, "hello")
    assert told.code == FAILED and "--host" in told.err and "fairway work" in told.err
    assert cli("put", file, "hello", "--json").error["code"] == "no_host"
    assert cli("put", file, "hello", "--host").code == DONE


def test_a_variable_lets_every_command_host(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWAY_HOST", "1")
    assert cli("put", file, "hello").code == DONE


def test_what_only_looks_works_without_a_host_and_changes_nothing(cli: Cli, file: Path) -> None:
    id = cli("status", file, "--json").json["submissions"][0]["id"]
    before = file.read_bytes()
    for words in (
        ["status", file],
        ["status", file, id],
        ["tenants", file],
        ["consumers", file],
        ["dead", file],
        ["explain", file],
        ["results", file, id],
        ["queue", "list", file],
        ["queue", "show", file],
        ["top", file, "--once", "--interval", "100ms"],
    ):
        assert cli(*words).code == DONE, words
        assert cli(*words, "--json").code == DONE, words
    assert file.read_bytes() == before


def test_memory_and_what_is_no_queue_are_refused(cli: Cli, tmp_path: Path) -> None:
    assert "works on a file" in cli("status", ":memory:").err
    assert cli("backup", "http://localhost:1", "b.db").code == FAILED
    (tmp_path / "notes.txt").write_text("this is a text and not a queue, and it is long enough to be one" * 3)
    told = cli("status", "notes.txt", "--json")
    assert (told.code, told.error["code"]) == (FAILED, "not_fairway")


def test_too_many_words_are_a_usage_error(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWAY_STORE", str(file))
    assert cli("queue", "show", file).code == USAGE
