"""Bits that turn over on a disk.

Guards: exactly one bit of a file differs afterwards.
"""

from __future__ import annotations

from pathlib import Path
from random import Random


def flip(path: Path, dice: Random) -> tuple[int, int]:
    """Turn one bit of a file over; gives its byte and its place in it."""
    content = bytearray(path.read_bytes())
    place, bit = dice.randrange(len(content)), dice.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return place, bit
