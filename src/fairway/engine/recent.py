"""What was stored lately, kept while a read that began before it may still be under way.

Guards: a lookup that read the store before a write and is used after it still sees that write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key, from the moment they are decided until no read can be older than their group."""

    __slots__ = ("_leaving", "_values")

    def __init__(self) -> None:
        self._values: dict[K, tuple[int, V]] = {}
        self._leaving: deque[tuple[int, int, list[K]]] = (
            deque()
        )  # (group, reads begun when it was stored, keys)

    def put(self, key: K, value: V, number: int) -> None:
        self._values[key] = (number, value)

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        return None if found is None else found[1]

    def forget(self, key: K) -> None:
        """What was decided was undone, by something that every read hears of in another way."""
        self._values.pop(key, None)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def surely_stays(self, key: K, stored: int) -> bool:
        """Whether a read that begins now may leave it out: its group comes after the last one that is stored.

        What is stored may be let go of while that read is out, if an earlier one ends; the read sees it.
        """
        found = self._values.get(key)
        return found is not None and found[0] > stored

    def stored(self, keys: list[K], number: int, reads_begun: int, oldest_read: int) -> None:
        """The group with these keys is stored; let go of what no open read can be older than."""
        if keys:
            self._leaving.append((number, reads_begun, keys))
        values = self._values
        while self._leaving and self._leaving[0][1] <= oldest_read:
            group, _, gone = self._leaving.popleft()
            for key in gone:
                found = values.get(key)
                if found is not None and found[0] == group:
                    del values[key]
