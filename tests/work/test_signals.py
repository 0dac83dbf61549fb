"""A parent of processes hears a signal at whatever line it comes: no handler waits for what its own thread holds."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from fairway.server import processes
from fairway.server.serving import listen
from fairway.server.settings import settings
from fairway.worker import family

LINES = 60  # more than two rounds of a parent, with those of what it waits by
MINE = (family.__file__, processes.__file__, threading.__file__)


class Member:
    """A process that lives; `lines` counts what its parent executes from the first look at it on."""

    lines = -1

    def __init__(self, *_: object) -> None:
        self.process = SimpleNamespace(
            terminate=lambda: None, is_alive=lambda: False, close=lambda: None, poll=lambda: 0
        )

    def look(self) -> bool:
        Member.lines = max(Member.lines, 0)
        return True

    def end(self, _: float) -> None:
        pass


def worker(_: Path) -> Callable[[], object]:
    return lambda: family.Family(2, lambda: None, lambda: None, {}).run(None)  # type: ignore[arg-type, return-value]


def server(folder: Path) -> Callable[[], object]:
    given = settings({"store": str(folder / "work.db"), "workers": 1}, {})

    def run() -> None:
        with listen("127.0.0.1", 0) as listener:
            processes.Family(given, listener).run(lambda: None)

    return run


@pytest.fixture
def handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (*family.SIGNALS, signal.SIGUSR1)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.real
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("parent", [worker, server])
def test_a_signal_at_any_line_of_a_parent_ends_it(
    parent: Callable[[Path], Callable[[], object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "_Member", Member)
    monkeypatch.setattr(processes, "_Child", Member)
    for module in (family, processes):
        monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)
    run = parent(tmp_path)
    for line in range(1, LINES):
        told_at(line, run)


def told_at(line: int, run: Callable[[], object]) -> None:
    """Run a parent that is told to end at this line."""
    Member.lines = -1

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in MINE:
            return None
        if event == "line" and Member.lines >= 0:
            Member.lines += 1
            if Member.lines == line:
                signal.raise_signal(signal.SIGTERM)
        return trace

    def stands_still(*_: object) -> None:
        raise AssertionError(f"it stands still since it was told to end at line {line}")

    signal.signal(signal.SIGUSR1, stands_still)
    main = threading.main_thread().ident or 0
    late = threading.Timer(20, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    before = sys.gettrace()
    late.start()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
        late.cancel()
        late.join()
    assert Member.lines >= line
