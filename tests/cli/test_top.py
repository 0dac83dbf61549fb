"""`fairway top`: shares and rates are those of what is handed out; it finds hosts and does without."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import fairway
from fairway.cli.app import DONE
from fairway.cli.places import Where
from fairway.cli.top.sampling import Sampler, Share, View
from fairway.cli.top.screen import drawn
from fairway.engine.commands import ConsumerView, QueueStats, TenantView
from tests.cli.conftest import Cli


def test_shares_and_rates_are_those_of_what_was_handed_out(file: Path) -> None:
    with fairway.open(file) as q, Sampler(str(file), Where()) as sampler:
        q.set_weight("whale", 3)
        first = sampler.take()
        assert first.hosted and first.completed_per_second == first.handed_per_second == 0.0
        q.complete(q.reserve(max=8))
        time.sleep(0.05)
        view = sampler.take()
        shares = {one.tenant.name: one for one in view.tenants}
        assert (shares["whale"].share, shares["acme"].share) == (0.75, 0.25)
        assert (shares["whale"].due, shares["acme"].due) == (0.75, 0.25)
        assert view.completed_per_second > 0 and view.handed_per_second == view.completed_per_second
        assert [one.tenant.name for one in view.tenants] == ["whale", "acme"], "who got most comes first"
        assert shares["whale"].age > 0
        q.pause(tenant="whale")
        assert {one.tenant.name: one.due for one in sampler.take().tenants} == {"whale": 0.0, "acme": 1.0}


def test_it_finds_the_next_host_and_starts_counting_anew(file: Path) -> None:
    with Sampler(str(file), Where()) as sampler:
        with fairway.open(file) as q:
            q.complete(q.reserve(max=5))
            view = sampler.take()
            assert view.hosted and view.stats.chunks_waiting == 8
        with fairway.open(file) as q:
            q.complete(q.reserve())
            view = sampler.take()
            assert view.stats.chunks_waiting == 7
            assert view.completed_per_second >= 0 and all(0 <= one.share <= 1 for one in view.tenants)


def test_one_look_as_text_and_as_json(cli: Cli, hosted: Path) -> None:
    told = cli("top", hosted, "--once", "--interval", "100ms")
    assert told.code == DONE and "whale" in told.out and "at rest" in told.out
    view = cli("top", hosted, "--once", "--interval", "100ms", "--json").json
    assert view["hosted"] is True and view["stats"]["chunks_waiting"] == 13
    assert {one["tenant"]["name"] for one in view["tenants"]} == {"acme", "whale"}
    views = cli("top", hosted, "--count", 3, "--interval", "100ms", "--json").jsons
    assert len(views) == 3 and len(views[2]["trend"]) == 3


def test_where_no_terminal_is_each_look_is_printed_as_it_is_made(hosted: Path) -> None:
    command = [sys.executable, "-m", "fairway.cli", "top", str(hosted), "--interval", "100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            seen = 0
            for line in process.stdout:
                seen += line.startswith("fairway top")
                if seen == 3:
                    break
            assert seen == 3
        finally:
            process.kill()


def view_of(tenants: int, consumers: int = 2, name: str = "tenant") -> View:
    stats = QueueStats("default", 9, 8, 7, 6, 5, tenants, 3, 2, False, 1, 1, 1)
    shares = [
        Share(TenantView(f"{name}-{i:03}", 1.0, i == 1, 1, 1000 - i, 2), 1 / tenants, 1 / tenants, 90.0)
        for i in range(tenants)
    ]
    named = [ConsumerView(f"consumer-{i}", 1, [1, 2], 1.0) for i in range(consumers)]
    return View("work.db", "default", 100.0, True, stats, 12.0, 10.0, shares, named, [0.0, 5.0, 10.0])


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 12), (200, 60)])
def test_the_screen_is_as_large_as_the_terminal(width: int, height: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width, height=height).print(drawn(view_of(100), width, height))
    lines = out.getvalue().splitlines()
    assert len(lines) <= height and max(map(len, lines)) <= width
    assert "tenant-0" in out.getvalue() and "more tenants" in out.getvalue()
    assert ("consumer-1" in out.getvalue()) == (height >= 20)


def test_a_long_name_does_not_push_the_figures_out() -> None:
    out = io.StringIO()
    Console(file=out, width=80, height=24).print(drawn(view_of(3, name="x" * 200), 80, 24))
    assert "1,000" in out.getvalue() and "waiting" in out.getvalue()


def test_a_queue_without_work_has_a_screen_too() -> None:
    out = io.StringIO()
    view = View("w", "q", 1.0, False, QueueStats("q", *[0] * 8, False, 0, 0, 0), 0.0, 0.0, [], [], [])
    Console(file=out, width=80).print(drawn(view, 80, 24))
    assert "nobody has it open" in out.getvalue() and "no tenant has work" in out.getvalue()


@pytest.mark.real
def test_q_ends_it_and_leaves_the_terminal_as_it_was(hosted: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-c", "from fairway.cli.app import main; main()", "top", str(hosted)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as top:
        seen = b""
        until = time.monotonic() + 60
        while b"whale" not in seen and time.monotonic() < until:
            if select.select([master], [], [], 0.5)[0]:
                seen += os.read(master, 65536)
        assert b"whale" in seen
        os.write(master, b"q")
        while top.poll() is None and time.monotonic() < until:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536)
        assert top.wait(1) == DONE
    while select.select([master], [], [], 0.1)[0]:
        seen += os.read(master, 65536)
    os.close(slave)
    os.close(master)
    assert b"\x1b[?1049l" in seen, "the screen that was there is there again"


def test_counters_of_another_host_are_not_compared_with_the_last_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed = [100, 3, 5]

    class Hosted:
        def stats(self) -> QueueStats:
            done = handed.pop(0)
            return QueueStats("q", *[0] * 8, False, 0, 0, 0, handed=done, completed=done)

        def tenants(self) -> list[TenantView]:
            return [TenantView("a", 1.0, False, 1, 1, 0, 1)]

        def consumers(self) -> list[ConsumerView]:
            return []

        def close(self) -> None:
            pass

    monkeypatch.setattr("fairway.cli.top.sampling.seen", lambda place, where: (Hosted(), True))
    with Sampler("work.db", Where()) as sampler:
        rates = [sampler.take().completed_per_second for _ in range(3)]
    assert rates[:2] == [0.0, 0.0] and rates[2] > 0
