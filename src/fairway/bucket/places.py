"""Places: time-UUIDs as sixteen bytes that sort as Cassandra compares time-UUIDs.

Guards: byte order is the order (time, last eight bytes as signed bytes), so every store agrees on what is newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_EPOCH_TICKS: Final = 0x01B21DD213814000  # from 1582, where time-UUIDs begin, to 1970, in units of 100 ns
_TICKS_PER_SECOND: Final = 10_000_000
_TICKS_MAX: Final = 2**60 - 1
_TAIL_MASK: Final = 2**62 - 1  # the two highest bits of the tail are the variant of a UUID
_SIGNS: Final = bytes([0x80] * 8)

LOWEST: Final = bytes(16)
"""Below every place: the floor of a new queue."""


def ticks_of(now: float) -> int:
    """The time of a place made at a moment."""
    return min(max(int(now * _TICKS_PER_SECOND) + _EPOCH_TICKS, 1), _TICKS_MAX)


def time_of(place: bytes) -> float:
    """About when a place was made, in seconds since 1970."""
    return (int.from_bytes(place[:8]) - _EPOCH_TICKS) / _TICKS_PER_SECOND


def place_after(now: float, above: Iterable[bytes], bits: int) -> bytes:
    """A new place whose time is above that of every given one, whatever the clock says."""
    highest = max((int.from_bytes(place[:8]) for place in above), default=0)
    ticks = max(ticks_of(now), highest + 1)
    return ticks.to_bytes(8) + (bits & _TAIL_MASK).to_bytes(8)


def uuid_bytes(place: bytes) -> bytes:
    """The place as the bytes of a version 1 UUID."""
    ticks = int.from_bytes(place[:8])
    low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF | 0x1000
    tail = bytes(one ^ sign for one, sign in zip(place[8:], _SIGNS, strict=True))
    return low.to_bytes(4) + middle.to_bytes(2) + high.to_bytes(2) + tail


def place_of(uuid: bytes) -> bytes:
    """The place of a version 1 UUID."""
    ticks = (int.from_bytes(uuid[6:8]) & 0x0FFF) << 48 | int.from_bytes(uuid[4:6]) << 32
    ticks |= int.from_bytes(uuid[:4])
    return ticks.to_bytes(8) + bytes(one ^ sign for one, sign in zip(uuid[8:], _SIGNS, strict=True))
