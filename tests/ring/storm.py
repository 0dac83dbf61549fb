"""The storm on a ring: producers and consumers that are killed at any moment and replaced at once.

Guards: what was sent and received is written down by the processes themselves, in files that outlive them.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import time
import zlib
from pathlib import Path

from fairway.ring.face import Ring
from tests.ring.victims import child

PRODUCERS = CONSUMERS = 3
SIZES = (8, 60, 700, 9000)  # of whole messages
SIZE = 1 << 18
_NOTE = struct.Struct("<II")
_CHECK = struct.Struct("<I")  # behind who and which, where there is more: the checksum of the rest


class Storm:
    """All processes, and what was done to them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.path = folder / "ring"
        self.ring = Ring.create(self.path, SIZE, crc=True)
        self.dice = random.Random(seed)
        self.lives = 0
        self.kills = 0
        self.dead: set[int] = set()
        self.living: dict[int, tuple[int, bool]] = {}  # by pid: life, whether it produces
        for n in range(PRODUCERS + CONSUMERS):
            self._start(n < PRODUCERS)

    def _start(self, produces: bool) -> None:
        self.lives += 1
        life = self.lives
        act = (lambda: self._produce(life)) if produces else (lambda: self._consume(life))
        self.living[child(act)] = (life, produces)

    def _produce(self, life: int) -> None:
        ring, notes, dice, n = Ring.attach(self.path), self._notes("sent"), random.Random(life), 0
        while True:
            n += 1
            ring.put(_NOTE.pack(life, n) + checked_body(dice, dice.choice(SIZES) - _NOTE.size))
            os.write(notes, _NOTE.pack(life, n))

    def _consume(self, life: int) -> None:
        ring, notes, dice = Ring.attach(self.path), self._notes("got"), random.Random(life)
        while True:
            lease = ring.get_many(dice.randint(1, 8))
            for message in lease.payloads:
                os.write(notes, checked(message) + _NOTE.pack(life, 0))
            if dice.random() < 0.05:
                time.sleep(0.003)  # a kill finds somebody who holds something
            lease.ack()

    def _notes(self, name: str) -> int:
        return os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def rage(self, kills: int) -> float:
        """Kill so often; the longest time in which nobody received anything."""
        seen, since, longest = 0, time.monotonic(), 0.0
        while self.kills < kills:
            time.sleep(self.dice.uniform(0.002, 0.03))
            pid = self.dice.choice(list(self.living))
            _, produces = self._kill(pid)
            self._start(produces)
            now, got = time.monotonic(), self._received()
            longest = max(longest, now - since)
            if got != seen:
                seen, since = got, now
        return longest

    def _received(self) -> int:
        try:
            return os.path.getsize(self.folder / "got")
        except FileNotFoundError:
            return 0

    def _kill(self, pid: int) -> tuple[int, bool]:
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == -signal.SIGKILL, f"a process ended by itself with {status}"
        life, produces = self.living.pop(pid)
        self.kills += 1
        self.dead.add(life)
        return life, produces

    def end(self) -> list[bytes]:
        """Everybody is killed; what is left in the ring."""
        for pid in list(self.living):
            self._kill(pid)
        rest: list[bytes] = []
        while (message := self.ring.pop(0.5)) is not None or self.ring.recover():
            if message is not None:
                rest.append(checked(message))
        return rest

    def read(self, name: str) -> list[tuple[int, int]]:
        return list(_NOTE.iter_unpack((self.folder / name).read_bytes()))


def checked_body(dice: random.Random, size: int) -> bytes:
    """A checksum and what it is of; nothing where there is no room."""
    body = dice.randbytes(max(0, size - _CHECK.size))
    return _CHECK.pack(zlib.crc32(body)) + body if body else b""


def checked(message: bytes) -> bytes:
    """Who and which, if the rest is what was sent."""
    assert len(message) in SIZES, f"a message of {len(message)} bytes was never sent"
    if rest := message[_NOTE.size :]:
        (check,) = _CHECK.unpack_from(rest)
        assert zlib.crc32(rest[_CHECK.size :]) == check, "a message was altered"
    return message[: _NOTE.size]
