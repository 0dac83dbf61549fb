"""How long the long forms of `make proof` are: the number that was promised, or one from the environment."""

from __future__ import annotations

import os
from typing import Any

from fairway.testing.history import History


def number(name: str, promised: int) -> int:
    """FAIRWAY_PROOF_<NAME>, for a short form of a proof on a small machine; what was promised without it."""
    return int(os.environ.get(f"FAIRWAY_PROOF_{name}", promised))


class Kept:
    """Of the histories of a run the shortest, which may be published, and the last, which shows why the run stopped."""

    def __init__(self, what: str) -> None:
        self.what, self.many = what, 0
        self.shortest: History | None = None
        self.last: History | None = None

    def add(self, history: History) -> None:
        self.many += 1
        self.last = history
        if self.shortest is None or len(history.lines) < len(self.shortest.lines):
            self.shortest = history

    def told(self) -> dict[str, Any]:
        """For the row of the run."""
        part = f"1 of {self.many:,} {self.what}" if self.many > 1 else ""
        return {"history": self.shortest, "last": self.last, "part": part}
