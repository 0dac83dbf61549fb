"""kill -9 of a real process under load, again and again: what callers were told stays true.

Guards: a kill counts only if a call was in flight, which its begin without an end in the history shows.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from fairway.testing.checker import check_history
from fairway.testing.history import Begin, End, Header, History, load
from tests.kill.counting import acknowledged
from tests.kill.draining import drain
from tests.kill.follower import Follower
from tests.kill.recorded import Lines
from tests.kill.worker import CALLS_PER_LIFE, Orders
from tests.proving import Kept, number

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent.parent
KILLS = 100  # with a call in flight
LONG_KILLS = number("KILLS", 1_000)  # in `make proof`, a hundred for each seed
SLICE_KILLS = 20  # of a storm besides, whose history is short enough to be published
STORM_SECONDS = 200.0  # two busy cores need a fifth of it
START_SECONDS = 60.0
SEED = 20


class Storm:
    """Processes on one queue, one after the other, each killed at an instant that the dice choose."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.queue = folder / "work.db"
        self.history = folder / "history.jsonl"
        self.errors = folder / "errors.txt"
        self.offset = time.time() - time.monotonic()
        self.seed = seed
        self.dice = random.Random(seed)
        self.follower = Follower(self.history)
        self.lives = 0
        self.kills = 0
        self.ops: dict[str, int] = {}  # in flight when killed
        self.lines = Lines(self.history, self.offset, 0)
        self.lines.write(Header(drained=True, origin={"seed": seed}))
        self.workers = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.kill.worker"]
        pipe = subprocess.PIPE
        with self.errors.open("wb") as errors:
            return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors)

    def live_and_die(self) -> None:
        """One process takes the queue over, works for a moment, and is killed."""
        self.lives += 1
        before = self.history.stat().st_size
        self._say(self._orders())
        self._wait_for_a_moment(before)
        self._say(b"kill")
        assert self.workers.stdout is not None
        status = int(self.workers.stdout.readline())
        assert status == -signal.SIGKILL, f"the process ended by itself: {self.errors.read_text()}"
        in_flight = self.follower.catch_up()
        self.kills += bool(in_flight)
        for line in in_flight:
            self.ops[line.op] = self.ops.get(line.op, 0) + 1
        self.lines.note("crash", life=self.lives, in_flight=len(in_flight))

    def _orders(self) -> bytes:
        orders = Orders(
            str(self.queue),
            str(self.history),
            self.offset,
            self.lives,
            self.dice.getrandbits(32),
            self.follower.unknown(),
            self.follower.receipts(),
        )
        return msgspec.json.encode(orders)

    def _say(self, line: bytes) -> None:
        assert self.workers.stdin is not None
        self.workers.stdin.write(line + b"\n")
        self.workers.stdin.flush()

    def _wait_for_a_moment(self, before: int) -> None:
        """Most are killed at work, some while they open the queue, some after leases had time to run out."""
        if self.dice.random() < 0.1:
            time.sleep(self.dice.random() * 0.05)
            return
        give_up = time.monotonic() + START_SECONDS
        while self.history.stat().st_size < before + 2000:
            assert time.monotonic() < give_up, f"no call in a minute: {self.errors.read_text()}"
            time.sleep(0.002)
        time.sleep(1.5 if self.dice.random() < 0.05 else self.dice.random() * 0.25)

    def end(self) -> None:
        """The processes see the end of their input and go."""
        assert self.workers.stdin is not None and self.workers.stdout is not None
        self.workers.stdin.close()
        self.workers.wait(START_SECONDS)
        self.workers.stdout.close()
        self.lines.close()


def last_shown(history: History) -> dict[int, dict]:
    """Every submission as the drain saw it."""
    return {request.args["sub"]: request.ok for request in history.of("show") if request.who == "drain"}


def test_nothing_acknowledged_is_lost_under_a_hundred_kills(tmp_path: Path) -> None:
    weather(tmp_path, SEED, KILLS, Counter(), Kept("storms"))


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost_under_hundreds_of_kills(
    tmp_path: Path, record_proof: Callable[..., None]
) -> None:
    seen, kept = Counter[str](), Kept(f"storms, of {SLICE_KILLS} kills")
    seeds = range(SEED, SEED + 1 + max(1, LONG_KILLS // KILLS))
    try:
        for seed in seeds:
            (tmp_path / str(seed)).mkdir()
            weather(tmp_path / str(seed), seed, KILLS if seed > SEED else SLICE_KILLS, seen, kept)
    finally:
        figures = {what: seen[what] for what in ("operations", "faults", "lost")}
        note = f"{seen['lives']:,} kills; those with a call in flight are counted"
        told = f"{seeds.start} to {seeds.stop - 1}"
        record_proof("processes killed, embedded", **figures, seed=told, note=note, **kept.told())


def weather(folder: Path, seed: int, kills: int, seen: Counter[str], kept: Kept) -> None:
    """A storm, a drain, and the verdict; what was seen is added up, and kept."""
    storm = Storm(folder, seed)
    began = time.monotonic()
    try:
        while storm.kills < kills:
            storm.live_and_die()
            spent = time.monotonic() - began
            assert spent < STORM_SECONDS, f"{storm.kills} kills with a call in flight in {spent:.0f} s"
        stormed = time.monotonic() - began
        lines = Lines(storm.history, storm.offset, (storm.lives + 1) * CALLS_PER_LIFE)
        dead = drain(storm.queue, lines, storm.lives + 1, storm.follower.unknown())
    finally:
        storm.end()
    drained = time.monotonic() - began
    storm.follower.catch_up()
    history = load(storm.history)
    violations = check_history(history)
    whole = time.monotonic() - began
    print(f"{storm.kills} kills with a call in flight of {storm.lives}, in flight {storm.ops}")
    print(f"{storm.follower.calls} calls, {len(last_shown(history))} submissions, {len(dead)} dead chunks")
    print(f"storm {stormed:.0f} s, drain {drained - stormed:.0f} s, checking {whole - drained:.0f} s")
    print(dict(sorted(storm.follower.told.items())))
    lost = len(violations)
    seen.update(operations=acknowledged(history), faults=storm.kills, lives=storm.lives, lost=lost)
    kept.add(history)
    assert not violations, "\n".join(
        [f"{len(violations)} violations", *(violation.story(history) for violation in violations[:10])]
    )
    if kills == KILLS:
        assert_it_was_a_storm(storm, history)
    shown = last_shown(history)
    letters = {(one.submission, one.index) for one in dead}
    assert len(letters) == len(dead) == sum(one["failed"] for one in shown.values())
    assert apsw.Connection(str(storm.queue)).pragma("integrity_check") == "ok"


def assert_it_was_a_storm(storm: Storm, history: History) -> None:
    """The history holds what it was made for; otherwise the checker had nothing to find."""
    told = storm.follower.told
    assert not [name for name in told if name.startswith("error")], "no call may be refused with an error"
    assert told["old receipt complete done"] and told["old receipt complete already"]
    assert told["submits tried again"] and told["second and later attempts"] and told["fail dead"]
    ends = sum(isinstance(line, End) for line in history.lines)
    begins = sum(isinstance(line, Begin) for line in history.lines)
    assert begins - ends >= storm.kills
    assert last_shown(history).keys() >= {
        id for r in history.of("submit") if r.answered for id in r.ok["ids"]
    }
