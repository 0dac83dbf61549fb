"""How long the long forms of `make proof` are: the number that was promised, or one from the environment."""

from __future__ import annotations

import os
from typing import Any

from fairway.testing.history import History


def number(name: str, promised: int) -> int:
    """FAIRWAY_PROOF_<NAME>, for a short form of a proof on a small machine; what was promised without it."""
    return int(os.environ.get(f"FAIRWAY_PROOF_{name}", promised))


class Kept:
    """Of the histories of a run the shortest (or the longest), which may be published, and the last, which shows why
    the run stopped.
    """

    def __init__(self, what: str, longest: bool = False) -> None:
        self.what, self.many = what, 0
        self.chosen: History | None = None
        self.last: History | None = None
        self._longest = longest

    def add(self, history: History) -> None:
        self.many += 1
        self.last = history
        if self.chosen is None or self._better(len(history.lines), len(self.chosen.lines)):
            self.chosen = history

    def _better(self, lines: int, than: int) -> bool:
        return lines > than if self._longest else lines < than

    def told(self) -> dict[str, Any]:
        """For the row of the run."""
        part = f"1 of {self.many:,} {self.what}" if self.many > 1 else ""
        return {"history": self.chosen, "last": self.last, "part": part}
