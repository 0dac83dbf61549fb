"""One file as a disk has it: what is on the platter, and what only the machine's memory holds.

Guards: what was written and not synced may be on the platter or not, each sector for itself and in any order; what was
synced is there. After a sync that failed nothing is owed any more: memory holds as clean what the platter may not have.
"""

from __future__ import annotations

from random import Random
from typing import Final

SECTOR_BYTES: Final = 512  # what a disk writes whole or not at all
PAGE_BYTES: Final = 4096  # what a kernel marks as changed


class Sheet:
    """A file's bytes, twice."""

    def __init__(self, content: bytes = b"") -> None:
        self._seen = bytearray(content)  # what a read gives
        self._kept = bytearray(content)  # what a power cut leaves
        self._owed: dict[int, list[bytes]] = {}  # each sector's contents since the last sync, oldest first
        self._sizes: list[int] = []  # and the file's

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if end > len(self._seen):
            self._resize(end)
        self._seen[offset:end] = data
        # A page is changed as a whole, so writing a part of it repairs the rest.
        self._touch(offset // PAGE_BYTES * PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES)

    def truncate(self, size: int) -> None:
        before = max(len(self._seen), len(self._kept))
        self._resize(size)
        self._touch(size, before)

    def sync(self) -> None:
        """All of it is on the platter."""
        for sector, versions in self._owed.items():
            _put(self._kept, sector, versions[-1])
        _cut(self._kept, len(self._seen))
        self._settle()

    def fail_sync(self, dice: Random) -> None:
        """Some of it is on the platter, and nobody will try again with the rest."""
        for sector, versions in self._owed.items():
            if dice.random() < 0.5:
                _put(self._kept, sector, versions[-1])
        self._settle()

    def after_cut(self, dice: Random, chance: float) -> bytes:
        """What is found when the power is back; each unsynced sector got there with this chance."""
        image = bytearray(self._kept)
        sizes = [len(image), *self._sizes]
        for sector, versions in self._owed.items():
            if dice.random() < chance:
                _put(image, sector, versions[-1] if chance == 1.0 else dice.choice(versions))
        _cut(image, sizes[round(chance * (len(sizes) - 1))] if chance in (0.0, 1.0) else dice.choice(sizes))
        return bytes(image)

    @property
    def seen(self) -> bytes:
        """What a read of all of it gives."""
        return bytes(self._seen)

    def _settle(self) -> None:
        self._owed.clear()
        self._sizes.clear()

    def _resize(self, size: int) -> None:
        _cut(self._seen, size)
        self._sizes.append(size)

    def _touch(self, first: int, last: int) -> None:
        for sector in range(first // SECTOR_BYTES, -(-last // SECTOR_BYTES)):
            new, versions = _sector(self._seen, sector), self._owed.get(sector)
            if new != (versions[-1] if versions else _sector(self._kept, sector)):
                self._owed.setdefault(sector, []).append(new)


def _sector(image: bytearray, sector: int) -> bytes:
    return bytes(image[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")


def _put(image: bytearray, sector: int, content: bytes) -> None:
    start = sector * SECTOR_BYTES
    if len(image) < start:
        _cut(image, start)
    image[start : start + SECTOR_BYTES] = content


def _cut(image: bytearray, size: int) -> None:
    """Make it so long, with zeros if it was shorter."""
    del image[size:]
    image.extend(bytes(size - len(image)))
