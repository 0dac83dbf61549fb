"""Randomness as a value: a seeded generator and a seeded permutation.

Guards: one seed gives one history; nothing here reads entropy.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """A 64-bit number that looks unrelated to `x` (splitmix64's finaliser)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Dice:
    """A stream of random numbers from one seed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits64(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        return mix(self._state)

    def below(self, n: int) -> int:
        """Uniform in [0, n): draws again where the remainder would favour small numbers."""
        span = (1 << 64) - (1 << 64) % n
        while True:
            x = self.bits64()
            if x < span:
                return x % n


class Shuffle:
    """A seeded permutation of range(n) with its inverse, in constant memory.

    Guards: `at` and `place` are inverse to each other for every n and seed.
    A four-round Feistel network over the next power of four; what falls outside [0, n) is walked on.
    """

    __slots__ = ("_half", "_keys", "_low", "n")

    def __init__(self, n: int, seed: int) -> None:
        self.n = n
        self._half = max(1, (max(1, n - 1).bit_length() + 1) // 2)
        self._low = (1 << self._half) - 1
        self._keys = tuple(mix((seed + r * 0x9E3779B97F4A7C15) & _MASK) for r in range(4))

    def at(self, place: int) -> int:
        """The element that stands at `place`."""
        x = place
        while True:
            left, right = x >> self._half, x & self._low
            for key in self._keys:
                left, right = right, left ^ (mix(right ^ key) & self._low)
            x = (left << self._half) | right
            if x < self.n:
                return x

    def place(self, element: int) -> int:
        """Where `element` stands."""
        x = element
        while True:
            left, right = x >> self._half, x & self._low
            for key in reversed(self._keys):
                left, right = right ^ (mix(left ^ key) & self._low), left
            x = (left << self._half) | right
            if x < self.n:
                return x
