"""`fairway submit` and `fairway put`: what goes in is what a worker is given."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import DONE, FAILED
from tests.cli.conftest import Cli


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    with fairway.open(tmp_path / "work.db"):
        return tmp_path / "work.db"


def payloads(file: Path) -> list[bytes | None]:
    with fairway.open(file) as q:
        leases = q.reserve(max=1000)
        found = [lease.payload for lease in sorted(leases, key=lambda one: (one.submission, one.index))]
        q.release(leases)
    return found


def test_a_line_is_a_chunk_and_none_is_lost_or_changed(cli: Cli, empty: Path) -> None:
    Path("lines.txt").write_bytes("one\n\r\ntwo\r\n  Ünïcode \n\xff last".encode("latin-1"))
    told = cli("submit", empty, "--host", "-t", "acme", "lines.txt", "--json")
    assert (told.code, told.json["total"], told.json["tenant"]) == (DONE, 5, "acme")
    assert payloads(empty) == [b"one", b"", b"two", "  Ünïcode ".encode("latin-1"), b"\xff last"]


def test_some_lines_or_whole_files_are_a_chunk(cli: Cli, empty: Path) -> None:
    Path("a.txt").write_text("1\n2\n3\n")
    Path("b.txt").write_text("4\n5\n")
    assert cli("submit", empty, "--host", "--lines", 2, "a.txt", "b.txt").code == DONE
    assert payloads(empty) == [b"1\n2", b"3", b"4\n5"]
    told = cli("submit", empty, "--host", "--whole", "a.txt", "b.txt", "--quiet")
    with fairway.open(empty) as q:
        assert q.submission(int(told.out)).total == 2
    assert payloads(empty)[3:] == [b"1\n2\n3\n", b"4\n5\n"]


@pytest.mark.real
def test_standard_input_is_a_file_too(empty: Path) -> None:
    for words in (
        ["submit", str(empty), "--host"],
        ["submit", str(empty), "--host", "-"],
        ["put", str(empty), "--host"],
    ):
        command = [sys.executable, "-c", "from fairway.cli.app import main; main()", *words]
        done = subprocess.run(command, input=b"one\ntwo\n", capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert payloads(empty) == [b"one", b"two"] * 3


def test_everything_that_is_said_of_the_work_arrives(cli: Cli, empty: Path) -> None:
    Path("info.bin").write_bytes(b"\x00\x01")
    words = [
        "--meta",
        "mode=preview",
        "--meta",
        "n:=5",
        "--meta",
        "eq=a=b",
        "--info",
        "@info.bin",
        "--priority",
        7,
    ]
    words += [
        "--key",
        "k1",
        "--weight",
        "2.5",
        "--policy",
        "dead_letter",
        "--deadline",
        "2h",
        "--attempts-max",
        3,
    ]
    made = cli("submit", empty, "--host", "--chunks", 4, "-t", "acme", *words, "--json").json
    assert made["metadata"] == {"mode": "preview", "n": 5, "eq": "a=b"}
    assert (made["info"], made["priority"], made["key"], made["policy"]) == ("AAE=", 7, "k1", "dead_letter")
    assert made["deadline"] - made["created"] == pytest.approx(7200)
    again = cli("submit", empty, "--host", "--chunks", 4, "-t", "acme", *words, "--json").json
    assert again["id"] == made["id"]
    assert cli("tenants", empty, "acme", "--json").json["weight"] == 2.5
    told = cli("submit", empty, "--host", "--chunks", 5, "-t", "acme", "--key", "k1", "--json")
    assert (told.code, told.error["code"]) == (FAILED, "key_conflict")


def test_what_is_delayed_is_not_handed_out(cli: Cli, empty: Path) -> None:
    assert cli("put", empty, "later", "--delay", "1h", "--host").code == DONE
    assert payloads(empty) == []


def test_objects_are_named_or_uploaded(cli: Cli, empty: Path, tmp_path: Path) -> None:
    prefix = (tmp_path / "data").as_uri()
    made = cli(
        "submit", empty, "--host", "--chunks", 1_000_000, "--objects", f"{prefix}/there", "--json"
    ).json
    assert made["total"] == 1_000_000
    Path("lines.txt").write_text("one\ntwo\n")
    assert cli("submit", empty, "--host", "lines.txt", "--objects", f"{prefix}/up").code == DONE
    assert (tmp_path / "data/up/1").read_bytes() == b"two"


def test_too_much_inline_is_refused_with_the_way_out(cli: Cli, empty: Path) -> None:
    Path("big.txt").write_bytes((b"x" * 1000 + b"\n") * 34_000)
    told = cli("submit", empty, "--host", "big.txt")
    assert told.code == FAILED and "--objects" in told.err
    assert payloads(empty) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["none.txt"], "none.txt cannot be read"),
        (["--chunks", "3", "lines.txt"], "not both"),
        (["--chunks", "3", "--weight", "1000"], "weight"),
        (["--chunks", "3", "--info", "@none.bin"], "none.bin cannot be read"),
        (["--chunks", "3", "--meta", "tenant=x"], "give it as tenant="),
    ],
)
def test_bad_work_is_refused_and_nothing_is_stored(cli: Cli, empty: Path, words: list[str], why: str) -> None:
    Path("lines.txt").write_text("one\n")
    told = cli("submit", empty, "--host", *words)
    assert told.code == FAILED and why in told.err
    with fairway.open(empty) as q:
        assert q.stats().submissions_active == 0


def test_a_submit_can_wait_for_its_end(cli: Cli, empty: Path) -> None:
    def work(fail: bool) -> None:
        (lease,) = q.reserve(wait_seconds=60)
        q.fail(lease, "broken", retry=False) if fail else q.complete(lease)

    with fairway.open(empty) as q:
        for fail in (False, True):
            worker = threading.Thread(target=work, args=(fail,))
            worker.start()
            told = cli("submit", empty, "--chunks", 1, "--wait", "--json")
            worker.join()
            assert told.code == (FAILED if fail else DONE)
            assert told.json["state"] == ("failed" if fail else "completed")
        told = cli("submit", empty, "--chunks", 1, "--wait", "--timeout", "100ms", "--json")
        assert (told.code, told.error["code"]) == (FAILED, "wait_timeout")


def test_messages_are_words_or_files(cli: Cli, empty: Path) -> None:
    Path("page.html").write_text("<html>\n")
    told = cli("put", empty, "--host", "-t", "acme", "one", "two", "--file", "page.html", "--json")
    assert [one["policy"] for one in told.jsons] == ["dead_letter"] * 3
    assert payloads(empty) == [b"one", b"two", b"<html>\n"]
    told = cli("put", empty, "--host", "one", "two", "--key", "k")
    assert told.code == FAILED and "one message" in told.err
    ids = {cli("put", empty, "--host", "one", "--key", "k", "--quiet").out for _ in range(2)}
    assert len(ids) == 1 and int(ids.pop()) > 0


def test_nothing_to_submit_at_a_terminal_is_said(
    cli: Cli, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = os.openpty()
    with open(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        for command, why in (("submit", "--chunks N"), ("put", "nothing to put"), ("complete", "no receipt")):
            told = cli(command, empty, "--host")
            assert told.code == FAILED and why in told.err
    os.close(master)
