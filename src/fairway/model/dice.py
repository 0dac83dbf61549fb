"""Randomness as a value: a seeded generator and a seeded permutation.

Guards: one seed gives one history; nothing here reads entropy.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import isqrt

import msgspec

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
        self._state = x = (self._state + _ODD) & _MASK
        x = ((x ^ (x >> 30)) * _A) & _MASK  # `mix`, written out: a draw is made for every chunk
        x = ((x ^ (x >> 27)) * _B) & _MASK
        return x ^ (x >> 31)

    @contextmanager
    def aside(self) -> Generator[None]:
        """Draws inside are of another stream; those that come after it are as if there had been none."""
        state, self._state = self._state, mix(self._state ^ _B)
        try:
            yield
        finally:
            self._state = state

    def below(self, n: int) -> int:
        """Uniform in [0, n): the high half of a product, drawn again where its low half would favour some numbers."""
        product = self.bits64() * n
        if product & _MASK < n:  # seldom, so the division is too
            least = (1 << 64) % n
            while product & _MASK < least:
                product = self.bits64() * n
        return product >> 64


_STEPS = (_ODD >> 1, _ODD >> 2, _ODD >> 3)  # two rounds each; they make the rounds differ
_STEPS_BACK = _STEPS[::-1]
_DECK_MAX = 32  # smaller decks are shuffled card by card: a network over so few bits would not be uniform


class Shuffle(msgspec.Struct, eq=False, gc=False):
    """A seeded permutation of range(n) with its inverse, in constant memory.

    Guards: `at` and `place` are inverse to each other for every n and seed.
    A six-round Feistel network over a rectangle that is hardly larger than n; what falls outside [0, n) is walked on.
    """

    n: int
    _key: int
    _wide: int
    _rows: int
    _deck: bytes

    @classmethod
    def seeded(cls, n: int, seed: int) -> Shuffle:
        """The permutation of a seed."""
        wide = isqrt(n) + 1
        return cls(n, mix(seed), wide, n // wide + 1, _shuffled(n, seed) if n <= _DECK_MAX else b"")

    def at(self, place: int) -> int:
        """The element that stands at `place`."""
        if self._deck:
            return self._deck[place]
        x, wide, rows, key = place, self._wide, self._rows, self._key
        while True:
            row, column = divmod(x, wide)
            for step in _STEPS:  # the round function is written out twice: a call would cost more than it
                f = (column + step ^ key) * _A & _MASK
                row = (row + ((f ^ f >> 32) * _B >> 37)) % rows
                f = (row ^ key + step) * _B & _MASK
                column = (column + ((f ^ f >> 32) * _A >> 37)) % wide
            x = row * wide + column
            if x < self.n:
                return x

    def place(self, element: int) -> int:
        """Where `element` stands."""
        if self._deck:
            return self._deck.index(element)
        x, wide, rows, key = element, self._wide, self._rows, self._key
        while True:
            row, column = divmod(x, wide)
            for step in _STEPS_BACK:
                f = (row ^ key + step) * _B & _MASK
                column = (column - ((f ^ f >> 32) * _A >> 37)) % wide
                f = (column + step ^ key) * _A & _MASK
                row = (row - ((f ^ f >> 32) * _B >> 37)) % rows
            x = row * wide + column
            if x < self.n:
                return x


def _shuffled(n: int, seed: int) -> bytes:
    dice, deck = Dice(mix(seed)), bytearray(range(n))
    for i in range(n - 1, 0, -1):
        j = dice.below(i + 1)
        deck[i], deck[j] = deck[j], deck[i]
    return bytes(deck)
