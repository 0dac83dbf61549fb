"""A folder as a disk has it: which files a power cut leaves, and what is in them.

Guards: a name that was made or removed is durable once its folder was synced, and names change in the order in which
they were changed, as journalling file systems have it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from fairway.testing.disk.sheet import Sheet


class Platter:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._now: dict[str, Sheet] = {}
        for file in folder.iterdir():
            if file.is_file() and not file.name.endswith("-shm"):
                self._now[str(file)] = Sheet(file.read_bytes())
        self._kept = dict(self._now)
        self._moves: list[tuple[str, Sheet | None]] = []  # names since the last sync of the folder

    def sheet(self, path: str) -> Sheet:
        """The file of this name, made if there is none."""
        found = self._now.get(path)
        if found is None:
            found = self._now[path] = Sheet()
            self._moves.append((path, found))
        return found

    def remove(self, path: str) -> None:
        if self._now.pop(path, None) is not None:
            self._moves.append((path, None))

    def sync_folder(self) -> None:
        self._kept = dict(self._now)
        self._moves.clear()

    def cut(self, dice: Random, chance: float | None = None) -> dict[str, bytes]:
        """The power is cut and comes back: every file that is there, by its path.

        Without a chance the dice take one: nothing that is owed got there, all of it, or some.
        """
        if chance is None:
            chance = dice.choice((0.0, 1.0, 0.1, 0.5, 0.9))
        left = dict(self._kept)
        many = dice.randint(0, len(self._moves)) if 0 < chance < 1 else round(chance) * len(self._moves)
        for path, sheet in self._moves[:many]:
            if sheet is None:
                left.pop(path, None)
            else:
                left[path] = sheet
        return {path: sheet.after_cut(dice, chance) for path, sheet in left.items()}
