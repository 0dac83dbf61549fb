"""Kills at any moment: nothing acknowledged is lost, nothing stalls, and only what the killed held comes twice."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proving import number
from tests.ring.storm import Storm

pytestmark = pytest.mark.real

LONG_KILLS = number("RING_KILLS", 500)  # in `make proof`
SEED = 7
STALL_SECONDS = 30.0  # a second until the dead are noticed; the rest is for a busy machine


def weather(folder: Path, kills: int, record: Callable[..., None] = lambda *_, **__: None) -> None:
    storm = Storm(folder, seed=SEED)
    longest = storm.rage(kills)
    rest = [struct.unpack("<II", note) for note in storm.end()]
    sent = storm.read("sent")
    notes = storm.read("got")
    receivers: dict[tuple[int, int], list[int]] = defaultdict(list)
    for message, (life, _) in zip(notes[::2], notes[1::2], strict=True):
        receivers[message].append(life)
    for message in rest:
        receivers[message].append(0)
    stats = storm.ring.stats()
    again = sum(len(lives) - 1 for lives in receivers.values())
    print(
        f"{storm.kills} kills, {len(sent)} sent, {again} delivered again, skipped {stats.skipped}, "
        f"longest silence {longest:.2f} s"
    )
    lost = len(set(sent) - receivers.keys())
    figures = {"operations": len(sent), "faults": storm.kills, "lost": lost}
    note = "every kill is counted; a process there does nothing but put and receive"
    record("processes on a ring killed", **figures, seed=SEED, note=note)
    assert len(sent) == len(set(sent)) > kills
    assert not lost
    # A writer may be killed when its message is committed and its note is not written.
    unnoted = receivers.keys() - set(sent)
    assert len({life for life, _ in unnoted}) == len(unnoted)
    assert {life for life, _ in unnoted} <= storm.dead
    for message, lives in receivers.items():
        assert set(lives[:-1]) <= storm.dead, f"{message} came twice, and nobody who held it was killed"
        assert len(lives) == len(set(lives)), f"{message} came twice to one reader"
    assert again > 0, "no kill met a reader that held anything"
    assert longest < STALL_SECONDS
    assert stats.damaged == 0
    assert stats.written == stats.read == stats.tail
    storm.ring.recover()
    assert len(storm.ring.stats().owners) == 1
    storm.ring.close()


def test_nothing_is_lost_when_processes_are_killed(place: Path) -> None:
    weather(place, 80)


@pytest.mark.proof
def test_nothing_is_lost_in_five_hundred_kills(place: Path, record_proof: Callable[..., None]) -> None:
    weather(place, LONG_KILLS, record_proof)
