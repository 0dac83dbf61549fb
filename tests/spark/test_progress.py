"""Bars on a terminal, and silence elsewhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import fairway
from fairway.spark.progress import Progress, Steps, Written
from tests.spark.screens import Screen, screen_of


def seen(screen: Screen, words: str) -> bool:
    """Whether the words come up; a bar is drawn ten times a second."""
    until = time.monotonic() + 60
    while words not in screen.getvalue() and time.monotonic() < until:
        time.sleep(0.02)
    return words in screen.getvalue()


def payloads(folder: Path, count: int) -> str:
    for at in range(count):
        (part := folder / "job" / f"t{at % 2}").mkdir(parents=True, exist_ok=True)
        (part / str(at)).write_bytes(b"x")
    return f"file://{folder}/job"


def test_producing_shows_how_many_payloads_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    screen = screen_of(monkeypatch)
    with Written(payloads(tmp_path, 1234), True):
        assert seen(screen, "1,234")
    assert "payloads written" in screen.getvalue()


def test_a_place_that_cannot_be_listed_fails_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with Written("nowhere://bucket/job", True):
        assert seen(screen, "payloads written")


def test_processing_shows_how_many_chunks_are_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = screen_of(monkeypatch)
    with fairway.open(tmp_path / "q.db") as q:
        q.submit(chunks=1500)
        with Progress(q, True) as bar:
            q.complete(q.reserve(max=500))
            bar.show()
            assert seen(screen, "500/1,500")


def test_a_queue_that_cannot_be_asked_fails_no_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = screen_of(monkeypatch)
    with fairway.open(tmp_path / "q.db") as q:
        q.submit(chunks=1500)
        with Progress(q, True) as bar:
            assert seen(screen, "0/1,500")
            q.close()
            bar.show()
        with Progress(q, True) as bar:
            bar.show()


def test_an_audit_shows_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with Steps("audit", 2, True) as step:
        step("read events")
        assert seen(screen, "audit: read events") and seen(screen, "0/2")
        step("sum up")
        assert seen(screen, "audit: sum up") and seen(screen, "1/2")


def test_where_nobody_looks_nothing_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fairway.open(tmp_path / "q.db") as q:
        q.submit(chunks=3)
        prefix = payloads(tmp_path, 3)
        with Written(prefix, True), Progress(q, True) as bar, Steps("audit", 1, True) as step:
            bar.show()
            step("read events")
    said = capsys.readouterr()
    assert said.err == said.out == ""


def test_on_a_terminal_too_one_can_ask_for_silence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = screen_of(monkeypatch)
    with Written(payloads(tmp_path, 3), False), Steps("audit", 1, False) as step:
        step("read events")
    assert screen.getvalue() == ""
