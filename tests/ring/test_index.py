"""A block that the index has lost is told to whoever meets it; a sound ring that moves is never called damaged."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import RingCorrupt
from fairway.ring.face import Ring
from tests.ring.spoiling import SIZE, TAKES, patch
from tests.ring.victims import LOOKING, child, drain, stop

INDEX_AT = 4096 + 256 * 64
# What a word may become: nothing, one of the next lap, a size that no block has, a state that there is not.
WORDS: dict[str, Callable[[int], int]] = {
    "zero": lambda word: 0,
    "a later lap": lambda word: word + (1 << 24),
    "an earlier lap": lambda word: word - (1 << 24),
    "no size": lambda word: word & ~(0x1FF << 15),
    "no state": lambda word: word | 7,
    "all ones": lambda word: 2**64 - 1,
}


@pytest.fixture
def path(place: Path) -> Path:
    Ring.create(place / "ring", SIZE).close()
    return place / "ring"


def spoil_word(path: Path, position: int, how: str) -> None:
    at = INDEX_AT + 8 * position
    (word,) = struct.unpack("<Q", path.read_bytes()[at : at + 8])
    assert word >> 24 == 1, "the first lap of a ring of 64 KiB"
    patch(path, at, struct.pack("<Q", WORDS[how](word)))


def put_until(ring: Ring, timeout: float) -> None:
    for _ in range(SIZE // 64 + 1):
        ring.put(b"x", timeout)


@pytest.mark.parametrize("how", WORDS)
def test_a_tail_that_has_lost_its_word_is_told_to_everybody(path: Path, how: str) -> None:
    """Nobody could ever move it: the ring would be full for ever."""
    with Ring.attach(path) as ring:
        ring.put_many([b"held", b"free", b"more"])
        lease = ring.get(0)
        assert lease is not None
        spoil_word(path, 0, how)
        assert ring.pop(0) == b"free", "what can be found is handed out"
        for told in (ring.stats, ring.recover, lambda: Ring.attach(path)):
            with pytest.raises(RingCorrupt, match="index"):
                told()
        for timeout in (0, 60):  # a word of the next lap even leads who writes astray
            with pytest.raises(RingCorrupt, match=r"index|positions"):
                put_until(ring, timeout)
        with pytest.raises(RingCorrupt, match="index"):
            lease.ack()


@pytest.mark.parametrize("how", WORDS)
def test_a_message_whose_word_is_lost_is_told_and_not_waited_for(path: Path, how: str) -> None:
    with Ring.attach(path) as ring:
        ring.put_many([b"lost", b"behind it"])
        spoil_word(path, 0, how)
        for take in (*TAKES.values(), lambda ring: ring.pop(60), Ring.stats, Ring.recover):
            with pytest.raises(RingCorrupt, match="index"):
                take(ring)
        with pytest.raises(RingCorrupt, match="index"):
            Ring.attach(path)


@pytest.mark.parametrize("how", WORDS)
def test_a_word_that_is_lost_in_the_middle_is_told_by_who_looks_at_all(path: Path, how: str) -> None:
    """And no place is freed: behind it a word may name its owner."""
    with Ring.attach(path) as ring:
        pid = child(lambda: (Ring.attach(path), os.kill(os.getpid(), signal.SIGKILL)))
        os.waitpid(pid, 0)
        ring.put_many([b"a", b"b", b"c"])
        held = ring.get_many(3)
        spoil_word(path, 1, how)
        for told in (ring.stats, ring.recover):
            with pytest.raises(RingCorrupt, match="index"):
                told()
        word = path.read_bytes()[4096 + 64 : 4096 + 72]
        assert word != bytes(8), "the place of one who died is still his"
        with pytest.raises(RingCorrupt):
            held.ack()


# -- who looks while the ring moves


@pytest.mark.real
@pytest.mark.parametrize("look", LOOKING.values(), ids=LOOKING)
@pytest.mark.parametrize(("before", "laps"), [(0, 0), (3, 1)], ids=["it was empty", "the next lap began"])
def test_who_looks_slowly_at_a_sound_ring_does_not_call_it_damaged(
    place: Path, faults: Any, look: tuple[int, Callable[[Any], object]], before: int, laps: int
) -> None:
    """What it read first is over when it goes on: the word it looks at is new, or of another block."""
    point, act = look
    with Ring.create(place / "ring", SIZE) as ring:
        ring.put_many([b"old"] * before)
        pid = stop(faults, place / "ring", point, act)
        drain(ring, 0)
        while laps and ring.stats().written <= SIZE // 64:
            ring.put(b"new")
            assert ring.pop(0) == b"new"
        ring.put(b"last")
        os.kill(pid, signal.SIGCONT)
        while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
            os.kill(pid, signal.SIGCONT)
        assert status == 0, "it called a sound ring damaged"
        assert drain(ring, 0) == [b"last"]
