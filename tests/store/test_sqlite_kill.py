"""kill -9 of a real process in the middle of commits and checkpoints: nothing acknowledged is lost."""

import contextlib
import os
import random
import select
import signal
import threading
import time
from pathlib import Path

import pytest

from fairway.model.stored import Kind, Put
from fairway.store.sqlite import SqliteStore
from fairway.testing.conformance import Owner

pytestmark = pytest.mark.real

KILLS = 20
ROWS = 3  # per group, so that half a group would show


def _commit_for_ever(path: Path, acknowledged: int) -> None:
    """A process that stores groups, says the number of each once it is stored, and never ends by itself."""
    store = SqliteStore.open(path, "q")
    owner = Owner(store)

    def checkpoint() -> None:
        while True:
            store.checkpoint()
            time.sleep(0.002)

    threading.Thread(target=checkpoint, daemon=True).start()
    while True:
        number = owner.number + 1
        rows = [owner.row(number * ROWS + n, number, pages=(b"x" * 700, b"y" * 2000)) for n in range(ROWS)]
        puts = [Put(Kind.CLIENT, 1, 0, b"%d" % number)]
        owner.write(
            sync=number % 2 == 0, rows=rows, puts=puts, journal=b"j", events=b"e", meta=b"%d" % number
        )
        os.write(acknowledged, b"%d\n" % number)


def _killed(path: Path, after_seconds: float) -> int:
    """Start such a process, kill it a little after its first answer; the last number it acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _commit_for_ever(path, writing)
        os._exit(1)
    os.close(writing)
    try:
        assert select.select([reading], [], [], 60)[0], "the process stored nothing in a minute"
        time.sleep(after_seconds)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as answers:
        lines = answers.read().split(b"\n")
    assert len(lines) > 1, "the process ended before it stored anything"
    return int(lines[-2])


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    dice = random.Random(1)
    inside = 0
    for kill in range(1, KILLS + 1):
        acknowledged = _killed(path, dice.random() * 0.1)
        owner = Owner(SqliteStore.open(path, "q"))
        number = owner.number
        assert owner.meta.range_id == 2 * kill
        assert acknowledged <= number <= acknowledged + 1
        inside += number - acknowledged
        assert owner.active() == list(range(ROWS, (number + 1) * ROWS)), "whole groups, all of them"
        assert owner.meta.body == owner.store.object(Kind.CLIENT, 1, 0) == b"%d" % number
        assert [entry for entry, _ in owner.store.journal()] == list(range(1, number + 1))
        assert [batch[0] for batch in owner.store.events(0, 10**6)] == list(range(1, number + 1))
        found = owner.store.pages([(owner.id(n), page) for n in owner.active() for page in (0, 1)])
        assert len(found) == 2 * number * ROWS
        owner.store.close()
    print(f"{KILLS} kills, {number} groups, {inside} killed between commit and answer")
