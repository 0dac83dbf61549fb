"""Damage to a ring, written into its file, and all the calls that may meet it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairway.ring.face import Ring

SIZE = 1 << 16
TAKES: dict[str, Callable[[Ring], object]] = {
    "get": lambda ring: ring.get(0),
    "get_many": lambda ring: ring.get_many(9, 0),
    "pop": lambda ring: ring.pop(0),
    "pop_many": lambda ring: ring.pop_many(9, 0),
    "get_into": lambda ring: ring.get_into(bytearray(100), 0),
}


def patch(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
