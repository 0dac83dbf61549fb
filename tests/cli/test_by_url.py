"""Commands given the URL of a server do what they do on a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairway
from fairway import limits
from fairway.cli.app import DONE, FAILED
from tests.cli.conftest import Cli
from tests.server.live import Live, live


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path) as found:
        yield found


def test_work_is_brought_done_and_looked_at_by_url(cli: Cli, server: Live, tmp_path: Path) -> None:
    url = server.url
    put = cli("put", url, "hello", "--tenant", "acme", "--json")
    assert put.code == DONE, put.err
    status = cli("status", url, "--json")
    assert (status.code, status.json["stats"]["chunks_waiting"]) == (DONE, 1), status.out
    work = cli("work", url, "tr a-z A-Z", "--until-empty", "--json")
    assert (work.code, work.json["done"]) == (DONE, 1), work.err
    (tmp_path / "one.txt").write_text("a")
    submitted = cli("submit", url, str(tmp_path / "one.txt"), "--tenant", "acme", "--json")
    assert submitted.code == DONE, submitted.err
    id = submitted.json["id"]
    assert cli("explain", url).code == DONE
    assert cli("consumers", url, "--json").code == DONE
    assert cli("cancel", url, str(id)).code == DONE
    assert cli("status", url, "--json").json["stats"]["submissions_active"] == 0


def test_what_is_wrong_is_told_as_on_a_file(cli: Cli, server: Live) -> None:
    assert cli("status", server.url, "--queue", "none").code == FAILED
    assert "no queue" in cli("status", server.url, "--queue", "none").err
    server.token("read")  # from the first token on, everybody needs one
    refused = cli("status", server.url)
    assert (refused.code, "token" in refused.err) == (FAILED, True)


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["put", "hello"],
        ["top", "--once"],
        ["results", "1"],
        ["queue", "create"],
        ["queue", "list"],
    ],
    ids=lambda words: " ".join(words),
)
def test_a_server_that_is_not_there_is_told_soon_and_that_nothing_was_sent(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(limits, "KNOCK_SECONDS", 0.2)
    monkeypatch.setattr(limits, "CLIENT_RETRY_SECONDS", 3600.0)
    words = 2 if command[0] == "queue" else 1
    refused = cli(*command[:words], "http://127.0.0.1:9", *command[words:])
    assert refused.code == FAILED and "nothing was sent" in refused.err, refused


def test_queues_of_both_kinds_are_listed_and_deleted_by_url(cli: Cli, server: Live) -> None:
    url = server.url
    assert cli("put", url, "hello").code == DONE
    with fairway.open(url, "events", kind="bucket") as bucket:
        bucket.put(b"x")
    listed = [json.loads(line) for line in cli("queue", "list", url, "--json").out.splitlines()]
    assert [(one["queue"], one.get("kind")) for one in listed] == [("default", None), ("events", "bucket")]
    assert (listed[0]["chunks_waiting"], listed[1]["ready"]) == (1, 1)
    shown = cli("queue", "list", url)
    assert shown.code == DONE and "bucket" in shown.out, shown.err
    unsure = cli("queue", "delete", url, "--queue", "events")
    assert (unsure.code, "--yes" in unsure.err) == (FAILED, True)
    for name in ("events", "default"):
        deleted = cli("queue", "delete", url, "--queue", name, "--yes", "--json")
        assert (deleted.code, deleted.json) == (DONE, {"queue": name, "deleted": True}), deleted.err
    assert cli("queue", "list", url, "--json").out == ""
    assert "no queue" in cli("queue", "delete", url, "--queue", "events", "--yes").err


def test_a_token_comes_from_the_environment(cli: Cli, server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWAY_TOKEN", server.token("read"))
    assert cli("status", server.url).code == DONE
    assert cli("put", server.url, "hello").code == FAILED, "it may only read"
