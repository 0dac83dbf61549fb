"""`fairway token` and the settings of `fairway serve`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fairway
from fairway.cli.app import run
from fairway.server.places import file_place
from fairway.server.settings import settings
from fairway.server.tokens import Tokens
from tests.server.live import live


def test_a_token_is_made_shown_once_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "work.db")]
    made = [
        "token",
        "create",
        "ci",
        "--queue",
        "orders-*",
        "--right",
        "submit,read",
        "--expires",
        "30d",
        *store,
    ]
    assert run(made) == 0
    said = capsys.readouterr()
    text = said.out.strip()
    assert f"It is in {tmp_path / 'work.db-tokens'}." in said.err  # a token of another file opens nothing
    token = Tokens(str(tmp_path / "work.db-tokens")).find(text)
    assert (token.queues, token.rights) == (("orders-*",), ("submit", "read"))
    assert token.expires - token.created == 30 * 86400
    assert run(["token", "list", "--json", *store]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == [token.id] and text not in json.dumps(listed)
    assert run(["token", "list", *store]) == 0
    assert "orders-*" in capsys.readouterr().out
    assert run(["token", "create", "second", "--json", *store]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["rights"] == ["read"] and second["token"].startswith(f"fw_{second['id']}_")
    assert run(["token", "revoke", second["id"], "--json", *store]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": second["id"], "name": "second", "revoked": True}
    assert run(["token", "revoke", token.id, *store]) == 0
    capsys.readouterr()
    with pytest.raises(fairway.Unauthorized):
        Tokens(str(tmp_path / "work.db-tokens")).find(text)
    assert run(["token", "revoke", token.id, *store]) == 1


def test_a_list_of_no_tokens_names_the_file_that_was_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "list", "--store", str(tmp_path / "wrok.db")]) == 0
    assert f"There is no token in {tmp_path / 'wrok.db-tokens'}." in capsys.readouterr().err


def test_a_queue_that_a_server_lacks_is_made_by_the_command_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live(tmp_path) as server:
        assert run(["status", server.url, "--queue", "more"]) == 1
        assert "`fairway queue create URL --queue more`" in capsys.readouterr().err
        assert run(["queue", "create", server.url, "--queue", "more"]) == 0
        assert run(["status", server.url, "--queue", "more"]) == 0


def test_a_token_is_valid_for_any_duration_that_commands_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "work.db"
    assert run(["token", "create", "ci", "--expires", "1.5h", "--store", str(store)]) == 0
    token = Tokens(f"{store}-tokens").find(capsys.readouterr().out.strip())
    assert token.expires - token.created == 5400
    assert run(["token", "create", "ci", "--expires", "soon", "--store", str(store)]) == 2
    assert "'soon' is not a duration" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--right", "root"], ["--queue", ""]])
def test_a_wrong_token_is_refused_with_reasons(
    tmp_path: Path, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "create", "x", *wrong, "--store", str(tmp_path / "w.db")]) == 1
    assert "fairway:" in capsys.readouterr().err
    assert not (tmp_path / "w.db-tokens").exists()


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "fairway.toml"
    file.write_text('port = 1\nworkers = 2\nstore = "from-file.db"\nobjects = ["s3://bucket/in"]\n')
    environ = {"FAIRWAY_HOST": "1", "FAIRWAY_PORT": "3", "FAIRWAY_QUEUES": "a,b", "FAIRWAY_CONFIG": str(file)}
    found = settings({"workers": 4, "listen": None}, environ)
    assert (found.port, found.workers, found.store, found.queues) == (3, 4, "from-file.db", ["a", "b"])
    assert found.objects == ["s3://bucket/in"] and found.listen == "127.0.0.1"
    assert found.tokens_path == "from-file.db-tokens"
    assert settings({}, {"FAIRWAY_LISTEN": "::1"}).listen == "::1"


def test_a_server_keeps_the_window_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fairway.toml"
    file.write_text("window_rows = 7\n")
    assert settings({}, {}, str(file)).window_rows == 7
    assert settings({}, {"FAIRWAY_WINDOW_ROWS": "8"}, str(file)).window_rows == 8
    told = {"window_rows": 3, "store": str(tmp_path / "w.db")}
    found = settings(told, {"FAIRWAY_WINDOW_ROWS": "8"}, str(file))
    member, let_go = file_place(found).enter("jobs", create=True, host=True)
    try:
        host: Any = member.way
        assert host.usable().state.aside.rows_max == 3
    finally:
        let_go()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70000}, "port must be"),
        ({"workers": -1}, "workers must be"),
        ({"window_rows": 0}, "window_rows must be"),
        ({"store": ":memory:"}, "store must be"),
        ({"queues": ["../x"]}, "queue must be"),
        ({"log_level": "loud"}, "log_level must be"),
        ({"nonsense": 1}, "nonsense"),
        ({"listen": "192.0.2.1"}, "no TLS"),
    ],
)
def test_a_wrong_setting_is_refused_with_reasons(given: dict[str, object], message: str) -> None:
    with pytest.raises(fairway.BadArgument, match=message):
        settings(given, {})


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(fairway.BadArgument, match="cannot be read"):
        settings({}, {}, str(tmp_path / "missing.toml"))
    (tmp_path / "bad.toml").write_text("port = ")
    with pytest.raises(fairway.BadArgument, match="not TOML"):
        settings({}, {}, str(tmp_path / "bad.toml"))


def test_the_store_is_given_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path / "w.db"), "--store", str(tmp_path / "v.db")]) == 2
    assert "Too many arguments" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.real
@pytest.mark.parametrize("named", [["--store"], []], ids=["by an option", "as every place is"])
def test_where_it_serves_is_told_to_programs_as_json(tmp_path: Path, named: list[str]) -> None:
    store = str(tmp_path / "w.db")
    command = [sys.executable, "-m", "fairway.cli", "serve", *named, store, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        told = json.loads(process.stdout.readline())
        process.terminate()
        assert process.stdout.read() == "" and process.wait(60) == 0
        (noted,) = map(json.loads, process.stderr)  # who mistyped a path is served, too
    assert noted["message"] == f"there was no file {store}; it is made with its first queue"
    assert told["store"] == store and told["url"].startswith("http://127.0.0.1:")


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["serve", "--store", str(tmp_path / "w.db"), "--port", port]) == 1
    assert f"port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_file_that_cannot_be_served_is_told_before_anything_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("what I wanted to remember\n" * 100)
    flags = ["--port", "0", "--workers", workers]
    assert run(["serve", "--store", str(notes), *flags]) == 1
    told = capsys.readouterr()
    assert "is not a Fairway queue" in told.err and "Fairway serves" not in told.out
    with fairway.open(tmp_path / "work.db") as q:
        q.put(b"x")
    damaged = tmp_path / "work.db"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100] + bytes(len(whole) - 100))
    assert run(["serve", "--store", str(damaged), *flags]) == 1
    told = capsys.readouterr()
    assert "damaged" in told.err and "Fairway serves" not in told.out


def test_a_file_that_was_just_made_is_served(tmp_path: Path) -> None:
    (tmp_path / "work.db").write_bytes(b"")
    with live(tmp_path) as server, server.http() as http:
        assert http.get("/v1/queues").json()["queues"] == ["default"]


def test_a_store_that_cannot_be_made_is_not_told_as_a_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(["serve", "--store", str(tmp_path / "file" / "work.db"), "--port", "0"]) == 1
    told = capsys.readouterr().err
    assert "store:" in told and "port" not in told


def test_a_certificate_that_is_none_is_told_before_anything_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert = tmp_path / "cert.pem"
    tls = ["--tls-cert", str(cert), "--tls-key", str(cert), "--workers", "1"]
    for content in (None, "no certificate"):
        if content is not None:
            cert.write_text(content)
        assert run(["serve", "--store", str(tmp_path / "w.db"), "--port", "0", *tls]) == 1
        assert "tls_cert" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_key_that_cannot_be_read_is_told_before_anything_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    (tmp_path / "w.db-server.key").mkdir()
    assert run(["serve", "--store", str(tmp_path / "w.db"), "--port", "0", "--workers", workers]) == 1
    told = capsys.readouterr()
    assert "w.db-server.key" in told.err and "Fairway serves" not in told.out


def test_a_folder_of_tokens_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "create", "x", "--store", str(tmp_path / "none" / "w.db")]) == 1
    assert "cannot be written" in capsys.readouterr().err
