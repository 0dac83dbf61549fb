"""A storm on a way between processes: producers and consumers that are killed at any moment and replaced at once.

Who put and who received what is written down by the processes themselves, in files that outlive them: a put when it has
returned, a message before it is acknowledged. It ends after so many kills, or when nobody received anything for long:
then the way hangs, since there always are living producers and consumers.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from peers.pipes import Way

PRODUCERS = CONSUMERS = 3
SIZES = (8, 64, 704, 9000)  # of whole messages: who and which, so often
BATCH_MAX = 8
PAUSE_SECONDS = 2.0  # of silence, after which nobody is killed until it is over
HANG_SECONDS = 20.0  # on a busy machine too the dead are noticed in a few
_NOTE = struct.Struct("<II")


@dataclass(frozen=True)
class Outcome:
    """What became of a way."""

    kills: int  # until the last message came; of a way that hangs more follow, which change nothing
    put: int
    received: int
    missing: int  # put, and never received
    again: int  # deliveries beyond the first
    robbed: int  # those of which nobody who had it was killed
    altered: int
    failed: int  # processes that ended by themselves
    hangs: bool


class Storm:
    """All processes of one way, and what was done to them."""

    def __init__(self, folder: Path, kind: type[Way], seed: int) -> None:
        self._folder, self._dice = folder, random.Random(seed)
        self._way = kind(folder, PRODUCERS, CONSUMERS, max(SIZES))
        self._lives, self._kills, self._failed = 0, 0, 0
        self._dead: set[int] = set()
        self._living: dict[int, tuple[int, bool]] = {}  # by pid: life, whether it produces
        self._size, self._since, self._kills_then = 0, time.monotonic(), 0
        for n in range(PRODUCERS + CONSUMERS):
            self._start(n < PRODUCERS)

    def rage(self, kills: int, calm_seconds: float) -> Outcome:
        """Kill so often, then let the consumers take what is left until nothing comes for a while."""
        hangs = False
        while self._kills < kills and not hangs:
            time.sleep(self._dice.uniform(0.002, 0.03))
            if self._silence() < PAUSE_SECONDS:
                self._end(self._dice.choice(list(self._living)), replace=True)
            hangs = self._silence() > HANG_SECONDS
        while not hangs and self._received() == 0:  # a short one may be over before anybody began
            time.sleep(0.05)
            hangs = self._silence() > HANG_SECONDS
        for pid, (_, produces) in list(self._living.items()):
            if produces:
                self._end(pid)
        self._since = time.monotonic()
        while not hangs and self._silence() < calm_seconds:
            time.sleep(0.05)
        killed = set(self._dead)
        for pid in list(self._living):
            self._end(pid)
        return self._judged(hangs, killed)

    def _received(self) -> int:
        path = self._folder / "got"
        return path.stat().st_size if path.exists() else 0

    def _silence(self) -> float:
        size = self._received()
        if size != self._size:
            self._size, self._since, self._kills_then = size, time.monotonic(), self._kills
        return time.monotonic() - self._since

    def _start(self, produces: bool) -> None:
        self._lives += 1
        life = self._lives
        pid = os.fork()
        if pid:
            self._living[pid] = (life, produces)
            return
        try:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), 2
            )  # what a peer says of a torn message is counted, not shown
            (self._produce if produces else self._consume)(life)
        finally:
            os._exit(1)

    def _end(self, pid: int, replace: bool = False) -> None:
        os.kill(pid, signal.SIGKILL)
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        life, produces = self._living.pop(pid)
        self._dead.add(life)
        self._kills += ended == -signal.SIGKILL
        self._failed += ended != -signal.SIGKILL
        if replace:
            self._start(produces)

    def _notes(self, name: str) -> int:
        return os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _produce(self, life: int) -> None:
        put, notes, dice, n = self._way.putter(), self._notes("put"), random.Random(life), 0
        while True:
            n += 1
            put(_NOTE.pack(life, n) * (dice.choice(SIZES) // _NOTE.size))
            os.write(notes, _NOTE.pack(life, n))

    def _consume(self, life: int) -> None:
        take, notes, dice = self._way.taker(), self._notes("got"), random.Random(life)
        while True:
            messages, acknowledge = take(dice.randint(1, BATCH_MAX))
            for message in messages:
                head = message[: _NOTE.size]
                whole = len(message) in SIZES and message == head * (len(message) // _NOTE.size)
                os.write(notes, (head if whole else bytes(_NOTE.size)) + _NOTE.pack(life, 0))
            if dice.random() < 0.05:
                time.sleep(0.003)  # a kill finds somebody who holds something
            acknowledge()

    def _read(self, name: str) -> list[tuple[int, int]]:
        path = self._folder / name
        return list(_NOTE.iter_unpack(path.read_bytes())) if path.exists() else []

    def _judged(self, hangs: bool, killed: set[int]) -> Outcome:
        notes = self._read("got")
        holders: dict[tuple[int, int], list[int]] = defaultdict(list)
        for message, (life, _) in zip(notes[::2], notes[1::2], strict=True):
            holders[message].append(life)
        altered = len(holders.pop((0, 0), []))
        put = set(self._read("put"))
        return Outcome(
            kills=self._kills_then if hangs else self._kills,
            put=len(put),
            received=len(holders),
            missing=len(put - holders.keys()),
            again=sum(len(lives) - 1 for lives in holders.values()),
            robbed=sum(1 for lives in holders.values() for life in lives[:-1] if life not in killed),
            altered=altered,
            failed=self._failed,
            hangs=hangs,
        )
