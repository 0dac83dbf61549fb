"""An urn: things are drawn by their weight, in constant time, while weights sink unnoticed.

Guards: a thing's cap is a power of two that was not below its weight when it was put in; `at` gives each unit of
all caps once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Urn(Generic[T]):
    """Things in buckets by cap. A draw below `total` is valid if its rest is below the thing's weight."""

    __slots__ = ("_buckets", "_place", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, list[T]] = {}  # b: the things with cap 2**b
        self._place: dict[T, tuple[int, int]] = {}  # bucket, index in it
        self.total = 0  # the sum of all caps

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, thing: T) -> bool:
        return thing in self._place

    def things(self) -> list[T]:
        return list(self._place)

    def cap(self, thing: T) -> int:
        return 1 << self._place[thing][0]

    def put(self, thing: T, weight: int) -> None:
        """Put a thing in, or give it the cap that fits its weight."""
        if thing in self._place:
            self.remove(thing)
        b = (weight - 1).bit_length()
        bucket = self._buckets.get(b)
        if bucket is None:
            bucket = self._buckets[b] = []
        self._place[thing] = (b, len(bucket))
        bucket.append(thing)
        self.total += 1 << b

    def remove(self, thing: T) -> None:
        b, i = self._place.pop(thing)
        bucket = self._buckets[b]
        last = bucket.pop()
        if i < len(bucket):
            bucket[i] = last
            self._place[last] = (b, i)
        if not bucket:
            del self._buckets[b]
        self.total -= 1 << b

    def at(self, draw: int) -> tuple[T, int]:
        """The thing that a draw below `total` hits, and the rest of the draw, below its cap."""
        for b, bucket in self._buckets.items():
            span = len(bucket) << b
            if draw < span:
                return bucket[draw >> b], draw & ((1 << b) - 1)
            draw -= span
        raise AssertionError("a draw is below the total")
