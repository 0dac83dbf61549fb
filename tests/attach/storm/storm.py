"""The storm: eight processes on one file; every half second one is killed and replaced, often the one that hosts.

Guards: a kill counts only if a call was in flight, which its begin without an end in the history shows.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec

from fairway.runtime.door import Record
from fairway.testing.history import Header
from tests.attach.storm.watch import Watch
from tests.attach.storm.worker import SharedLines
from tests.kill.worker import Orders

ROOT = Path(__file__).parents[3]
PROCESSES = 8
KILL_SECONDS = 0.5
STOP_SECONDS = 4.5  # longer than a host may be silent
STOP_EVERY_SECONDS = 12.0
BUSY_SECONDS = 0.1  # a kill waits so long for a call to be in flight
PATIENCE_SECONDS = 60.0


class Living(msgspec.Struct):
    """One process of the storm."""

    life: int
    slot: int
    pid: int


class Stop(msgspec.Struct):
    """A host that was stopped for a while; times are those of the history."""

    life: int
    pid: int
    begin_t: float
    end_t: float
    generation: int
    replaced: bool = False


class Storm:
    """All processes, and what was done to them."""

    def __init__(self, folder: Path, seed: int, transport: str = "socket") -> None:
        self.queue = folder / "work.db"
        self.history = folder / "history.jsonl"
        self.errors = folder / "errors.txt"
        self.offset = time.time() - time.monotonic()
        self.dice = random.Random(seed)
        self.watch = Watch(self.history)
        self.lines = SharedLines(self.history, self.offset, 0)
        self.lines.write(Header(drained=True, origin={"seed": seed}))
        self.lives = 0
        self.kills = self.in_flight = self.host_kills = 0
        self.ops: dict[str, int] = {}  # in flight when killed
        self.deaths: dict[int, float] = {}  # when each life ended, on the clock of the history
        self.host_lost: list[float] = []  # when a host was killed or stopped
        self.stops: list[Stop] = []
        self.stopped: Stop | None = None  # now
        pipe = subprocess.PIPE
        with self.errors.open("wb") as errors:
            self._forker = subprocess.Popen(
                [sys.executable, "-m", "tests.attach.storm.worker"],
                cwd=ROOT,
                env=os.environ | {"FAIRWAY_TRANSPORT": transport},
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
            )
        self.living = [self._start(slot, 0) for slot in range(PROCESSES)]

    def now(self) -> float:
        return self.offset + time.monotonic()

    def rage(self, seconds: float) -> None:
        """Kill and stop for so long, and on a machine that is busy with other things until it was a storm."""
        began = time.monotonic()
        stop_at, kill_at = began + min(seconds / 5, 4.0), began + 2 * KILL_SECONDS
        while (now := time.monotonic()) < began + seconds or (
            not self.has_raged(seconds) and now < began + seconds + PATIENCE_SECONDS
        ):
            if self.stopped is not None and self.now() >= self.stopped.end_t:
                self._go_on()
            if self.stopped is None and now >= stop_at and self._stop_host(inside=len(self.stops) % 2 == 1):
                stop_at += STOP_EVERY_SECONDS
            if now >= kill_at:
                kill_at += KILL_SECONDS
                self._kill_one()
            time.sleep(0.02)
        if self.stopped is not None:
            self._go_on()

    def has_raged(self, seconds: float) -> bool:
        """Whether enough was done to them and by them for a storm of so many seconds."""
        told = self.watch.told
        return (
            self.in_flight >= seconds / KILL_SECONDS / 2.5
            and self.host_kills >= seconds / 10
            and bool(self.stops or self.stopped)
            and bool(
                told["submits tried again"] and told["second and later attempts"] and told["complete done"]
            )
        )

    def calm(self, seconds: float) -> None:
        """Nothing is done to anybody: every caller must be answered within so much time. Then all are killed."""
        began = self.now()
        callers = [
            (one.life, f"{role}{one.slot}") for one in self.living for role in ("producer", "consumer")
        ]
        while waiting := [caller for caller in callers if self.watch.last.get(caller, 0.0) <= began]:
            assert self.now() < began + seconds, (
                f"no answer in {seconds} s to {waiting}: {self.errors.read_text()}"
            )
            time.sleep(0.05)
            self.watch.catch_up()
        for one in self.living:
            self._kill(one)

    # -- what is done to them

    def host(self) -> Record | None:
        """Who hosts, as the lock file says. This process holds no lock in it that a close could drop."""
        body = self.queue.with_name("work.db-default.lock").read_bytes()
        try:
            return msgspec.msgpack.decode(body[2 : 2 + int.from_bytes(body[:2], "little")], type=Record)
        except msgspec.DecodeError:
            return None

    def _kill_one(self) -> None:
        """The host in half of the cases; never one that is stopped just now."""
        record, dice = self.host(), self.dice
        able = [one for one in self.living if self.stopped is None or one.pid != self.stopped.pid]
        hosts = [one for one in able if record is not None and one.pid == record.pid]
        one = hosts[0] if hosts and dice.random() < 0.5 else dice.choice(able)
        until = time.monotonic() + BUSY_SECONDS
        while not self.watch.busy(one.life) and time.monotonic() < until:
            time.sleep(0.001)
        self._kill(one)
        heir = self._start(one.slot, one.life)
        self.living[one.slot] = heir

    def _kill(self, one: Living) -> None:
        record = self.host()
        hosts = record is not None and record.pid == one.pid
        os.kill(one.pid, signal.SIGKILL)
        status = self._say(one.pid)
        t = self.deaths[one.life] = self.now()
        assert status == -signal.SIGKILL, (
            f"a process ended by itself with {status}: {self.errors.read_text()}"
        )
        lines = self.watch.died(one.life)
        self.kills += 1
        self.in_flight += bool(lines)
        self.host_kills += hosts
        if hosts:
            self.host_lost.append(t)
        for line in lines:
            self.ops[line.op] = self.ops.get(line.op, 0) + 1
        self.lines.note("crash", life=one.life, in_flight=len(lines), host=hosts)

    def _start(self, slot: int, dead: int) -> Living:
        self.lives += 1
        again, receipts = self.watch.inherit(dead, self.lives) if dead else ([], [])
        orders = Orders(
            str(self.queue),
            str(self.history),
            self.offset,
            self.lives,
            self.dice.getrandbits(32),
            again,
            receipts,
        )
        return Living(self.lives, slot, self._say([slot, orders]))

    def _stop_host(self, inside: bool) -> bool:
        """Stop who hosts: inside a transaction, as it mostly is under load, or outside, so that it can be replaced.

        False: nobody does just now.
        """
        record = self.host()
        for one in self.living:
            if record is not None and one.pid == record.pid:
                _stop(one.pid)
                while not inside and not self._free_to_write():
                    os.kill(one.pid, signal.SIGCONT)
                    time.sleep(self.dice.random() * 0.005)
                    _stop(one.pid)
                t = self.now()
                self.stopped = Stop(one.life, one.pid, t, t + STOP_SECONDS, record.generation)
                self.host_lost.append(t)
                self.lines.note("stopped", life=one.life)
                return True
        return False

    def _free_to_write(self) -> bool:
        """Whether nobody is inside a transaction for a while; others are done in no time."""
        file = apsw.Connection(str(self.queue))
        file.set_busy_timeout(200)
        try:
            file.execute("BEGIN IMMEDIATE")
            file.execute("ROLLBACK")
        except apsw.BusyError:
            return False
        finally:
            file.close()
        return True

    def _go_on(self) -> None:
        stop, record = self.stopped, self.host()
        assert stop is not None
        stop.replaced = record is not None and record.generation > stop.generation
        os.kill(stop.pid, signal.SIGCONT)
        stop.end_t = self.now()
        self.lines.note("continued", life=stop.life, replaced=stop.replaced)
        self.stops.append(stop)
        self.stopped = None

    def _say(self, words: object) -> int:
        assert self._forker.stdin is not None and self._forker.stdout is not None
        self._forker.stdin.write(msgspec.json.encode(words) + b"\n")
        self._forker.stdin.flush()
        return int(self._forker.stdout.readline())

    def end(self) -> None:
        """Whoever is left is killed by the end of the input."""
        assert self._forker.stdin is not None and self._forker.stdout is not None
        self._forker.stdin.close()
        self._forker.wait(30)
        self._forker.stdout.close()
        self.lines.close()


def _stop(pid: int) -> None:
    """Stop a process; one of its threads may be on the disk and stops a little later."""
    os.kill(pid, signal.SIGSTOP)
    until = time.monotonic() + PATIENCE_SECONDS
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.001)


def _runs(pid: int) -> bool:
    """Whether a thread of it does; one that ends meanwhile does not."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            if path.read_text().rpartition(")")[2].split()[0] != "T":
                return True
    return False
