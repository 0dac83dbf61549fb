"""Frames in a stream of bytes: four bytes of length, little end first, then the body.

Guards: however the stream is cut into pieces, the same frames come out; no frame is longer than its bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fairway.limits import FRAME_BYTES_MAX
from fairway.runtime.transport.port import PeerGone

_HEAD = 4


def join(frames: Sequence[bytes]) -> bytes:
    """Frames as one piece of the stream."""
    return b"".join(chain.from_iterable((len(frame).to_bytes(_HEAD, "little"), frame) for frame in frames))


class Splitter:
    """Finds frames in what arrives."""

    __slots__ = ("_longest", "_rest", "_wanted")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._longest = frame_bytes_max
        self._rest = bytearray()
        self._wanted = _HEAD  # how long the rest must be before there is anything to look at

    @property
    def inside(self) -> bool:
        """Whether the stream stands in the middle of a frame."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole now."""
        if not self._rest:
            frames, at = self._cut(data)
            if at < len(data):
                self._rest += memoryview(data)[at:]
            return frames
        self._rest += data
        if len(self._rest) < self._wanted:
            return []
        frames, at = self._cut(self._rest)
        del self._rest[:at]
        return frames

    def _cut(self, data: bytes | bytearray) -> tuple[list[bytes], int]:
        frames: list[bytes] = []
        at, size = 0, len(data)
        self._wanted = _HEAD
        while at + _HEAD <= size:
            length = int.from_bytes(data[at : at + _HEAD], "little")
            if length > self._longest:
                raise PeerGone(f"a frame of {length} bytes came, and {self._longest} are the most")
            end = at + _HEAD + length
            if end > size:
                self._wanted = end - at
                break
            frames.append(bytes(data[at + _HEAD : end]))
            at = end
        return frames, at
