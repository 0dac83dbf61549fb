"""Concurrent calls on a real queue have an order: embedded, attached to another process, and through a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import fairway
from fairway.cli.app import run
from fairway.testing.history import Begin, End, Line, line_bytes
from fairway.testing.linear.checker import check_history
from tests.attach.member_script import Child
from tests.linear.planted import PLANTED
from tests.linear.playing import Game, play_many
from tests.proving import Kept, number
from tests.server.live import served

pytestmark = pytest.mark.real

SHORT = {"embedded": 120, "attached": 30, "server": 20}  # histories in `make test`
LONG = number("LINEAR_HISTORIES", 10_000)  # in `make proof`, most of them embedded
PLANTED_SEEDS_MAX = 400
CLIENTS = 3  # queues of a server, each with its own connection

Opened = Callable[[str], list[fairway.Queue]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A queue by how one comes to it: in this process, hosted by another, or behind a server."""
    with ExitStack() as stack:

        def open(way: str) -> list[fairway.Queue]:
            if way == "server":
                server = stack.enter_context(served(tmp_path, "--workers", "2", "--queue", "default"))
                server.ready()
                return [stack.enter_context(fairway.open(server.url)) for _ in range(CLIENTS)]
            path = tmp_path / "work.db"
            if way == "attached":
                stack.enter_context(Child.opened(path))
                return [stack.enter_context(fairway.open(path, host=False))]
            return [stack.enter_context(fairway.open(path))]

        yield open


@pytest.mark.parametrize("way", SHORT)
def test_concurrent_calls_on_a_submission_have_an_order(way: str, opened: Opened) -> None:
    calls, wrong = play_many(opened(way), range(SHORT[way]), way)
    assert not wrong, "\n".join(wrong[:3])
    assert calls > 15 * SHORT[way], "the threads did next to nothing"


@pytest.mark.proof
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("way", "share"), [("embedded", 0.8), ("attached", 0.1), ("server", 0.1)])
def test_ten_thousand_concurrent_histories_have_an_order(
    way: str, share: float, opened: Opened, record_proof: Callable[..., None]
) -> None:
    many, kept = round(LONG * share), Kept("histories", longest=True)
    calls, wrong = play_many(opened(way), range(many), way, kept)
    record_proof(
        f"concurrent histories, {way}",
        operations=calls,
        lost=len(wrong),
        seed=f"0 to {many - 1}",
        **kept.told(),
    )
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.parametrize("fault", PLANTED)
def test_a_queue_without_an_order_is_found_out(
    fault: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANTED[fault](monkeypatch)
    queues, kept = opened("embedded"), Kept("histories", longest=True)
    for seed in range(PLANTED_SEEDS_MAX):
        if play_many(queues, range(seed, seed + 1), kept=kept)[1]:
            assert kept.last is not None and check_history(kept.last), "the one that shows it is kept"
            return
    pytest.fail(f"{PLANTED_SEEDS_MAX} histories did not show that {fault}")


def test_verify_reads_a_concurrent_history(
    opened: Opened, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = Game(opened("embedded"), 1).play()
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(line_bytes(line) for line in history.lines))
    assert run(["verify", str(path)]) == 0
    assert "1 checks: nothing wrong" in capsys.readouterr().out
    # One more who holds what is held: the last chunk of a submission that nobody else concerns himself with.
    offer = {"total": 1, "policy": "fail_fast", "attempts_max": 5}
    lines: list[Line] = [
        Begin(0.0, 901, "one", "submit", {"offers": [offer]}),
        End(1.0, 901, {"ids": [7], "known": [False]}),
    ]
    for call, count in ((902, 1), (903, 2)):
        held = {"epoch": 9, "count": count, "deadline": 99.0, "spans": [[7, 0, 1, 1]]}
        lines += [Begin(2.0, call, "one", "reserve", {"max": 1}), End(3.0, call, held)]
    path.write_bytes(b"".join(map(line_bytes, [history.header, *lines])))
    assert run(["verify", str(path)]) == 1
    assert "the 3 calls on submission 7 have no order" in capsys.readouterr().out
