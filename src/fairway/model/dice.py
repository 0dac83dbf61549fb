"""Randomness as a value: a seeded generator and a seeded permutation.

Guards: one seed gives one history; nothing here reads entropy.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_A = 0xBF58476D1CE4E5B9  # splitmix64's constants
_B = 0x94D049BB133111EB
_ODD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio


def mix(x: int) -> int:
    """A 64-bit number that looks unrelated to `x` (splitmix64's finaliser)."""
    x = ((x ^ (x >> 30)) * _A) & _MASK
    x = ((x ^ (x >> 27)) * _B) & _MASK
    return x ^ (x >> 31)


class Dice:
    """A stream of random numbers from one seed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits64(self) -> int:
        self._state = (self._state + _ODD) & _MASK
        return mix(self._state)

    def below(self, n: int) -> int:
        """Uniform in [0, n): draws again where the remainder would favour small numbers."""
        span = (1 << 64) - (1 << 64) % n
        while True:
            x = self.bits64()
            if x < span:
                return x % n


_DECK_MAX = 32  # smaller decks are shuffled card by card: a network over so few bits would not be uniform


class Shuffle:
    """A seeded permutation of range(n) with its inverse, in constant memory.

    Guards: `at` and `place` are inverse to each other for every n and seed.
    A six-round Feistel network over the next power of four; what falls outside [0, n) is walked on.
    """

    __slots__ = ("_deck", "_half", "_keys", "_low", "n")

    def __init__(self, n: int, seed: int) -> None:
        self.n = n
        self._deck = _shuffled(n, seed) if n <= _DECK_MAX else b""
        self._half = (max(1, n - 1).bit_length() + 1) // 2
        self._low = (1 << self._half) - 1
        key = mix(seed)
        self._keys = (
            key,
            key * _A & _MASK,
            key * _B & _MASK,
            key * _ODD & _MASK,
            key >> 7 ^ _A,
            key >> 13 ^ _B,
        )

    def at(self, place: int) -> int:
        """The element that stands at `place`."""
        if self._deck:
            return self._deck[place]
        x, half, low = place, self._half, self._low
        while True:
            left, right = x >> half, x & low
            for key in self._keys:  # the round function is written out twice: a call would cost more than it
                f = (right ^ key) * _A & _MASK
                left, right = right, left ^ ((f ^ f >> 32) * _B >> 37 & low)
            x = left << half | right
            if x < self.n:
                return x

    def place(self, element: int) -> int:
        """Where `element` stands."""
        if self._deck:
            return self._deck.index(element)
        x, half, low = element, self._half, self._low
        while True:
            left, right = x >> half, x & low
            for key in reversed(self._keys):
                f = (left ^ key) * _A & _MASK
                left, right = right ^ ((f ^ f >> 32) * _B >> 37 & low), left
            x = left << half | right
            if x < self.n:
                return x


def _shuffled(n: int, seed: int) -> bytes:
    dice, deck = Dice(mix(seed)), bytearray(range(n))
    for i in range(n - 1, 0, -1):
        j = dice.below(i + 1)
        deck[i], deck[j] = deck[j], deck[i]
    return bytes(deck)
